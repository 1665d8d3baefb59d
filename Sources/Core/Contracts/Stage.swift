import PurchasesCore

public enum StageName: String, Sendable, Hashable, CaseIterable {
  case verification, ownership, entitlements, auditing

  /// A stage with state keeps it in a store; one without produces in the log's transaction alone.
  public var hasState: Bool { self != .verification }

  /// The topic that the stage is there to fill; `parked`, `quarantine` and the compacted topic come beside it.
  public var output: Topic {
    switch self {
    case .verification: .verified
    case .ownership: .owned
    case .entitlements: .entitlements
    case .auditing: .audit
    }
  }
}

/// A record as a stage is given it. An object, so that handing it from step to step copies none of its parts.
public final class Incoming: Sendable {
  public let stored: StoredRecord
  /// nil for a topic that isn't one of the deployment's (a replay may read copies).
  public let topic: Topic
  /// Why the headers could not be read, for a stage that takes every record; others never see such a record.
  public let envelope: Result<Envelope, EnvelopeFailure>
  /// What the stage's own `read` made of the record, once, so that `needs` and `decide` don't parse it again.
  public let reading: (any Sendable)?

  public init(
    stored: StoredRecord, topic: Topic, envelope: Result<Envelope, EnvelopeFailure>, reading: (any Sendable)? = nil
  ) {
    self.stored = stored
    self.topic = topic
    self.envelope = envelope
    self.reading = reading
  }

  public var coordinates: Coordinates { stored.coordinates }
  public var timestamp: Instant { stored.record.timestamp }
  public var event: Envelope? { try? envelope.get() }

  /// The record with the stage's reading of it.
  public func read(by stage: any Stage) -> Incoming {
    guard let reading = stage.read(self) else { return self }
    return Incoming(stored: stored, topic: topic, envelope: envelope, reading: reading)
  }
}

/// What the runner has fetched for a batch, with the batch's own earlier writes laid over.
public protocol Facts {
  func row(_ key: RowKey) -> Row?
  func rows(_ need: Need) -> [Row]
  /// What Apple answered; nil where it was not asked: no stage asks by itself, and a replay asks nobody.
  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer?
}

/// An event on its way out. The runner gives it its id, source, time and origin.
public struct Outgoing: Sendable, Hashable {
  public var topic: Topic
  public var key: String?
  public var type: EventType
  public var subject: String?
  public var data: [UInt8]

  public init(topic: Topic, key: String?, type: EventType, subject: String? = nil, data: [UInt8]) {
    self.topic = topic
    self.key = key
    self.type = type
    self.subject = subject
    self.data = data
  }
}

/// Why a record in quarantine is an alarm.
public enum QuarantineAlarm: String, Sendable, Hashable {
  /// It lay in a topic that only our stages write, and our own stage can't read it.
  case unreadable
  /// It says something else than an earlier one under the same notification UUID.
  case contradiction
}

public enum Action: Sendable {
  case emit(Outgoing)
  case write(Write)
  /// The record waits (in the topic `parked`, durably) and is handed in again at that time or later.
  case park(until: Instant, reason: String)
  /// The record can't be processed, now or later, by this program: it goes to `quarantine`, whole. `alarm` marks what must
  /// never happen, and auditing tells it.
  case quarantine(reason: String, alarm: QuarantineAlarm?)
  /// The stage must not go on (an event of a newer version than this program knows).
  case stop(reason: String)
}

/// Neighbouring records of one partition, in order, for a stage that decides them at one go.
public struct Run: Sendable {
  public let topic: Topic
  public let partition: TopicPartition
  public let records: [StoredRecord]

  public init(topic: Topic, partition: TopicPartition, records: [StoredRecord]) {
    self.topic = topic
    self.partition = partition
    self.records = records
  }
}

/// What one record of a run led to.
public struct Decided: Sendable {
  /// Position of the record in the run.
  public var record: Int
  public var actions: [Action]

  public init(record: Int, actions: [Action]) {
    self.record = record
    self.actions = actions
  }
}

/// How a record came back from `parked`.
public struct Parking: Sendable, Hashable {
  public var attempt: Int
  public var firstParkedAt: Instant
  public var notBefore: Instant

