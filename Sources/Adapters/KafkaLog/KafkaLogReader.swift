import Glibc
import PurchasesContracts
import PurchasesKafka

/// Reads committed records without a group. Used by one thread.
final class KafkaLogReader: LogReader {
  private let log: KafkaLog
  private let reader: KafkaReader
  /// Set by a failure: the connection is then not handed on.
  private var isWorn = false
  private var isClosed = false
  private var lanes: [TopicPartition: Lane] = [:]
  private var uses: Int64 = 0

  private struct Lane {
    /// The offset that the next record delivered by the reader has, or one before it.
    var next: Int64
    /// Delivered while waiting, and not read yet.
    var waiting: [FetchedRecord] = []
    /// Everything before this has been delivered: the end that was met last. It may lie beyond `next`: transactions end in
    /// records of Kafka's own.
    var metEnd: Int64 = 0
    /// The read-committed end when we last asked.
    var knownEnd: Int64 = 0
    /// Whether it is being fetched: at the end it is not, or it would ask for more all the time.
    var isRunning = false
    var used: Int64
  }

  // Each open partition holds what is fetched ahead (`queued.max.messages.kbytes`).
  private static let openPartitions = 8
  private static let pollMilliseconds: Int32 = 500
  private static let againMilliseconds: Int32 = 20
  static let defaults = [
    // What is fetched ahead, for each open partition.
    "queued.min.messages": "10000",
    "queued.max.messages.kbytes": "4096",
    // That the end is reached is told after a request that waited so long for more.
    "fetch.wait.max.ms": "5",
  ]
  /// Records that are there come within this, or the cluster is in trouble.
  private static let patienceMilliseconds: Int64 = 30_000

  init(_ log: KafkaLog) throws(LogFailure) {
    self.log = log
    reader = try log.takeReader()
  }

  func read(_ partition: TopicPartition, from offset: Int64, max limit: Int) throws(LogFailure) -> [StoredRecord] {
    precondition(offset >= 0 && limit > 0, "an offset and a number of records")
    guard !isClosed else { throw LogFailure(.unavailable, "the reader is closed") }
    return try fetch(partition, offset, limit).map { StoredRecord($0) }
  }

  private func fetch(
    _ partition: TopicPartition, _ offset: Int64, _ limit: Int
  ) throws(LogFailure) -> [FetchedRecord] {
    var end = lanes[partition].map { $0.next == offset ? $0.knownEnd : 0 } ?? 0
    if end <= offset { end = try ask(partition, offset) }
    guard offset < end else { return [] }
    if log.isSilent(KafkaPartition(partition), offset..<end) { return [] }
    let deadline = KafkaClock.milliseconds() + KafkaLogReader.patienceMilliseconds
    while true {
      let (records, metEnd) = try next(partition, from: offset, limit, upTo: end, KafkaLogReader.pollMilliseconds)
      if !records.isEmpty {
        lanes[partition]?.knownEnd = end
        return records
      }
      // What lies before the end may be aborted records only; but the end that we know may be an old one.
      if metEnd >= end {
        log.noteSilence(KafkaPartition(partition), offset..<metEnd)
        end = try ask(partition, offset)
        if metEnd >= end { return [] }
      }
      guard KafkaClock.milliseconds() < deadline else {
        throw LogFailure(.unavailable, "no record of \(partition) came, though there are some after offset \(offset)")
      }
    }
  }

  func wait(_ partition: TopicPartition, beyond offset: Int64, milliseconds: Int64) throws(LogFailure) -> Bool {
    guard !isClosed else { throw LogFailure(.unavailable, "the reader is closed") }
    let deadline = KafkaClock.milliseconds() + milliseconds
    while true {
      let end = try bounds(partition).end
      // Only a record counts: an end that moved may have moved past nothing but the marks of transactions, and whoever waits
      // would come back at once, again and again.
      if end > offset, try keep(fetch(partition, offset, 1), partition, offset) { return true }
      let left = Int32(clamping: deadline - KafkaClock.milliseconds())
      guard left > 0 else { return false }
      usleep(UInt32(min(left, KafkaLogReader.againMilliseconds)) * 1000)
    }
  }

