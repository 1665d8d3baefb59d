import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Computes what accounts may use, and says so: each change with its version, each permit to finish once.
public struct EntitlementsStage: Stage {
  /// The catalogues that have been in force: a record is decided by that of its own time.
  public let history: CatalogueHistory

  /// Accounts that one tick settles. A tick of each partition is mostly in one batch: so many of each are settled and published in
  /// a fraction of the second in which the first is to come. Where more are due, the tick ends in another one, which comes
  /// back behind what has come in meanwhile.
  public static let maximumDue = 250
  /// Of ticks that don't say.
  private static let formerMaximumDue: Int64 = 2_000

  private let atOnce: Int

  /// - Parameter atOnce: accounts that one tick settles.
  public init(history: CatalogueHistory, atOnce: Int = Self.maximumDue) {
    self.history = history
    self.atOnce = atOnce
  }

  /// One catalogue for all time.
  public init(catalogue: Catalogue) { self.init(history: CatalogueHistory(catalogue)) }

  public var name: StageName { .entitlements }
  public var inputs: [Topic] { [.owned] }

  public func read(_ record: Incoming) -> (any Sendable)? { Reading(record) }

  /// Which accounts are due is asked of the store: it must hold all that came before the tick in its partition.
  public func beginsBatch(_ record: Incoming) -> Bool { record.event?.type == .clockTicked }

  public func needs(_ record: Incoming, _ facts: any Facts) -> [Need] {
    switch record.reading as? Reading ?? Reading(record) {
    case .statements(let subject, let statements, _):
      var needs = [Need.row(AccountRow.key(subject.environment, subject.account))]
      if let proof = statements.reportedProof { needs.append(.row(subject.permitKey(proof))) }
      return needs
    case .removed(let subject, _, _): return [.row(AccountRow.key(subject.environment, subject.account))]
    case .answer(let subject, let permit):
      return [
        .row(AccountRow.key(subject.environment, subject.account)), .row(subject.permitKey(permit.proof)),
      ]
    case .request(let subject, let request):
      return [.row(AccountRow.key(subject.environment, subject.account))] + Decision.needs(subject, request)
    case .tick(let tick): return due(record.coordinates.partition, tick)
    case .nothing, .unreadable: return []
    }
  }

  private func due(_ partition: Int32, _ tick: ClockTicked) -> [Need] {
    let limit = Self.limit(tick)
    let needs = [Need.due(partition: partition, upTo: tick.instant, limit: limit)]
    // A tick of a program that knew of another catalogue says nothing about who is to be settled by ours.
    guard tick.catalogueVersion == history.inForce(at: tick.instant).version else { return needs }
    return needs + outdated(partition, at: tick.instant, limit: limit)
  }

  private static func limit(_ tick: ClockTicked) -> Int { Int(clamping: tick.limit ?? formerMaximumDue) }

  private func outdated(_ partition: Int32, at instant: Instant, limit: Int) -> [Need] {
    history.outdated(at: instant).map { .outdated(partition: partition, version: $0, limit: limit) }
  }

  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let reading = record.reading as? Reading ?? Reading(record)
    var decision = Decision(record: record, facts: facts, catalogue: catalogue(reading, record, facts))
    do throws(FieldFailure) {
      switch reading {
      case .statements(let subject, let statements, let isTransfer):
        try decision.decide(subject, statements, byTransfer: isTransfer)
      case .removed(let subject, let chain, let cause): try decision.remove(subject, chain, cause)
      case .answer(let subject, let permit): try decision.answer(subject, permit)
      case .request(let subject, let request): try decision.request(subject, request)
      case .tick(let tick):
        let rows = due(record.coordinates.partition, tick).map { facts.rows($0) }
        decision.tick(tick, rows, history)
        if let last = rows.first(where: { $0.count >= Self.limit(tick) })?.last { decision.goOn(tick, last) }
      case .nothing: break
      case .unreadable(let failure): throw failure
      }
    } catch {
      // Only our stages write this topic: what can't be read there must never happen.
      return [.quarantine(reason: error.description, alarm: .unreadable)]
    }
    return decision.actions
  }

  private static let catalogueVersion = Table.account.index("catalogue_version")

  /// The catalogue in force at the record's time, unless a newer one has decided the account already.
  private func catalogue(_ reading: Reading, _ record: Incoming, _ facts: any Facts) -> Catalogue {
    let row = reading.subject.flatMap { facts.row(AccountRow.key($0.environment, $0.account)) }
    return history.inForce(at: record.timestamp, notBefore: row?.values[Self.catalogueVersion].text)
  }

  // MARK: The clock

  public func dueSince(_ record: Incoming) -> Instant? {
    guard record.event?.type == .clockTicked, case .tick(let tick)? = record.reading as? Reading else { return nil }
    return tick.dueAt
  }

  public func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] {
    let instant = min(now, workedOff)
    return [.due(partition: partition.partition, upTo: instant, limit: 1)]
      + outdated(partition.partition, at: instant, limit: 1)
  }

  /// One tick where something is due in the partition, under the key of an account that it is due for: so it comes back
  /// through this very partition, behind all that was worked off.
  public func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] {
    let instant = min(now, workedOff)
    let needs = scheduleNeeds(partition, now: now, workedOff: workedOff)
    guard let row = needs.lazy.compactMap({ facts.rows($0).first }).first, let subject = Subject(row) else { return [] }
    let version = history.inForce(at: instant).version
    let tick = OwnedEvent.ticked(
      ClockTicked(
        environment: subject.environment, account: subject.account, instant: instant, catalogueVersion: version,
        limit: Int64(atOnce),
        dueAt: needs.first.flatMap { facts.rows($0).first?["due_at"].integer }.map { Instant(milliseconds: $0) }))
    let about = "clock.ticked\n\(partition.partition)\n\(instant.milliseconds)\n\(tick.key)\n\(version)"
    return [
      Scheduled(
        event: Outgoing(topic: .owned, key: tick.key, type: tick.type, data: tick.data),
        id: SHA256.digest(about).hex, writes: [], timestamp: now)
    ]
  }
}
