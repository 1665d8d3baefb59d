import PurchasesContracts
import PurchasesCore

/// A stage with a bug in it, to show that a check finds it.
public struct FaultyStage: Stage {
  private let stage: any Stage
  private let fault: @Sendable (StoredRecord, [Action]) -> [Action]

  public init(_ stage: any Stage, _ fault: @escaping @Sendable (StoredRecord, [Action]) -> [Action]) {
    self.stage = stage
    self.fault = fault
  }

  public var name: StageName { stage.name }
  public var inputs: [Topic] { stage.inputs }
  public var needsDependOnFacts: Bool { stage.needsDependOnFacts }
  public func beginsBatch(_ record: Incoming) -> Bool { stage.beginsBatch(record) }
  public func read(_ record: Incoming) -> (any Sendable)? { stage.read(record) }
  public func needs(_ record: Incoming, _ facts: any Facts) -> [Need] { stage.needs(record, facts) }

  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    fault(record.stored, stage.decide(record, facts, moment))
  }

  public func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] {
    stage.scheduleNeeds(partition, now: now, workedOff: workedOff)
  }

  public func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] { stage.schedule(partition, facts, now: now, workedOff: workedOff) }
}
