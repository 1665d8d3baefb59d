import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesOwnership

/// Ownership and entitlements one behind the other, as two processes with a log between them would run.
public final class World {
  public let topics: TopicSettings
  public let ownership: InMemoryStage
  public var entitlements: InMemoryStage
  public var history: CatalogueHistory
  /// Accounts that one tick settles.
  public let atOnce: Int
  /// The newest instant that anything came in at.
  private var latest: Int64 = 0
  private var places: InMemoryPlaces
  /// Everything that left either stage, in order.
  public private(set) var records: [StoredRecord] = []
  public private(set) var quarantined: [String] = []

  /// - Parameter fault: puts a bug into a stage.
  public init(
    _ catalogue: Catalogue = Samples.catalogue, partitions: Int32 = 3, policy: RestorePolicy = .keep,
    atOnce: Int = EntitlementsStage.maximumDue, fault: (any Stage) -> any Stage = { $0 }
  ) {
    self.atOnce = atOnce
    topics = TopicSettings(partitions: partitions)
    history = CatalogueHistory(catalogue)
    ownership = InMemoryStage(fault(OwnershipStage(OwnershipSettings(restorePolicy: policy))), topics: topics)
    entitlements = InMemoryStage(fault(EntitlementsStage(history: history, atOnce: atOnce)), topics: topics)
    places = InMemoryPlaces(partitions: partitions)
  }

  public var catalogue: Catalogue { history.newest }

  /// A newer catalogue comes into force: then, or (nil) with the newest instant that anything came in at.
  public func relearn(_ catalogue: Catalogue, from milliseconds: Int64? = nil) {
    let from = Instant(milliseconds: milliseconds ?? latest)
    history = CatalogueHistory(
      first: history.versions[0].catalogue,
      later: history.versions.dropFirst().map { (catalogue: $0.catalogue, from: $0.from) }
        + [(catalogue: catalogue, from: from)])
    entitlements = InMemoryStage(
      EntitlementsStage(history: history, atOnce: atOnce), tables: entitlements.tables, topics: topics)
  }

  /// Hands an event to ownership and what comes of it to entitlements.
  @discardableResult
  public func feed(_ event: VerifiedEvent, key: String, at milliseconds: Int64) -> [EntitlementEvent] {
    pass(event, key: key, at: milliseconds).map { Samples.event($0) }
  }

  /// The same for who doesn't look at the events.
  @discardableResult
  public func pass(_ event: VerifiedEvent, key: String, at milliseconds: Int64) -> [StoredRecord] {
    latest = max(latest, milliseconds)
    let stored = places.place(event.record(key: key, at: milliseconds, topics: topics))
    let actions = ownership.actions(stored)
    note(actions)
    return ownership.records(stored, actions).flatMap { forward($0) }
  }

  @discardableResult
  public func feed(_ sample: SampleTransaction, by account: String?, as type: EventType = .paymentPurchased, at: Int64)
    -> [EntitlementEvent]
  {
    feed(sample.reported(by: account, as: type), key: "\(sample.environment.rawValue)/\(sample.original)", at: at)
  }

  @discardableResult
  public func notify(
    _ sample: SampleTransaction, _ uuid: String, _ type: String, subtype: String? = nil, renewal: SampleRenewal? = nil,
    at: Int64
  ) -> [EntitlementEvent] {
    feed(
      sample.notified(uuid, type, subtype: subtype, renewal: renewal),
      key: "\(sample.environment.rawValue)/\(sample.original)", at: at)
  }

  /// Puts an event into `owned`, as ownership would have.
  public func owned(_ event: OwnedEvent, at milliseconds: Int64) {
    let envelope = Envelope(
      id: "owned-\(records.count)", source: "/purchases/ownership", type: event.type,
      time: Instant(milliseconds: milliseconds))
    _ = forward(
      ProducedRecord(
        topic: topics.name(.owned),
        record: Record(
          key: Array(event.key.utf8), value: event.data, headers: envelope.headers,
          timestamp: Instant(milliseconds: milliseconds))))
  }

  private func forward(_ produced: ProducedRecord) -> [StoredRecord] {
    let stored = places.place(produced)
    guard produced.topic == topics.name(.owned) else {
      records.append(stored)
      return []
    }
    return take(stored)
  }

  /// Hands a record of the topic owned to entitlements.
  private func take(_ stored: StoredRecord) -> [StoredRecord] {
    records.append(stored)
    let actions = entitlements.actions(stored)
    note(actions)
    var events: [StoredRecord] = []
    for record in entitlements.records(stored, actions) {
      let out = places.place(record)
      // What one tick leaves to the next, and one account hands on to another.
      if record.topic == topics.name(.owned) {
        events += take(out)
        continue
      }
      records.append(out)
      if record.topic == topics.name(.received) { returned.append(out) }
      guard record.topic == topics.name(.entitlements) else { continue }
      events.append(out)
    }
    return events
  }

  /// Orders that entitlements sent back to the beginning of the pipeline.
  public private(set) var returned: [StoredRecord] = []
  /// How many of them went through the pipeline again.
  public var cameRound = 0

