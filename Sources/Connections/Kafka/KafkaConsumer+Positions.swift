import CPurchasesKafka

/// Where to read. All calls block the calling thread.
extension KafkaConsumer {
  /// Goes on at these offsets. What was fetched from elsewhere is dropped.
  public func seek(_ offsets: [KafkaPartition: Int64], milliseconds: Int32) throws(KafkaError) {
    let list = PartitionList(offsets)
    try KafkaError.check(rd_kafka_seek_partitions(client.pointer, list.pointer, milliseconds), "seeking")
    _ = try list.offsets("seeking")
  }

  /// Stops delivering records of these partitions; we stay a member as long as we poll.
  public func pause(_ partitions: [KafkaPartition]) throws(KafkaError) {
    let list = PartitionList(partitions)
    try KafkaError.check(rd_kafka_pause_partitions(client.pointer, list.pointer), "pausing")
    _ = try list.offsets("pausing")
  }

  public func resume(_ partitions: [KafkaPartition]) throws(KafkaError) {
    let list = PartitionList(partitions)
    try KafkaError.check(rd_kafka_resume_partitions(client.pointer, list.pointer), "resuming")
    _ = try list.offsets("resuming")
  }

  /// The offset after the last record delivered; nil where none was.
  public func positions(_ partitions: [KafkaPartition]) throws(KafkaError) -> [KafkaPartition: Int64?] {
    let list = PartitionList(partitions)
    try KafkaError.check(rd_kafka_position(client.pointer, list.pointer), "asking for positions")
    return try list.offsets("the position")
  }

  /// The group's committed offsets; nil where none was committed. An offset that is part of a transaction under way
  /// is waited for, so that the answer is final.
  public func committed(_ partitions: [KafkaPartition], milliseconds: Int32) throws(KafkaError) -> [KafkaPartition:
    Int64?]
  {
    try client.committed(group, partitions, milliseconds: milliseconds)
  }

  /// The partitions we hold.
  public func assignment() throws(KafkaError) -> [KafkaPartition] {
    var list: PartitionList.Pointer?
    try KafkaError.check(rd_kafka_assignment(client.pointer, &list), "asking for the assignment")
    return list.map { PartitionList(taking: $0).partitions } ?? []
  }

  /// First offset still kept and the offset after the last record that read-committed readers may see.
  public func bounds(_ partitions: [KafkaPartition], milliseconds: Int32) throws(KafkaError) -> [KafkaPartition:
    PartitionBounds]
  {
    try client.bounds(partitions, milliseconds: milliseconds)
  }

  /// For each partition the first offset whose timestamp is at or after the given one, in milliseconds since 1970; nil
  /// where no such record is there yet.
  public func offsets(forTimes times: [KafkaPartition: Int64], milliseconds: Int32) throws(KafkaError)
    -> [KafkaPartition: Int64?]
  {
    try client.listOffsets(times, committed: true, milliseconds: milliseconds).mapValues { $0 >= 0 ? $0 : nil }
  }
}
