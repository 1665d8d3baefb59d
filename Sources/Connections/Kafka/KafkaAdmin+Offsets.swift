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

  /// What a group has committed, final: an offset that is part of a transaction under way is waited for. Partitions
  /// without a committed offset are left out. Nil asks for all partitions.
  public func committed(
    group: String, partitions: [KafkaPartition]? = nil, milliseconds: Int32
  ) throws(KafkaError) -> [KafkaPartition: Int64] {
    let deadline = monotonicMilliseconds() + Int64(milliseconds)
    while true {
      do throws(KafkaError) {
        return try committedOnce(group, partitions, Int32(max(1, deadline - monotonicMilliseconds())))
      } catch {
        guard error.severity == .retriable, monotonicMilliseconds() < deadline else { throw error }
      }
    }
  }

  private func committedOnce(_ group: String, _ partitions: [KafkaPartition]?, _ milliseconds: Int32)
    throws(KafkaError) -> [KafkaPartition: Int64]
  {
    let list = partitions.map { PartitionList($0) }
    guard let wanted = rd_kafka_ListConsumerGroupOffsets_new(group, list?.pointer) else {
      preconditionFailure("librdkafka is out of memory")
    }
    defer { rd_kafka_ListConsumerGroupOffsets_destroy(wanted) }
    var pointers: [OpaquePointer?] = [wanted]
    let event = try client.ask(
      "asking for the positions of group \(group)", RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, milliseconds,
      committed: true
    ) { options, queue in rd_kafka_ListConsumerGroupOffsets(client.pointer, &pointers, 1, options, queue) }
    defer { rd_kafka_event_destroy(event) }
    var count = 0
    let results = rd_kafka_ListConsumerGroupOffsets_result_groups(
      rd_kafka_event_ListConsumerGroupOffsets_result(event), &count)
    var found: [KafkaPartition: Int64] = [:]
    for index in 0..<count {
      guard let result = results?[index] else { continue }
      if let error = rd_kafka_group_result_error(result) {
        let code = rd_kafka_error_code(error)
        if KafkaCode(code) == .groupNotFound { continue }
        try KafkaError.check(code, "asking for the positions of group \(group)")
      }
      guard let offsets = rd_kafka_group_result_partitions(result) else { continue }
      for element in 0..<Int(offsets.pointee.cnt) {
        let entry = offsets.pointee.elems[element]
        let identity = PartitionList.identity(entry)
        try KafkaError.check(entry.err, "asking for the position of group \(group) in \(identity)")
        if entry.offset >= 0 { found[identity] = entry.offset }
      }
    }
    return found
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
