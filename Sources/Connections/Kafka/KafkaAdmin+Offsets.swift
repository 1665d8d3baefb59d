import CPurchasesKafka

extension KafkaAdmin {
  /// First offset still kept and the offset after the last record that read-committed readers may see.
  public func bounds(_ partitions: [KafkaPartition], milliseconds: Int32) throws(KafkaError) -> [KafkaPartition:
    PartitionBounds]
  {
    try client.bounds(partitions, milliseconds: milliseconds)
  }

  /// The offset after the last record, those of open and aborted transactions included.
  public func uncommittedEnds(_ partitions: [KafkaPartition], milliseconds: Int32) throws(KafkaError)
    -> [KafkaPartition: Int64]
  {
    let wanted = Dictionary(
      partitions.map { ($0, Int64(RD_KAFKA_OFFSET_SPEC_LATEST.rawValue)) }, uniquingKeysWith: { a, _ in a })
    return try client.listOffsets(wanted, committed: false, milliseconds: milliseconds)
  }

  /// For each partition the first offset whose timestamp is at or after the given one, in milliseconds since 1970; nil
  /// where no such record is there yet.
  public func offsets(forTimes times: [KafkaPartition: Int64], milliseconds: Int32) throws(KafkaError)
    -> [KafkaPartition: Int64?]
  {
    try client.listOffsets(times, committed: true, milliseconds: milliseconds).mapValues { $0 >= 0 ? $0 : nil }
  }

  /// Deletes all records before these offsets.
  public func deleteRecords(before offsets: [KafkaPartition: Int64], milliseconds: Int32) throws(KafkaError) {
    let list = PartitionList(offsets)
    guard let wanted = rd_kafka_DeleteRecords_new(list.pointer) else {
      preconditionFailure("librdkafka is out of memory")
    }
    defer { rd_kafka_DeleteRecords_destroy(wanted) }
    var pointers: [OpaquePointer?] = [wanted]
    let event = try client.ask("deleting records", RD_KAFKA_ADMIN_OP_DELETERECORDS, milliseconds) { options, queue in
      rd_kafka_DeleteRecords(client.pointer, &pointers, 1, options, queue)
    }
    defer { rd_kafka_event_destroy(event) }
    guard let result = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event)) else { return }
    for index in 0..<Int(result.pointee.cnt) {
      let element = result.pointee.elems[index]
      try KafkaError.check(element.err, "deleting records of \(PartitionList.identity(element))")
    }
  }
}
