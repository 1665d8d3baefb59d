import PurchasesCore

/// Why a log could not do what it was asked. The kinds are what callers act on; the reason is for people and never holds
/// a key or a value.
public struct LogFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable, Hashable {
    /// Another process took this instance's identity over: this one must exit, not retry.
    case fenced
    /// The membership that a batch belongs to is over (rebalance, expired session): drop the batch, rejoin, recover.
    case stale
    /// Nothing was written; the same work may be tried again.
    case aborted
    /// It can't be told whether the commit took effect: the worker replaced its producer, run recovery before going on.
    case indefinite
    /// The log can't be reached or is short of something; try again later.
    case unavailable
    /// Offsets that were to be read next are no longer there.
    case lost
    /// The request can't succeed as it stands: unknown topic, record too large, setting refused, not permitted.
    case refused
    /// The log's own data is broken.
    case corrupt
  }

  public let kind: Kind
  public let reason: String

  public init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  public var description: String { "\(kind.rawValue): \(reason)" }
}

/// An ordered, partitioned, durable log: Kafka, or one SQLite file. Methods block; call them on threads of your own.
public protocol EventLog: Sendable {
  /// Creates the topics that are missing. A topic that exists with another number of partitions is a `refused` failure.
  func ensure(_ topics: [TopicSpec]) throws(LogFailure)
  func partitionCount(of topic: String) throws(LogFailure) -> Int32
  /// An idempotent producer, durable on every in-sync replica before it reports success.
  func producer() throws(LogFailure) -> any LogProducer
  /// A member of a consumer group, with the transactions that go with it.
  func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker
  /// Reads committed records without being a member of any group. Offsets come from the caller.
  func reader() throws(LogFailure) -> any LogReader
  /// The group's committed offsets of a topic; partitions without one are absent.
  func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64]
  /// First offset still held, and the offset after the last one that a read-committed reader may see.
  func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds]
  /// The first offset whose record has this timestamp or a later one; nil when there is none.
  func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64?
  /// Appends nothing and asks for no topic: answers whether the log can be reached now.
  func probe() throws(LogFailure)
  func close()
}

public struct OffsetBounds: Sendable, Hashable {
  public let start: Int64
  public let end: Int64

  public init(start: Int64, end: Int64) {
    self.start = start
    self.end = end
  }
}

/// Publishes records outside any transaction. Safe to share between threads.
public protocol LogProducer: Sendable {
  /// Hands the records over and returns; `done` is called once, from a thread of the log's, with a result per record in
  /// the given order. A success means durable. A full queue is an `unavailable` failure, not a wait without end.
  func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void)
  /// Waits for what was handed over, at most so long; reports how many records were still open and are given up.
  func close(withinMilliseconds: Int64) -> Int
}

public struct WorkerSettings: Sendable, Hashable {
  public var group: String
  public var topics: [String]
  /// Names this worker's transactions; one that starts under the same name fences the older one.
  public var instance: String
  /// Static membership: a restart within the session time-out under the same instance keeps its partitions.
  public var isStatic: Bool
  public var sessionTimeoutMilliseconds: Int64
  public var transactionTimeoutMilliseconds: Int64
  /// Whether records may gather for a tenth of a second before they are handed out: a log that is asked for each of them as it
  /// comes has as much work with a reader that nobody waits for as with one that matters.
  public var isPatient: Bool

  /// 10 s: long enough for a pause of the runtime or the disk, short enough that a crash is noticed while a person waits.
  public static let defaultSessionTimeout: Int64 = 10_000
  /// 10 s: a crashed transaction holds back read-committed readers for so long.
  public static let defaultTransactionTimeout: Int64 = 10_000

  public init(
    group: String, topics: [String], instance: String, isStatic: Bool = false,
    sessionTimeoutMilliseconds: Int64 = WorkerSettings.defaultSessionTimeout,
    transactionTimeoutMilliseconds: Int64 = WorkerSettings.defaultTransactionTimeout, isPatient: Bool = false
  ) {
    self.group = group
    self.topics = topics
    self.instance = instance
    self.isStatic = isStatic
    self.sessionTimeoutMilliseconds = sessionTimeoutMilliseconds
    self.transactionTimeoutMilliseconds = transactionTimeoutMilliseconds
    self.isPatient = isPatient
  }
}

/// The membership under which records were handed out; a commit must name it. Opaque to all but its log.
public struct Membership: Sendable, Hashable {
  public let token: [UInt8]
  public init(token: [UInt8]) { self.token = token }
}

public enum Polled: Sendable {
  /// These partitions are this worker's now. Nothing is read from them until `start` names the offsets.
  case assigned([TopicPartition])
  /// These partitions go to somebody else once `release` is called; `lost` when they are somebody else's already.
  case revoked([TopicPartition], lost: Bool)
  /// Records in order per partition. `membership` is what `commit` needs for them.
  case records([StoredRecord], Membership)
  /// No record came within the wait. `atEnd` holds the started partitions that are known to be read to their end.
  case idle(atEnd: Set<TopicPartition>)
}

/// A member of a group that consumes, transforms and produces atomically. Used by one thread.
public protocol LogWorker: AnyObject {
  /// Waits for something to happen, at most `waitMilliseconds`. Must be called at least once per session time-out.
  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled
  /// Stable committed offsets of the group; nil for a partition that has none.
  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?]
  /// Begins (or begins again) to read partitions of the assignment at these offsets; what was fetched before is dropped.
  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure)
  func pause(_ partitions: [TopicPartition]) throws(LogFailure)
  /// Lets go of revoked partitions. Between `.revoked` and this call the worker may still commit.
  func release(_ partitions: [TopicPartition]) throws(LogFailure)
  /// The present membership, for a commit that belongs to no batch (recovery).
  func membership() throws(LogFailure) -> Membership
  /// Appends the records and moves the group's offsets in one transaction: both or neither. Offsets name the next record
  /// to be read. After an `indefinite` failure the worker is usable again, the outcome is not known.
  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership) throws(LogFailure)
  /// The same in two halves: begins the commit, and returns while a remote log is still at it. Until `finishCommit` the
  /// worker reads on (`poll`, `start`, `pause`); whatever commits, asks for offsets or lets partitions go comes after it.
  func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership) throws(LogFailure)
  /// Waits for the commit that was begun and fails as `commit` does; does nothing where none was.
  func finishCommit() throws(LogFailure)
  /// Leaves the group at once, so that others take over without waiting for the session to run out.
  func close()
}

extension LogWorker {
  // For a log that is done at once.
  public func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) { try commit(records, offsets: offsets, membership: membership) }

  public func finishCommit() throws(LogFailure) {}
}

/// Reads committed records by offset. Used by one thread.
public protocol LogReader: AnyObject {
  /// Records of one partition from `offset` on, in order, at most `max`; empty only at the end as it stood at the call.
  func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord]
  /// Waits until the partition's end passes `offset` or the time is up.
  func wait(_ partition: TopicPartition, beyond offset: Int64, milliseconds: Int64) throws(LogFailure) -> Bool
  func close()
}
