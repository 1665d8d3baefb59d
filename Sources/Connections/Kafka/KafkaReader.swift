import CPurchasesKafka

/// Reads chosen partitions from chosen offsets, without a group: it leaves no trace on the broker. Committed records only.
///
/// Drive it from one thread at a time; its calls block that thread.
///
/// `@unchecked Sendable`: as `KafkaConsumer`.
public final class KafkaReader: @unchecked Sendable {
  public enum Event: Sendable {
    /// Every committed record before this offset has been read.
    case endOfPartition(offset: Int64)
    case failed(KafkaError)
  }

  public struct Polled: Sendable {
    public var records: [FetchedRecord] = []
    public var event: Event?
  }

  // Each partition has a queue of its own, so that a slow reader of one holds back no other.
  private struct Lane {
    let source: EventSource
    let queue: OpaquePointer
  }

  private let client: Client
  private let errors: EventSource
  private var lanes: [KafkaPartition: Lane] = [:]

  // Our role's settings are the consumer's: the guarantees are the same.
  public init(settings: KafkaSettings, log: @escaping KafkaLogSink = { _ in }) throws(KafkaError) {
    client = try Client(
      RD_KAFKA_CONSUMER, settings, role: KafkaConsumer.role, events: RD_KAFKA_EVENT_ERROR, skipsClose: true, log: log)
    guard let main = rd_kafka_queue_get_main(client.pointer) else { preconditionFailure("no main queue") }
    errors = EventSource(client, taking: main)
  }

  deinit { close() }

  /// Starts reading a partition, or moves to another offset of it.
  public func start(_ partition: KafkaPartition, at offset: Int64) throws(KafkaError) {
    precondition(offset >= 0, "an offset, not a symbol for one: what is gone must be noticed")
    stop(partition)
    let topic = try client.topic(partition.topic)
    guard let queue = rd_kafka_queue_new(client.pointer) else { preconditionFailure("librdkafka is out of memory") }
    let lane = Lane(source: EventSource(client, taking: queue), queue: queue)
    guard rd_kafka_consume_start_queue(topic.pointer, partition.partition, offset, queue) == 0 else {
      throw .code(rd_kafka_last_error(), "reading \(partition)")
    }
    lanes[partition] = lane
  }

  public func stop(_ partition: KafkaPartition) {
    guard lanes.removeValue(forKey: partition) != nil, let topic = try? client.topic(partition.topic) else { return }
    rd_kafka_consume_stop(topic.pointer, partition.partition)
  }

  /// Waits up to so long for the first record of a started partition, then takes what is there.
  public func poll(
    _ partition: KafkaPartition, records limit: Int, milliseconds: Int32
  ) throws(KafkaError) -> Polled {
    guard let source = lanes[partition]?.source else {
      throw KafkaError(.permanent, .state, "\(partition) is not being read")
    }
    while case .failed(let error, _)? = errors.next(milliseconds: 0) {
      // A refused log-in; everything else librdkafka retries by itself.
      if Client.isRefusal(error.code) || error.severity == .fatal { throw error }
    }
    var polled = Polled()
    source.forgetTopics()
    while polled.records.count < limit {
      guard let happening = source.next(milliseconds: polled.records.isEmpty ? milliseconds : 0) else { break }
      switch happening {
      case .record(let record, _):
        polled.records.append(record)
        continue
      case .end(_, let offset): polled.event = .endOfPartition(offset: offset)
      case .failed(let error, _): polled.event = .failed(error)
      case .assigned, .revoked, .rebalanceFailed: continue  // there is no group
      }
      break
    }
    return polled
  }

  public func close() {
    for partition in Array(lanes.keys) { stop(partition) }
  }
}
