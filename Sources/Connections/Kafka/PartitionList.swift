import CPurchasesKafka

/// A list of partitions in librdkafka's own form.
///
/// Not Sendable: made, lent and freed within one call.
final class PartitionList {
  typealias Pointer = UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
  let pointer: Pointer

  init(_ partitions: some Collection<KafkaPartition>) {
    pointer = rd_kafka_topic_partition_list_new(Int32(partitions.count))
    for partition in partitions { rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition) }
  }

  init(_ offsets: [KafkaPartition: Int64]) {
    pointer = rd_kafka_topic_partition_list_new(Int32(offsets.count))
    for (partition, offset) in offsets {
      rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition).pointee.offset = offset
    }
  }

  /// Takes over a list that librdkafka allocated for us.
  init(taking pointer: Pointer) {
    self.pointer = pointer
  }

  deinit { rd_kafka_topic_partition_list_destroy(pointer) }

  static func partitions(_ pointer: UnsafePointer<rd_kafka_topic_partition_list_t>) -> [KafkaPartition] {
    (0..<Int(pointer.pointee.cnt)).map { identity(pointer.pointee.elems[$0]) }
  }

  static func identity(_ element: rd_kafka_topic_partition_t) -> KafkaPartition {
    KafkaPartition(String(cString: element.topic), element.partition)
  }

  var partitions: [KafkaPartition] { PartitionList.partitions(pointer) }

  /// The offsets in the list; nil where there is none.
  func offsets(_ doing: String) throws(KafkaError) -> [KafkaPartition: Int64?] {
    var found: [KafkaPartition: Int64?] = [:]
    for index in 0..<Int(pointer.pointee.cnt) {
      let element = pointer.pointee.elems[index]
      let partition = PartitionList.identity(element)
      try KafkaError.check(element.err, "\(doing) of \(partition)")
      found[partition] = .some(element.offset >= 0 ? element.offset : nil)
    }
    return found
  }
}
