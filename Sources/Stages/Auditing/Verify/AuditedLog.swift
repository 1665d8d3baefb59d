import PurchasesContracts

/// What is verified: a log itself, or a folder that was exported from one. Used by one thread.
public protocol AuditedLog: AnyObject {
  /// The offsets of each partition that may be read now.
  func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds]
  /// Records of one partition from `offset` on, in order, at most `max`; empty only at the end.
  func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord]
  /// The offset up to which the stage that reads this partition has done its work; nil where nobody knows.
  func workedOff(_ partition: TopicPartition) throws(LogFailure) -> Int64?
  /// False where the end of one topic doesn't belong to the same moment as the end of another, so that a missing output
  /// says nothing.
  var isComplete: Bool { get }
}

/// A deployment's log.
public final class LiveLog: AuditedLog {
  private let log: any EventLog
  private let reader: any LogReader
  private let topics: TopicSettings
  private let groups: [Topic: String]
  private var committed: [String: [Int32: Int64]] = [:]

  /// - Parameter groups: the consumer group of the stage that reads each topic.
  public init(_ log: any EventLog, topics: TopicSettings, groups: [Topic: String]) throws(LogFailure) {
    self.log = log
    self.topics = topics
    self.groups = groups
    reader = try log.reader()
  }

  deinit { reader.close() }

  public var isComplete: Bool { true }

  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] { try log.bounds(of: topic) }

  public func read(
    _ partition: TopicPartition, from offset: Int64, max: Int
  ) throws(LogFailure) -> [StoredRecord] {
    try reader.read(partition, from: offset, max: max)
  }

  /// As it stood when it was first asked for: what is read later must be newer, so that its outputs are there.
  public func workedOff(_ partition: TopicPartition) throws(LogFailure) -> Int64? {
    guard let topic = topics.topic(named: partition.topic), let group = groups[topic] else { return nil }
    if let known = committed[partition.topic] { return known[partition.partition] ?? 0 }
    let offsets = try log.committed(group: group, topic: partition.topic)
    committed[partition.topic] = offsets
    return offsets[partition.partition] ?? 0
  }
}

extension AuditedLog {
  /// Hands over every record of a partition within the bounds, in order, until the body answers false.
  func forEach(
    _ partition: TopicPartition, _ bounds: OffsetBounds, _ body: (StoredRecord) throws(LogFailure) -> Bool
  ) throws(LogFailure) {
    var next = bounds.start
    while next < bounds.end {
      let records = try read(partition, from: next, max: Self.chunk)
      guard let last = records.last else { return }
      for stored in records {
        guard stored.coordinates.offset < bounds.end, try body(stored) else { return }
      }
      // A log that goes back would be read for ever.
      guard last.coordinates.offset >= next else {
        throw LogFailure(.corrupt, "\(partition): offset \(last.coordinates.offset) stands behind offset \(next)")
      }
      next = last.coordinates.offset + 1
    }
  }

  /// As `forEach`; answers why it came to an end early where the log's own data is broken. Other partitions can still be
  /// judged then.
  func damage(
    _ partition: TopicPartition, _ bounds: OffsetBounds, _ body: (StoredRecord) throws(LogFailure) -> Bool
  ) throws(LogFailure) -> String? {
    do throws(LogFailure) {
      try forEach(partition, bounds, body)
    } catch {
      guard error.kind == .corrupt else { throw error }
      return error.reason
    }
    return nil
  }

  /// Records in memory at a time: enough to keep a broker's fetches full, little enough at a few KB each.
  private static var chunk: Int { 512 }
}

extension AuditedLog {
  /// The bounds of a topic that is audited. A log that only programs from before catalogues had a topic have written to has none
  /// of that name; one that is taken away is missed by who signed for its records.
  func auditedBounds(of topic: Topic, _ topics: TopicSettings) throws(LogFailure) -> [Int32: OffsetBounds] {
    do throws(LogFailure) { return try bounds(of: topics.name(topic)) } catch {
      guard topic == .catalogue, error.kind == .refused else { throw error }
      return [:]
    }
  }
}
