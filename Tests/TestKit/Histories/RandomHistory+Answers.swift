import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// A history played through the real stages, and what they say afterwards, as one line of JSON: for a judge that isn't ours.
extension RandomHistory {
  /// This history, played.
  public func line(_ number: Int) -> [UInt8] {
    let world = World(Self.catalogue, partitions: 2, policy: policy)
    for arrival in arrivals {
      world.pass(arrival.event, key: arrival.key, at: arrival.at)
      if arrival.isTicked { world.tick(arrival.at) }
    }
    var writer = JSONWriter(reserving: 16_384)
    writer.object { json in
      json.field("history", number)
      json.field("policy", policy.rawValue)
      json.field("arrivals", array: { json in for arrival in arrivals { arrival.write(&json) } })
      // Permits as the last record left them: later ticks answer what waits.
      json.field("permits", array: { json in world.writePermits(&json) })
      let last = arrivals.last?.at ?? 0
      json.field(
        "answers", array: { json in for instant in instants { world.write(&json, at: instant, last: last) } })
      json.field("balances", array: { json in world.writeBalances(&json) })
      json.field("owners", array: { json in world.writeOwners(&json) })
      json.field("events", array: { json in world.writeEvents(&json) })
      json.field("quarantined", array: { json in for reason in world.quarantined { json.element(reason) } })
    }
    return writer.bytes
  }

  /// A history as a line of its own says it: for a judge that plays part of one again.
  public init(line: [UInt8]) throws(FieldFailure) {
    let fields = try Fields(parsing: line)
    var arrivals: [Arrival] = []
    for element in fields.member("arrivals")?.elements ?? [] {
      let arrival = try Fields(element, path: "arrivals")
      guard case .known(let type, _) = EventType.read(try arrival.requiredText("type") + ".v1"),
        let data = arrival.member("data"), let at = try arrival.milliseconds("at")
      else { throw arrival.failure("type", "is not a type of the topic verified, or there is no data") }
      arrivals.append(
        Arrival(
          key: try arrival.requiredText("key"), event: try VerifiedEvent(type: type, data: data.text),
          at: at.milliseconds, isTicked: arrival.member("tick")?.bool ?? false))
    }
    let answers: [JSONView] = fields.member("answers")?.elements ?? []
    let instants = answers.compactMap { $0["at"]?.int64 }
    self.init(
      policy: RestorePolicy(rawValue: try fields.requiredText("policy")) ?? .keep, arrivals: arrivals,
      instants: instants)
  }
}

extension RandomHistory.Arrival {
  fileprivate func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("at", at)
      json.field("key", key)
      json.field("type", event.type.rawValue)
      if isTicked { json.field("tick", true) }
      json.field("data", raw: event.data)
    }
  }
}

extension World {
  /// What each account may use at the instant: computed by the view and, for what is not past, as published after a tick.
  fileprivate func write(_ json: inout JSONWriter, at instant: Int64, last: Int64) {
    if instant >= last { tick(instant) }
    json.object { json in
      json.field("at", instant)
      json.field(
        "view",
        array: { json in
          for view in views(at: instant) {
            for (entitlement, state) in view.entitlements {
              json.array { $0.access(view.environment, view.account, entitlement, state) }
            }
          }
        })
      guard instant >= last else { return }
      json.field(
        "published",
        array: { json in
          for row in entitlements.tables.rows(.account).compactMap({ try? AccountRow($0) }) {
            for one in row.state.published {
              json.array { $0.access(row.environment, row.account, one.entitlement, one.state) }
            }
          }
        })
    }
  }

  fileprivate func writeBalances(_ json: inout JSONWriter) {
    for row in entitlements.tables.rows(.balance) {
      json.array { json in
        for value in row.key.values { json.element(value.text ?? "") }
        json.element(row["amount"].integer ?? 0)
      }
    }
  }

  fileprivate func writeOwners(_ json: inout JSONWriter) {
    for row in ownership.tables.rows(.chain) {
      json.array { json in
        for value in row.key.values { json.element(value.text ?? "") }
        json.element(row["account"].text ?? "")
        json.element(row["basis"].text ?? "")
      }
    }
  }

  fileprivate func writePermits(_ json: inout JSONWriter) {
    for row in entitlements.tables.rows(.permit) {
      json.array { json in
        for value in row.key.values { json.element(value.text ?? "") }
        for column in ["status", "content", "reason"] { json.element(row[column].text ?? "") }
      }
    }
  }

  /// How many events of each type stand under each account.
  fileprivate func writeEvents(_ json: inout JSONWriter) {
    var counts: [String: Int64] = [:]
    for record in records where record.coordinates.topic == topics.name(.entitlements) {
      guard let key = record.record.key, let type = record.record.headerText("ce_type") else { continue }
      counts[String(decoding: key, as: UTF8.self) + " " + type, default: 0] += 1
    }
    for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
      json.array { json in
        json.element(name)
        json.element(count)
      }
    }
  }
}

extension JSONWriter {
  fileprivate mutating func access(
    _ environment: Environment, _ account: Account, _ entitlement: EntitlementID, _ state: EntitlementState
  ) {
    element(environment.rawValue)
    element(account.text)
    element(entitlement.text)
    if let end = state.endsAt { element(end.milliseconds) } else { element(JSON.null) }
  }
}
