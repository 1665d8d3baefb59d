import PurchasesContracts
import PurchasesCore

/// How far a stage has come, as the log itself tells: what it put out names the records that it was made from. A stage
/// without state has no store to ask when its group's offsets are gone.
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

  /// The offset after the last record that something was made from, of those partitions that there is any of. Reads all that
  /// the stage ever put out.
  public func positions(of partitions: some Sequence<TopicPartition>) throws(LogFailure) -> [TopicPartition: Int64] {
    var wanted: Set<TopicPartition> = []
    for partition in partitions {
      // Of an empty one nothing was made.
      if let bounds = try log.bounds(of: partition.topic)[partition.partition], bounds.end > 0 {
        wanted.insert(partition)
      }
    }
    var positions: [TopicPartition: Int64] = [:]
    guard !wanted.isEmpty else { return positions }
    let reader = try log.reader()
    defer { reader.close() }
    for topic in outputs {
      for (number, bounds) in try log.bounds(of: topics.name(topic)).sorted(by: { $0.key < $1.key }) {
        let partition = TopicPartition(topics.name(topic), number)
        var next = bounds.start
        while next < bounds.end {
          let records = try reader.read(partition, from: next, max: Self.chunk)
          guard let last = records.last else { break }
          next = last.coordinates.offset + 1
          for stored in records {
            guard let source = source(of: stored.record, in: topic), wanted.contains(source.topicPartition) else {
              continue
            }
            positions[source.topicPartition] = max(positions[source.topicPartition] ?? 0, source.offset + 1)
          }
        }
      }
    }
    return positions
  }

  private func source(of record: Record, in topic: Topic) -> Coordinates? {
    // Other stages put records there, too.
    if topic == .quarantine, QuarantineMark(record)?.stage != stage.rawValue { return nil }
    return Envelope.Origin(of: record, in: topic)?.coordinates
  }
}
