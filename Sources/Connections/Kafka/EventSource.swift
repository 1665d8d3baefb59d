import CPurchasesKafka
import Glibc

/// A queue of librdkafka's events, read by one thread: records, rebalances, errors, in the order they happened.
///
/// Not Sendable: it belongs to the one thread that drives its consumer or reader.
final class EventSource {
  private let client: Client
  private let queue: OpaquePointer
  // Within one call only: a topic's handle may be freed and its address used again later.
  private var seen: [(topic: OpaquePointer, partition: Int32, identity: KafkaPartition)] = []

  // Names of headers met so far: a topic's records have the same ones in the same order, so the next is the one after the
  // last. Bounded, since the names are the senders'.
  private var names: [(bytes: [CChar], name: String)] = []
  private var nextName = 0
  private static let maximumNames = 64

  enum Happening {
    case record(FetchedRecord, size: Int)
    case assigned(PartitionList)
    case revoked(PartitionList)
    case rebalanceFailed(KafkaError)
    case end(KafkaPartition, Int64)
    case failed(KafkaError, KafkaPartition?)
  }

  /// Takes over a reference to the queue.
  init(_ client: Client, taking queue: OpaquePointer) {
    self.client = client
    self.queue = queue
  }

  deinit { rd_kafka_queue_destroy(queue) }

  func forgetTopics() { seen.removeAll(keepingCapacity: true) }

  /// The next happening, or nil when there was none in time.
  func next(milliseconds: Int32) -> Happening? {
    let deadline = milliseconds > 0 ? monotonicMilliseconds() + Int64(milliseconds) : 0
    var wait = milliseconds
    while true {
      guard let event = rd_kafka_queue_poll(queue, wait) else { return nil }
      defer { rd_kafka_event_destroy(event) }
      if let happening = read(event) { return happening }
      wait = milliseconds > 0 ? Int32(max(0, deadline - monotonicMilliseconds())) : 0
    }
  }

  private func read(_ event: OpaquePointer) -> Happening? {
    switch rd_kafka_event_type(event) {
    case RD_KAFKA_EVENT_FETCH:
      // librdkafka puts one record into each fetch event.
      guard let message = rd_kafka_event_message_next(event) else { return nil }
      return .record(record(message), size: message.pointee.len + message.pointee.key_len)
    case RD_KAFKA_EVENT_REBALANCE:
      let code = rd_kafka_event_error(event)
      guard let list = rd_kafka_event_topic_partition_list(event) else { return nil }
      let copy = PartitionList(taking: rd_kafka_topic_partition_list_copy(list))
      switch code {
      case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: return .assigned(copy)
      case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: return .revoked(copy)
      default: return .rebalanceFailed(.code(code, "rebalancing"))
      }
    case RD_KAFKA_EVENT_ERROR:
      var partition: KafkaPartition?
      var offset: Int64 = -1
      if let found = rd_kafka_event_topic_partition(event) {
        partition = KafkaPartition(String(cString: found.pointee.topic), found.pointee.partition)
        offset = found.pointee.offset
        rd_kafka_topic_partition_destroy(found)
      }
      if rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__PARTITION_EOF, let partition {
        return .end(partition, offset)
      }
      return .failed(client.note(event), partition)
    default:
      return nil
    }
  }

  private func record(_ message: UnsafePointer<rd_kafka_message_t>) -> FetchedRecord {
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let timestamp = rd_kafka_message_timestamp(message, &kind)
    return FetchedRecord(
      source: identity(message), offset: message.pointee.offset, timestamp: timestamp,
      key: EventSource.bytes(message.pointee.key, message.pointee.key_len),
      value: EventSource.bytes(message.pointee.payload, message.pointee.len), headers: headers(message))
  }

  private func identity(_ message: UnsafePointer<rd_kafka_message_t>) -> KafkaPartition {
    let partition = message.pointee.partition
    guard let topic = message.pointee.rkt else { return KafkaPartition("", partition) }
    for known in seen where known.topic == topic && known.partition == partition { return known.identity }
    let identity = KafkaPartition(String(cString: rd_kafka_topic_name(topic)), partition)
    seen.append((topic, partition, identity))
    return identity
  }

  private func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> [KafkaHeader] {
    var list: OpaquePointer?
    guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list else { return [] }
    let count = rd_kafka_header_cnt(list)
    var headers: [KafkaHeader] = []
    headers.reserveCapacity(count)
    for index in 0..<count {
      var name: UnsafePointer<CChar>?
      var value: UnsafeRawPointer?
      var size = 0
      guard rd_kafka_header_get_all(list, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR, let name else {
        break
      }
      headers.append(KafkaHeader(headerName(name), EventSource.bytes(value, size)))
    }
    return headers
  }

  private func headerName(_ name: UnsafePointer<CChar>) -> String {
    for _ in names.indices {
      if nextName >= names.count { nextName = 0 }
      let known = names[nextName].bytes.withUnsafeBufferPointer {
        $0.baseAddress.map { strcmp($0, name) == 0 } ?? false
      }
      nextName += 1
      if known { return names[nextName - 1].name }
    }
    let made = String(cString: name)
    if names.count < EventSource.maximumNames { names.append((Array(made.utf8CString), made)) }
    return made
  }

  private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
    start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) }
  }
}
