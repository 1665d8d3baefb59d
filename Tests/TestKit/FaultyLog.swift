import PurchasesContracts
import PurchasesCore
import Synchronization

/// What happens to a commit of a worker instead of, or after, the real one.
public enum CommitFault: Sendable {
  /// Fails with this kind; nothing reaches the log.
  case before(LogFailure.Kind)
  /// Reaches the log, and fails with this kind all the same: the answer is lost.
  case after(LogFailure.Kind)
}

/// A real log of whose workers' commits some fail, in the order given.
public final class FaultyLog: EventLog {
  private let real: any EventLog
  private let faults: Mutex<[Int: CommitFault]>
  private let commits = Mutex(0)
  private let early = Mutex(0)

  /// - Parameter faults: by number of the commit, from 0.
  public init(_ real: any EventLog, faults: [Int: CommitFault]) {
    self.real = real
    self.faults = Mutex(faults)
  }

  public var openFaults: Int { faults.withLock { $0.count } }
  /// How often a worker committed, those that failed included.
  public var commitsSoFar: Int { commits.withLock { $0 } }

  /// Polls before the commit that was begun last was finished.
  public var pollsBeforeFinish: Int { early.withLock { $0 } }

  fileprivate func polledEarly() { early.withLock { $0 += 1 } }

  fileprivate func nextFault() -> CommitFault? {
    let number = commits.withLock { count in
      defer { count += 1 }
      return count
    }
    return faults.withLock { $0.removeValue(forKey: number) }
  }

  public func ensure(_ topics: [TopicSpec]) throws(LogFailure) { try real.ensure(topics) }
  public func partitionCount(of topic: String) throws(LogFailure) -> Int32 { try real.partitionCount(of: topic) }
  public func producer() throws(LogFailure) -> any LogProducer { try real.producer() }
  public func reader() throws(LogFailure) -> any LogReader { try real.reader() }
  public func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    try real.committed(group: group, topic: topic)
  }
  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] { try real.bounds(of: topic) }
  public func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    try real.offset(of: partition, at: instant)
  }
  public func probe() throws(LogFailure) { try real.probe() }
  public func close() { real.close() }
  public func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    FaultyWorker(self, try real.worker(settings))
  }
}

private final class FaultyWorker: LogWorker {
  private let log: FaultyLog
  private let real: any LogWorker
  private var begun: LogFailure?
  private var isFinished = true

  init(_ log: FaultyLog, _ real: any LogWorker) {
    self.log = log
    self.real = real
  }

  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    if !isFinished { log.polledEarly() }
    return try real.poll(max: max, waitMilliseconds: waitMilliseconds)
  }
  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    try real.committed(partitions)
  }
  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) { try real.start(offsets) }
  func pause(_ partitions: [TopicPartition]) throws(LogFailure) { try real.pause(partitions) }
  func release(_ partitions: [TopicPartition]) throws(LogFailure) { try real.release(partitions) }
  func membership() throws(LogFailure) -> Membership { try real.membership() }
  func close() { real.close() }

  // As a remote log: what went wrong is told when the commit is finished.
  func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    isFinished = false
    do throws(LogFailure) { try commit(records, offsets: offsets, membership: membership) } catch { begun = error }
  }

  func finishCommit() throws(LogFailure) {
    isFinished = true
    guard let failure = begun else { return }
    begun = nil
    throw failure
  }

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    switch log.nextFault() {
    case nil: try real.commit(records, offsets: offsets, membership: membership)
    case .before(let kind): throw LogFailure(kind, "made to fail before it reached the log")
    case .after(let kind):
      try real.commit(records, offsets: offsets, membership: membership)
      throw LogFailure(kind, "made to fail after it reached the log")
    }
  }
}
