import PurchasesContracts
import PurchasesCore
import Synchronization

/// A log whose input is recorded and whose output goes nowhere: what a replay runs the production stage on. It has no
/// producer and commits nothing to any log; the store that is being built remembers how far it has come, so that a replay
/// that was stopped goes on where it was.
public final class ReplayLog: EventLog {
  /// How far a partition is to be replayed.
  public struct Range: Sendable, Hashable {
    public let start: Int64
    public let end: Int64
  }

  private struct Tally {
    var next: [TopicPartition: Int64] = [:]
    var outputs: Int64 = 0
  }

  private let source: any EventLog
  public let ranges: [TopicPartition: Range]
  private let resumed: [TopicPartition: Int64]
  private let tally = Mutex(Tally())

  /// - Parameters:
  ///   - topics: full names of the topics to be read; each partition is read to the end that it has now.
  ///   - resumed: positions that the store has already.
  public init(
    source: any EventLog, topics: [String], resumed: [TopicPartition: Int64]
  ) throws(LogFailure) {
    self.source = source
    self.resumed = resumed
    var ranges: [TopicPartition: Range] = [:]
    for topic in topics {
      for (partition, bounds) in try source.bounds(of: topic) {
        ranges[TopicPartition(topic, partition)] = Range(start: bounds.start, end: bounds.end)
      }
    }
    self.ranges = ranges
  }

  /// Offsets to go through in all, and those that are done.
  public var progress: (done: Int64, total: Int64) {
    tally.withLock { tally in
      ranges.reduce(into: (done: Int64(0), total: Int64(0))) { sum, entry in
        sum.total += entry.value.end - entry.value.start
        sum.done +=
          min(entry.value.end, tally.next[entry.key] ?? resumed[entry.key] ?? entry.value.start) - entry.value.start
      }
    }
  }

  public var outputs: Int64 { tally.withLock { $0.outputs } }

  fileprivate func next(_ partition: TopicPartition) -> Int64? {
    tally.withLock { $0.next[partition] } ?? resumed[partition]
  }

  fileprivate func advance(_ offsets: [TopicPartition: Int64], outputs: Int) {
    tally.withLock { tally in
      for (partition, offset) in offsets { tally.next[partition] = offset }
      tally.outputs += Int64(outputs)
    }
  }

  public func ensure(_ topics: [TopicSpec]) throws(LogFailure) { throw Self.refusal }
  public func producer() throws(LogFailure) -> any LogProducer { throw Self.refusal }
  public func partitionCount(of topic: String) throws(LogFailure) -> Int32 { try source.partitionCount(of: topic) }
  public func reader() throws(LogFailure) -> any LogReader { try source.reader() }
  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] { try source.bounds(of: topic) }
  public func probe() throws(LogFailure) { try source.probe() }
  public func close() {}

  public func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    try source.offset(of: partition, at: instant)
  }

  public func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    tally.withLock { tally in
      var offsets: [Int32: Int64] = [:]
      for partition in ranges.keys where partition.topic == topic {
        offsets[partition.partition] = tally.next[partition] ?? resumed[partition]
      }
      return offsets
    }
  }

  public func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    ReplayWorker(self, try source.reader())
  }

  private static let refusal = LogFailure(.refused, "a replay writes to no log")
}

/// Hands every partition's recorded records to the one loop of the replay.
private final class ReplayWorker: LogWorker {
  private let log: ReplayLog
  private let reader: any LogReader
  private var assigned = false
  private var positions: [TopicPartition: Int64] = [:]
  private var order: [TopicPartition] = []
  private var turn = 0

  init(_ log: ReplayLog, _ reader: any LogReader) {
    self.log = log
    self.reader = reader
  }

  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    guard assigned else {
      assigned = true
      order = log.ranges.keys.sorted()
      return .assigned(order)
    }
    for _ in order.indices {
      let partition = order[turn % order.count]
      turn += 1
      guard let position = positions[partition], let range = log.ranges[partition], position < range.end else {
        continue
      }
      let found = try reader.read(partition, from: position, max: max).filter { $0.coordinates.offset < range.end }
      guard let last = found.last else {
        // What is left up to the end are the marks of transactions.
        positions[partition] = range.end
        log.advance([partition: range.end], outputs: 0)
        continue
      }
      positions[partition] = last.coordinates.offset + 1
      return .records(found, Membership(token: []))
    }
    return .idle(atEnd: Set(order))
  }

  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    var offsets: [TopicPartition: Int64?] = [:]
    for partition in partitions { offsets[partition] = .some(log.next(partition)) }
    return offsets
  }

  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) {
    positions.merge(offsets) { _, new in new }
  }

  func pause(_ partitions: [TopicPartition]) throws(LogFailure) {}
  func release(_ partitions: [TopicPartition]) throws(LogFailure) {}
  func membership() throws(LogFailure) -> Membership { Membership(token: []) }

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) { log.advance(offsets, outputs: records.count) }

  func close() { reader.close() }
}