  public init(attempt: Int, firstParkedAt: Instant, notBefore: Instant) {
    self.attempt = attempt
    self.firstParkedAt = firstParkedAt
    self.notBefore = notBefore
  }
}

/// What the runner hands in beside the record.
public struct Moment: Sendable {
  /// The runner's clock as the batch began.
  public let now: Instant
  /// Set when the record comes out of `parked`.
  public let parking: Parking?

  public init(now: Instant, parking: Parking? = nil) {
    self.now = now
    self.parking = parking
  }
}

/// One step of the pipeline: total, synchronous, without I/O. The runner does everything else, once for all stages.
public protocol Stage: Sendable {
  var name: StageName { get }
  var inputs: [Topic] { get }
  var output: Topic { get }
  var hasState: Bool { get }
  /// True for the stage that takes every record as it is, whatever its headers say.
  var takesEveryRecord: Bool { get }
  /// True where nobody waits for what the stage puts out: records may gather before it sees them.
  var isPatient: Bool { get }
  /// True for a record whose needs can only be answered once everything before it in its partition is in the store.
  func beginsBatch(_ record: Incoming) -> Bool
  /// Parses the record, once; the outcome stands in `reading` when `needs` and `decide` are called.
  func read(_ record: Incoming) -> (any Sendable)?
  /// True where `needs` looks at the facts: it is then asked again until it names nothing new.
  var needsDependOnFacts: Bool { get }
  /// What must be known to decide this record.
  func needs(_ record: Incoming, _ facts: any Facts) -> [Need]
  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action]
  /// What Apple must be asked to decide this record. Asked for the whole batch before the first record is decided.
  func questions(_ record: Incoming, _ moment: Moment) -> [AppStoreQuestion]

  /// True for a stage whose state per partition is one row that each record changes: the runner hands it whole runs, does
  /// not read envelopes for it and calls neither `read`, `needs` nor `decide`. Where a run ends must not show in what it
  /// emits.
  var decidesRuns: Bool { get }
  func needs(run: Run, _ facts: any Facts) -> [Need]
  /// The records that led to something, in ascending order; the others had no action. An emitted event's origin is its
  /// record.
  func decide(run: Run, _ facts: any Facts, _ moment: Moment) -> [Decided]

  /// When what this record brings was due, for a record that the clock brought; nil for any other.
  func dueSince(_ record: Incoming) -> Instant?

  // Work that the clock brings, and not a record: called when the stage has caught up, at intervals.
  /// What must be known to say what is due; `workedOff` is the instant up to which all stages before have done their work.
  func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need]
  /// Events that the clock brings are at-least-once with ids of their own making; writes go in before they are published.
  func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled]
}

/// Something that the clock brought: an event with an id made from what it is about, so that a second copy is the same event.
public struct Scheduled: Sendable {
  public var event: Outgoing?
  public var id: String
  /// Written after the event is durable.
  public var writes: [Write]
  /// The event's and the record's timestamp.
  public var timestamp: Instant

  public init(event: Outgoing?, id: String, writes: [Write], timestamp: Instant) {
    self.event = event
    self.id = id
    self.writes = writes
    self.timestamp = timestamp
  }
}

extension Stage {
  public var output: Topic { name.output }
  public var hasState: Bool { name.hasState }
  public var takesEveryRecord: Bool { false }
  public var isPatient: Bool { false }
  public func beginsBatch(_ record: Incoming) -> Bool { false }
  public func read(_ record: Incoming) -> (any Sendable)? { nil }
  public var needsDependOnFacts: Bool { false }
  public func needs(_ record: Incoming, _ facts: any Facts) -> [Need] { [] }
  public func questions(_ record: Incoming, _ moment: Moment) -> [AppStoreQuestion] { [] }
  public var decidesRuns: Bool { false }
  public func needs(run: Run, _ facts: any Facts) -> [Need] { [] }
  public func decide(run: Run, _ facts: any Facts, _ moment: Moment) -> [Decided] { [] }
  public func dueSince(_ record: Incoming) -> Instant? { nil }
  public func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] { [] }
  public func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] { [] }
}
