import PurchasesContracts
import PurchasesCore

/// How far a stage has come, as the log itself tells: what it put out names the records that it was made from. Asked where
/// neither the group nor a store knows.
public struct OutputTrail {
  private let stage: StageName
  private let outputs: [Topic]
  private let topics: TopicSettings
  private let log: any EventLog

  /// Records per read.
  private static let chunk = 1_000

  public init(stage: StageName, output: Topic, topics: TopicSettings, log: any EventLog) {
    self.stage = stage
    outputs = [output, .parked, .quarantine]
    self.topics = topics
    self.log = log
  }

  /// The offset after the last record that something was made from, and where the partition ends.
  public struct Reached: Sendable, Hashable {
    public let next: Int64
    public let end: Int64

    public init(next: Int64, end: Int64) {
      self.next = next
      self.end = end
    }
  }

  /// How far the stage has come, of those partitions that anything was made of. Reads all that it ever put out.
  public func positions(
    of partitions: some Sequence<TopicPartition>
  ) throws(LogFailure) -> [TopicPartition: Reached] {
    var ends: [TopicPartition: Int64] = [:]
    let partitions = Set(partitions)
    // In an order of our own: a run must be the same each time, and a set's order is not.
    for topic in Set(partitions.map(\.topic)).sorted() {
      for (number, bounds) in try log.bounds(of: topic) {
        let partition = TopicPartition(topic, number)
        // Of an empty one nothing was made.
        if bounds.end > 0, partitions.contains(partition) { ends[partition] = bounds.end }
      }
    }
    var last: [TopicPartition: Int64] = [:]
    guard !ends.isEmpty else { return [:] }
    let reader = try log.reader()
    defer { reader.close() }
    for topic in outputs {
      for (number, bounds) in try log.bounds(of: topics.name(topic)).sorted(by: { $0.key < $1.key }) {
        let partition = TopicPartition(topics.name(topic), number)
        var next = bounds.start
        while next < bounds.end {
          let records = try reader.read(partition, from: next, max: Self.chunk)
          guard let newest = records.last else { break }
          next = newest.coordinates.offset + 1
          for stored in records {
            guard let source = source(of: stored.record, in: topic), ends[source.topicPartition] != nil else {
              continue
            }
            last[source.topicPartition] = max(last[source.topicPartition] ?? 0, source.offset)
          }
        }
      }
    }
    var reached: [TopicPartition: Reached] = [:]
    for (partition, offset) in last {
      // Anybody can have written the number.
      let next = offset < .max ? offset + 1 : offset
      reached[partition] = Reached(next: next, end: ends[partition] ?? 0)
    }
    return reached
  }

  private func source(of record: Record, in topic: Topic) -> Coordinates? {
    // Other stages put records there, too.
    if topic == .quarantine, QuarantineMark(record)?.stage != stage.rawValue { return nil }
    return Envelope.Origin(of: record, in: topic)?.coordinates
  }
}
