import PurchasesContracts
import PurchasesCore

/// A stage with state, made so that whatever is lost, done twice or done in another order shows: per key it counts, keeps a
/// chain of all it has seen, and answers each record with both. Some records ask to be reminded, which the clock does.
struct SimulatedTally: Stage {
  static let poison = "poison"

  var name: StageName { .entitlements }
  var inputs: [Topic] { [.owned] }

  static func key(_ record: Record) -> RowKey {
    RowKey(.account, [.text("Sandbox"), .text(String(decoding: record.key ?? [], as: UTF8.self))])
  }

  func needs(_ record: Incoming, _ facts: any Facts) -> [Need] { [.row(Self.key(record.stored.record))] }

  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let value = String(decoding: record.stored.record.value ?? [], as: UTF8.self)
    if value.hasPrefix(Self.poison) { return [.quarantine(reason: "it is poison", alarm: nil)] }
    let key = Self.key(record.stored.record)
    let old = facts.row(key)
    var due = old?["due_at"].integer
    if record.event?.type == .clockTicked {
      // A copy of a tick that had its effect has none.
      guard let at = due, let tick = Int64(value), at <= tick else { return [] }
      due = nil
    } else if let wait = Self.wait(value) {
      let at = record.timestamp.milliseconds + wait
      due = min(due ?? at, at)
    }
    let version = (old?["version"].integer ?? 0) + 1
    var chain = UInt64(version)
    for byte in (old?["document"].bytes ?? []) + (record.event?.id ?? "").utf8 {
      chain = (chain ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    let text = "\(version) \(String(chain, radix: 16))"
    let row = Row(
      key,
      [
        .integer(Int64(record.coordinates.partition)), .integer(version), Value(due), .integer(0), .text("1"),
        .bytes(Array(text.utf8)),
      ])
    return [
      .write(.put(row)),
      .emit(Outgoing(topic: .entitlements, key: key.values[1].text, type: .creditAdded, data: Array(text.utf8))),
    ]
  }

  /// The wait that a value asks for.
  private static func wait(_ value: String) -> Int64? {
    guard let mark = value.firstIndex(of: "+") else { return nil }
    return Int64(value[value.index(after: mark)...])
  }

  func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] {
    [.due(partition: partition.partition, upTo: min(now, workedOff), limit: 1)]
  }

  func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] {
    let instant = min(now, workedOff)
    return scheduleNeeds(partition, now: now, workedOff: workedOff).flatMap { facts.rows($0) }.map { row in
      Scheduled(
        event: Outgoing(
          topic: .owned, key: row.key.values[1].text, type: .clockTicked,
          data: Array(String(instant.milliseconds).utf8)),
        id: "tick \(row.key.values[1].text ?? "") \(instant.milliseconds)", writes: [], timestamp: now)
    }
  }
}

/// A stage without state: passes records on, and parks those that name an instant until it has come.
struct SimulatedPassing: Stage {
  static let parking = "until "

  var name: StageName { .verification }
  var inputs: [Topic] { [.received, .parked] }
  var output: Topic { .owned }

  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let value = String(decoding: record.stored.record.value ?? [], as: UTF8.self)
    if value.hasPrefix(Self.parking), let at = Int64(value.dropFirst(Self.parking.count).prefix { $0.isNumber }),
      Instant(milliseconds: at) > moment.now
    {
      return [.park(until: Instant(milliseconds: at), reason: "its time has not come")]
    }
    return [
      .emit(
        Outgoing(
          topic: .owned, key: String(decoding: record.stored.record.key ?? [], as: UTF8.self), type: .factNoted,
          data: record.stored.record.value ?? []))
    ]
  }
}

/// A stage that decides whole runs, with one row per partition that each record changes, as auditing has it.
struct SimulatedCounting: Stage {
  var name: StageName { .auditing }
  var inputs: [Topic] { [.received, .verified] }
  var takesEveryRecord: Bool { true }
  var decidesRuns: Bool { true }

  private func key(_ partition: TopicPartition) -> RowKey {
    RowKey(.auditTree, [.text(partition.topic), .integer(Int64(partition.partition))])
  }

  func needs(run: Run, _ facts: any Facts) -> [Need] { [.row(key(run.partition))] }

  // It is only asked for runs.
  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] { [] }

  func decide(run: Run, _ facts: any Facts, _ moment: Moment) -> [Decided] {
    let key = key(run.partition)
    let row = facts.row(key)
    var size = row?["size"].integer ?? 0
    var chain = row?["root"].text ?? ""
    var decided: [Decided] = []
    for (place, stored) in run.records.enumerated() {
      size += 1
      var hash = UInt64(size)
      for byte in chain.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      for byte in RecordCodec.encode(stored.record) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      chain = String(hash, radix: 16)
      // Not each record leads to something.
      guard hash % 3 != 0 else { continue }
      let event = Outgoing(
        topic: .audit, key: run.partition.description, type: .auditCheckpointed, data: Array("\(size) \(chain)".utf8))
      decided.append(Decided(record: place, actions: [.emit(event)]))
    }
    guard !run.records.isEmpty else { return [] }
    let write = Action.write(
      .put(
        Row(
          key,
          [
            .integer(size), .bytes([]), .text(chain), .integer(0), .integer(0), .integer(0), .null, .null,
          ])))
    if decided.last?.record == run.records.count - 1 {
      decided[decided.count - 1].actions.append(write)
    } else {
      decided.append(Decided(record: run.records.count - 1, actions: [write]))
    }
    return decided
  }
}

/// A stage that decides runs, record by record: what comes out is the same.
struct OneByOne: Stage {
  let stage: any Stage

  var name: StageName { stage.name }
  var inputs: [Topic] { stage.inputs }
  var takesEveryRecord: Bool { true }

  private func run(_ record: Incoming) -> Run {
    Run(topic: record.topic, partition: record.coordinates.topicPartition, records: [record.stored])
  }

  func needs(_ record: Incoming, _ facts: any Facts) -> [Need] { stage.needs(run: run(record), facts) }

  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    stage.decide(run: run(record), facts, moment).flatMap(\.actions)
  }
}
