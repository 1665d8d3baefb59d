import PurchasesContracts
import PurchasesCore

/// How far groups have come in their topics, asked of the log alone, so that it holds across processes.
public final class GroupProgress {
  private let log: any EventLog
  private let topics: TopicSettings
  private var reader: (any LogReader)?

  public init(log: any EventLog, topics: TopicSettings) {
    self.log = log
    self.topics = topics
  }

  public func close() {
    reader?.close()
    reader = nil
  }

  /// The earliest time among the first records that a group has not worked off; nil when there is none.
  public func firstWaiting(group: String, topic: Topic) throws(LogFailure) -> Instant? {
    var earliest: Instant?
    for record in try firstRecords(group: group, topic: topic) {
      earliest = min(earliest ?? record.record.timestamp, record.record.timestamp)
    }
    return earliest
  }

  /// Whether a group has nothing to do in a topic. A parked record whose time has not come is nothing to do.
  public func isIdle(group: String, topic: Topic, now: Instant) throws(LogFailure) -> Bool {
    for record in try firstRecords(group: group, topic: topic) {
      guard topic == .parked, let parking = Parking(record.record), parking.notBefore > now else { return false }
    }
    return true
  }

  /// Since when a group could have worked off what is next in a topic, at the earliest; nil when it has nothing to do. What
  /// is parked can be worked off from the time of its next try.
  public func dueSince(group: String, topic: Topic, now: Instant) throws(LogFailure) -> Instant? {
    var earliest: Instant?
    for record in try firstRecords(group: group, topic: topic) {
      let parking = topic == .parked ? Parking(record.record) : nil
      let since = parking?.notBefore ?? record.record.timestamp
      if since <= now { earliest = min(earliest ?? since, since) }
    }
    return earliest
  }

  /// Records between a group's offsets and the end, by topic.
  public func lag(group: String, topic: Topic) throws(LogFailure) -> Int64 {
    let name = topics.name(topic)
    let committed = try log.committed(group: group, topic: name)
    return try log.bounds(of: name).reduce(0) { $0 + max(0, $1.value.end - (committed[$1.key] ?? $1.value.start)) }
  }

  private func firstRecords(group: String, topic: Topic) throws(LogFailure) -> [StoredRecord] {
    let name = topics.name(topic)
    let committed = try log.committed(group: group, topic: name)
    var records: [StoredRecord] = []
    for (partition, bounds) in try log.bounds(of: name).sorted(by: { $0.key < $1.key }) {
      let next = committed[partition] ?? bounds.start
      // Between an offset and the end there may be nothing but the marks of transactions: only reading tells.
      guard next < bounds.end else { continue }
      let opened: any LogReader
      if let reader { opened = reader } else { opened = try log.reader() }
      reader = opened
      if let first = try opened.read(TopicPartition(name, partition), from: next, max: 1).first {
        records.append(first)
      }
    }
    return records
  }
}
