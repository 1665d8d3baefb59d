import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Reads a topic's committed records, partition by partition, or as they come.
public struct TopicTail {
  private let log: any EventLog
  private let topic: String

  static let pageRecords = 500
  static let waitMilliseconds: Int64 = 200

  public init(log: any EventLog, topic: String) {
    self.log = log
    self.topic = topic
  }

  public func run(
    from: Instant?, follow: Bool, limit: Int64?, until stop: StopSignal, _ body: (StoredRecord) throws -> Void
  ) throws {
    let reader = try log.reader()
    defer { reader.close() }
    var next: [Int32: Int64] = [:]
    for (partition, bounds) in try log.bounds(of: topic) {
      if let from {
        // None that late yet: what comes from now on is later.
        next[partition] = try log.offset(of: TopicPartition(topic, partition), at: from) ?? bounds.end
      } else {
        next[partition] = bounds.start
      }
    }
    var left = limit ?? .max
    while !stop.isSet {
      var found = false
      for partition in next.keys.sorted() {
        while let offset = next[partition], left > 0, !stop.isSet {
          let records = try reader.read(
            TopicPartition(topic, partition), from: offset, max: Int(min(left, Int64(Self.pageRecords))))
          guard let last = records.last else { break }
          found = true
          try records.forEach(body)
          left -= Int64(records.count)
          next[partition] = last.coordinates.offset + 1
        }
      }
      guard left > 0, follow || found else { return }
      if !found, let first = next.keys.min() {
        _ = try reader.wait(TopicPartition(topic, first), beyond: next[first] ?? 0, milliseconds: Self.waitMilliseconds)
      }
    }
  }
}