  /// Puts records back, so that the next `read` finds them.
  private func keep(_ records: [FetchedRecord], _ partition: TopicPartition, _ offset: Int64) -> Bool {
    guard !records.isEmpty, lanes[partition] != nil else { return false }
    lanes[partition]?.waiting.insert(contentsOf: records, at: 0)
    lanes[partition]?.next = offset
    return true
  }

  /// Records from the offset on, as far as they are there within the wait, and the end that was met last. Does not wait
  /// when that end says that nothing is left before the given one.
  private func next(
    _ partition: TopicPartition, from offset: Int64, _ limit: Int, upTo end: Int64, _ milliseconds: Int32
  ) throws(LogFailure) -> (records: [FetchedRecord], metEnd: Int64) {
    do throws(KafkaError) {
      var lane = open(partition, at: offset)
      defer { lanes[partition] = lane }
      if !lane.waiting.isEmpty {
        let records = Array(lane.waiting.prefix(limit))
        lane.waiting.removeFirst(records.count)
        lane.next = (records.last?.offset ?? offset) + 1
        return (records, lane.metEnd)
      }
      if lane.metEnd >= end { return ([], lane.metEnd) }
      if !lane.isRunning {
        try reader.start(KafkaPartition(partition), at: offset)
        lane.isRunning = true
      }
      let polled = try reader.poll(KafkaPartition(partition), records: limit, milliseconds: milliseconds)
      let records = polled.records.filter { $0.offset >= offset }
      if let last = records.last { lane.next = last.offset + 1 }
      switch polled.event {
      case .endOfPartition(let end)?:
        lane.metEnd = end
        lane.isRunning = false
        reader.stop(KafkaPartition(partition))
      case .failed(let error)? where records.isEmpty:
        // The lane is of no use any more: begin again at the next call.
        if KafkaFailures.kind(of: error) == .lost { throw error }
        if error.severity != .retriable { throw error }
      default: break
      }
      return (records, lane.metEnd)
    } catch {
      isWorn = true
      reader.stop(KafkaPartition(partition))
      lanes[partition] = nil
      throw LogFailure(error)
    }
  }

  private func open(_ partition: TopicPartition, at offset: Int64) -> Lane {
    uses += 1
    if var lane = lanes[partition], lane.next == offset {
      lane.used = uses
      return lane
    }
    if lanes[partition] == nil, lanes.count >= KafkaLogReader.openPartitions,
      let oldest = lanes.min(by: { $0.value.used < $1.value.used })?.key
    {
      reader.stop(KafkaPartition(oldest))
      lanes[oldest] = nil
    }
    reader.stop(KafkaPartition(partition))
    return Lane(next: offset, used: uses)
  }

  /// The read-committed end, once it is known that the offset is within what is there.
  private func ask(_ partition: TopicPartition, _ offset: Int64) throws(LogFailure) -> Int64 {
    let bounds = try bounds(partition)
    if let lost = KafkaLoss.failure(partition, offset, bounds) { throw lost }
    return bounds.end
  }

  private func bounds(_ partition: TopicPartition) throws(LogFailure) -> PartitionBounds {
    // Asked on the log's own connection: on the reader's it would queue behind a request that waits for records.
    let wanted = KafkaPartition(partition)
    guard let bounds = try log.bounds([wanted])[wanted] else {
      throw LogFailure(.unavailable, "\(partition) is not there")
    }
    return bounds
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    lanes = [:]
    if isWorn { reader.close() } else { log.giveBack(reader) }
  }
}

/// What is said when offsets that were to be read are not there any more.
enum KafkaLoss {
  static func failure(_ partition: TopicPartition, _ offset: Int64, _ bounds: PartitionBounds) -> LogFailure? {
    if offset < bounds.start {
      return LogFailure(
        .lost,
        "\(partition): offsets \(offset) to \(bounds.start - 1) are gone (the log begins at \(bounds.start))")
    }
    if offset > bounds.end {
      return LogFailure(
        .lost,
        "\(partition): offset \(offset) was to be read next, but the log ends at \(bounds.end): "
          + "it was cut off or made anew, and offsets \(bounds.end) to \(offset - 1) are gone")
    }
    return nil
  }
}
