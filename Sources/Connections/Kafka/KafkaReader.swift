import CPurchasesKafka

/// Reads chosen partitions from chosen offsets, without a group: it leaves no trace on the broker. Committed records only.
///
/// Drive it from one thread at a time; its calls block that thread.
///
/// `@unchecked Sendable`: as `KafkaConsumer`.
public final class KafkaReader: @unchecked Sendable {
  public enum Event: Sendable {
    /// Every committed record before this offset has been read.
    case endOfPartition(TopicPartition, offset: Int64)
    case failed(KafkaError, TopicPartition?)
  }

  public struct Polled: Sendable {
    public var records: [ReceivedRecord] = []
    public var event: Event?
  }

  private let client: Client
  private let queue: OpaquePointer
  private let source: EventSource
  private var started: Set<TopicPartition> = []

  // Our role's settings are the consumer's: the guarantees are the same.
  public init(settings: KafkaSettings, log: @escaping KafkaLog = { _ in }) throws(KafkaError) {
    client = try Client(
      RD_KAFKA_CONSUMER, settings, role: KafkaConsumer.role, events: RD_KAFKA_EVENT_ERROR, skipsClose: true, log: log)
    guard let queue = rd_kafka_queue_new(client.pointer) else { preconditionFailure("no queue") }
    self.queue = queue
    source = EventSource(client, taking: queue)
    // Errors of the client come in line with the records.
    if let main = rd_kafka_queue_get_main(client.pointer) {
      rd_kafka_queue_forward(main, queue)
      rd_kafka_queue_destroy(main)
    }
  }

  deinit { close() }

  /// Starts reading a partition, or moves to another offset of it.
  public func start(_ partition: TopicPartition, at offset: Int64) throws(KafkaError) {
    precondition(offset >= 0, "an offset, not a symbol for one: what is gone must be noticed")
    let topic = try client.topic(partition.topic)
    stop(partition)
    guard rd_kafka_consume_start_queue(topic.pointer, partition.partition, offset, queue) == 0 else {
      throw .code(rd_kafka_last_error(), "reading \(partition)")
    }
    started.insert(partition)
  }

  public func stop(_ partition: TopicPartition) {
    guard started.remove(partition) != nil, let topic = try? client.topic(partition.topic) else { return }
    rd_kafka_consume_stop(topic.pointer, partition.partition)
  }

  public func poll(records limit: Int, bytes: Int = .max, milliseconds: Int32) -> Polled {
    var polled = Polled()
    var size = 0
    source.forgetTopics()
    while polled.records.count < limit, size < bytes {
      guard let happening = source.next(milliseconds: polled.records.isEmpty ? milliseconds : 0) else { break }
      switch happening {
      case .record(let record, let bytes):
        polled.records.append(record)
        size += bytes
        continue
      case .end(let partition, let offset): polled.event = .endOfPartition(partition, offset: offset)
      case .failed(let error, let partition): polled.event = .failed(error, partition)
      case .assigned, .revoked, .rebalanceFailed: continue  // there is no group
      }
      break
    }
    return polled
  }

  /// First offset still kept and the offset after the last record that read-committed readers may see.
  public func bounds(_ partitions: [TopicPartition], milliseconds: Int32) throws(KafkaError) -> [TopicPartition:
    PartitionBounds]
  {
    try client.bounds(partitions, milliseconds: milliseconds)
  }

  public func close() {
    for partition in started { stop(partition) }
  }
}
