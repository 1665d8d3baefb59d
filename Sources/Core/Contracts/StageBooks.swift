/// What a store has in its books of one stage, at one instant, for those who only look.
public struct StageBooks: Sendable, Hashable {
  /// The consumer group that the stage's part of the store belongs to; nil where the stage has never opened this store.
  public private(set) var group: String?
  public private(set) var positions: [TopicPartition: StagePosition] = [:]
  /// Batches whose outgoing records are kept until they are known to be published, in order.
  public private(set) var kept: [TopicPartition: [KeptBatch]] = [:]

  public init(group: String? = nil) { self.group = group }

  /// One row of a store's answer: a partition stands in as many rows as it has kept batches, or in one.
  public mutating func add(_ partition: TopicPartition, _ position: StagePosition, kept batch: KeptBatch?) {
    positions[partition] = position
    if let batch { kept[partition, default: []].append(batch) }
  }
}

/// A batch that is kept in the outbox: the positions around it, without its records.
public struct KeptBatch: Sendable, Hashable {
  public let from: Int64?
  public let next: Int64

  public init(from: Int64?, next: Int64) {
    self.from = from
    self.next = next
  }
}
