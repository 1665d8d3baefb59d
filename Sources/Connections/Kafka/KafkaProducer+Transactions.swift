import CPurchasesKafka

/// Transactions. All calls block the calling thread.
///
/// Severity says what to do: `fatal` and, after a commit, `retriable` (the outcome is unknown): throw the producer away;
/// `abortable`: abort, then go on with this producer.
extension KafkaProducer {
  // A refused log-in shows aside from the call, so a long wait is cut into slices.
  private static let sliceMilliseconds: Int32 = 500

  /// Registers the transactional id: ends what an earlier producer of that id left open, and fences that producer.
  public func initTransactions(milliseconds: Int32) throws(KafkaError) {
    precondition(transactionalId != nil, "a producer without a transactional id has no transactions")
    let deadline = monotonicMilliseconds() + Int64(milliseconds)
    while true {
      let left = Int32(max(1, min(Int64(KafkaProducer.sliceMilliseconds), deadline - monotonicMilliseconds())))
      guard let raw = rd_kafka_init_transactions(client.pointer, left) else { return client.clearRefusal() }
      let error = client.explained(.taking(raw, "starting transactions of \(transactionalId ?? "")"))
      // After a retriable time-out the call resumes what goes on in the background.
      guard error.severity == .retriable, monotonicMilliseconds() < deadline else { throw error }
    }
  }

  /// Whether a request of this producer may still be on its way although librdkafka has sent it again: a connection broke
  /// after something was sent on it. The broker can't tell a late request from one of the present transaction, unless a new
  /// producer of the same transactional id has begun another epoch.
  public var mayHaveLateRequests: Bool { client.endedConnections > 0 }

  public func beginTransaction() throws(KafkaError) {
    try KafkaError.check(rd_kafka_begin_transaction(client.pointer), "beginning a transaction")
  }

  /// Makes the group's positions part of the transaction: for each partition the offset of the next record to read.
  /// Flush first: sending offsets while records are under way costs tens of milliseconds.
  public func sendOffsets(
    _ offsets: [KafkaPartition: Int64], membership: GroupMembership, milliseconds: Int32
  ) throws(KafkaError) {
    precondition(membership.isJoined, "without a generation the broker would not check whether we are still a member")
    let list = PartitionList(offsets)
    let metadata = rd_kafka_consumer_group_metadata_new_with_genid(
      membership.group, membership.generation, membership.member, membership.instance)
    defer { rd_kafka_consumer_group_metadata_destroy(metadata) }
    let raw = rd_kafka_send_offsets_to_transaction(client.pointer, list.pointer, metadata, milliseconds)
    try KafkaError.check(raw, "committing positions of group \(membership.group)")
  }

  /// - Throws: `abortable`: nothing was committed, abort. Else the outcome may be unknown.
  public func commitTransaction(milliseconds: Int32) throws(KafkaError) {
    try KafkaError.check(rd_kafka_commit_transaction(client.pointer, milliseconds), "committing a transaction")
  }

  public func abortTransaction(milliseconds: Int32) throws(KafkaError) {
    try KafkaError.check(rd_kafka_abort_transaction(client.pointer, milliseconds), "aborting a transaction")
  }
}