  private func note(_ actions: [Action]) {
    for action in actions {
      if case .quarantine(let reason, let alarm) = action {
        quarantined.append("\(alarm?.rawValue ?? "none") \(reason)")
      }
    }
  }

  /// Lets the clock reach that instant, tick by tick, until nothing is due.
  @discardableResult
  public func tick(_ milliseconds: Int64) -> [EntitlementEvent] {
    latest = max(latest, milliseconds)
    let now = Instant(milliseconds: milliseconds)
    var events: [StoredRecord] = []
    for partition in 0..<topics.partitions {
      let place = TopicPartition(topics.name(.owned), partition)
      while let tick = entitlements.scheduled(place, now: now, workedOff: now).first {
        precondition(Partitioner.partition(forKey: tick.record.key ?? [], of: topics.partitions) == partition)
        events += forward(tick)
      }
    }
    return events.map { Samples.event($0) }
  }

  public func row(_ account: String, _ environment: Environment = .production) -> AccountRow? {
    guard let account = Account(account) else { return nil }
    return entitlements.tables.row(AccountRow.key(environment, account)).flatMap { try? AccountRow($0) }
  }

  public func view(_ account: String, at milliseconds: Int64) -> AccountView? {
    row(account).map {
      AccountView($0, permits: permits(account), history: history, at: Instant(milliseconds: milliseconds))
    }
  }

  /// The entitlements active at that instant, as text.
  public func active(_ account: String, at milliseconds: Int64) -> [String] {
    view(account, at: milliseconds)?.entitlements.map(\.entitlement.text) ?? []
  }

  /// The entitlements that stand as active in the store.
  public func published(_ account: String) -> [String] {
    row(account)?.state.published.map(\.entitlement.text) ?? []
  }

  public func permits(_ account: String) -> [PermitRow] {
    entitlements.tables.rows(.permit).filter { $0.key.values[1].text == Account(account)?.text }
      .compactMap { try? PermitRow($0) }
  }

  public func balance(_ account: String, _ unit: String = "coins") -> Int64 {
    entitlements.tables.rows(.balance).first {
      $0.key.values[1].text == Account(account)?.text && $0.key.values[2].text == unit
    }?["amount"].integer ?? 0
  }

  public func views(at milliseconds: Int64) -> [AccountView] {
    let permits = Dictionary(grouping: entitlements.tables.unordered(.permit)) { Array($0.key.values[0..<2]) }
    return entitlements.tables.rows(.account).map { row in
      guard let account = try? AccountRow(row) else { preconditionFailure("an account can't be read") }
      let answers = (permits[row.key.values] ?? []).compactMap { try? PermitRow($0) }
        .sorted { $0.permit.proof < $1.permit.proof }
      return AccountView(account, permits: answers, history: history, at: Instant(milliseconds: milliseconds))
    }
  }

  public func digest(at milliseconds: Int64) -> StateDigest {
    var digest = StateDigest(at: Instant(milliseconds: milliseconds))
    for view in views(at: milliseconds) { digest.add(view) }
    return digest
  }

  /// What the digest is made of, by account.
  public func states(at milliseconds: Int64) -> [String: String] {
    var states: [String: String] = [:]
    for view in views(at: milliseconds) {
      states["\(view.environment.rawValue)/\(view.account)"] = StateDigest.canonical(view).map {
        String(decoding: $0, as: UTF8.self)
      }
    }
    return states
  }
}

public enum Samples {
  public static let catalogue = catalogue(
    #"""
    {"version": "1", "products": [
      {"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
      {"id": "gems.7", "type": "consumable", "credits": {"unit": "gems", "amount": 7}},
      {"id": "pro.lifetime", "type": "non-consumable", "entitlements": ["pro"]},
      {"id": "gold.monthly", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold", "member"]},
      {"id": "silver.monthly", "type": "auto-renewable", "group": "membership", "level": 2, "entitlements": ["silver", "member"]},
      {"id": "season", "type": "non-renewing", "duration": "P30D", "entitlements": ["season"]}]}
    """#)

  public static func catalogue(_ text: String) -> Catalogue {
    do { return try Catalogue(parsing: Array(text.utf8)) } catch { preconditionFailure("\(error)") }
  }

  public static func event(_ stored: StoredRecord) -> EntitlementEvent {
    do {
      return try EntitlementEvent(type: Envelope(reading: stored.record).type, data: stored.record.value ?? [])
    } catch { preconditionFailure("an event of entitlements can't be read: \(error)") }
  }
}

extension EntitlementEvent {
  /// What happened, in a few words: `granted pro`, `added 100 coins`, `finishable granted`.
  public var gist: String {
    switch content {
    case .entitlement(let change): "\(change.step) \(change.entitlement.text)"
    case .credit(let change): "\(change.isAddition ? "added" : "removed") \(change.amount) \(change.unit.text)"
    case .finishable(let permit): "finishable \(permit.content.rawValue)"
    }
  }
}
