import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Computes what accounts may use, and says so: each change with its version, each permit to finish once.
public struct EntitlementsStage: Stage {
  public let catalogue: Catalogue

  /// Accounts that one tick settles: a batch of the size that a store commits in well under a second. What is left is due
  /// still, and the next tick takes it.
  public static let maximumDue = 2_000

  public init(catalogue: Catalogue) { self.catalogue = catalogue }

  public var name: StageName { .entitlements }
  public var inputs: [Topic] { [.owned] }

  public func read(_ record: Incoming) -> (any Sendable)? { Reading(record) }

  /// Which accounts are due is asked of the store: it must hold all that came before the tick.
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
    case .spend(let subject, let spend):
      return [
        .row(AccountRow.key(subject.environment, subject.account)),
        .row(subject.ledgerKey(spend.unit, Spend.entry(spend))), .row(subject.permitKey(Spend.permit(spend))),
      ]
    case .order(let subject, _): return [.row(AccountRow.key(subject.environment, subject.account))]
    case .tick(let tick): return due(record.coordinates.partition, tick)
    case .nothing, .unreadable: return []
    }
  }

  private func due(_ partition: Int32, _ tick: ClockTicked) -> [Need] {
    var needs = [Need.due(partition: partition, upTo: tick.instant, limit: Self.maximumDue)]
    // A tick of a program with another catalogue says nothing about who waits for ours.
    if tick.catalogueVersion == catalogue.version {
      needs.append(
        .waiting(partition: partition, catalogueOtherThan: catalogue.version, limit: Self.maximumDue))
    }
    return needs
  }

  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    var decision = Decision(record: record, facts: facts, catalogue: catalogue)
    do throws(FieldFailure) {
      switch record.reading as? Reading ?? Reading(record) {
      case .statements(let subject, let statements, let isTransfer):
        try decision.decide(subject, statements, byTransfer: isTransfer)
      case .removed(let subject, let chain, let cause): try decision.remove(subject, chain, cause)
      case .answer(let subject, let permit): try decision.answer(subject, permit)
      case .spend(let subject, let spend): try decision.spend(subject, spend)
      case .order(let subject, let order): try decision.order(subject, order)
      case .tick(let tick):
        decision.tick(tick, due(record.coordinates.partition, tick).map { facts.rows($0) })
      case .nothing: break
      case .unreadable(let failure): throw failure
      }
    } catch {
      // Only our stages write this topic: what can't be read there must never happen.
      return [.quarantine(reason: error.description, alarm: .unreadable)]
    }
    return decision.actions
  }

  // MARK: The clock

  public func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] {
    [
      .due(partition: partition.partition, upTo: min(now, workedOff), limit: 1),
      .waiting(partition: partition.partition, catalogueOtherThan: catalogue.version, limit: 1),
    ]
  }

  /// One tick where something is due in the partition, under the key of an account that it is due for: so it comes back
  /// through this very partition, behind all that was worked off.
  public func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] {
    let instant = min(now, workedOff)
    let needs = scheduleNeeds(partition, now: now, workedOff: workedOff)
    guard let row = needs.lazy.compactMap({ facts.rows($0).first }).first,
      case .text(let name) = row.key.values[0], let environment = Environment(rawValue: name),
      case .text(let text) = row.key.values[1], let account = Account(text)
    else { return [] }
    let tick = OwnedEvent.ticked(
      ClockTicked(
        environment: environment, account: account, instant: instant, catalogueVersion: catalogue.version))
    let about = "clock.ticked\n\(partition.partition)\n\(instant.milliseconds)\n\(tick.key)\n\(catalogue.version)"
    return [
      Scheduled(
        event: Outgoing(topic: .owned, key: tick.key, type: tick.type, data: tick.data),
        id: SHA256.digest(about).hex, writes: [], timestamp: now)
    ]
  }
}
