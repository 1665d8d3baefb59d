import CPurchasesKafka

/// Looks at a consumer group's committed offsets from outside, without being a member of it. Safe to use from any thread;
/// its calls block the calling thread.
///
/// A handle per group, as a consumer has it, since librdkafka 2.8's request for any group (`ListConsumerGroupOffsets`) ends
/// the process with a segmentation fault when it meets a broker that is no longer the group's coordinator, as after every
/// crash of one (confluentinc/librdkafka#5040; seen here).
public final class KafkaGroup: Sendable {
  private let client: Client
  private let thread: PollThread
  public let group: String

  /// - Throws: a `KafkaError` of severity `setting`. Nothing is connected yet.
  public init(settings: KafkaSettings, group: String, log: @escaping KafkaLogSink = { _ in }) throws(KafkaError) {
    var role = KafkaConsumer.role
    role["group.id"] = group
    let client = try Client(
      RD_KAFKA_CONSUMER, settings, role: role, events: RD_KAFKA_EVENT_ERROR, skipsClose: true, log: log)
    self.client = client
    self.group = group
    thread = PollThread(noting: client)
  }

  deinit { thread.stop() }

  /// The group's committed offsets; nil where none was committed. An offset that is part of a transaction under way is
  /// waited for, so that the answer is final.
  public func committed(_ partitions: [KafkaPartition], milliseconds: Int32) throws(KafkaError) -> [KafkaPartition:
    Int64?]
  {
    try client.committed(group, partitions, milliseconds: milliseconds)
  }
}

extension Client {
  /// The offsets that this handle's group has committed.
  func committed(
    _ group: String, _ partitions: [KafkaPartition], milliseconds: Int32
  ) throws(KafkaError) -> [KafkaPartition: Int64?] {
    guard !partitions.isEmpty else { return [:] }
    let deadline = monotonicMilliseconds() + Int64(milliseconds)
    while true {
      let left = Int32(max(1, deadline - monotonicMilliseconds()))
      do throws(KafkaError) {
        let list = PartitionList(partitions)
        try KafkaError.check(
          rd_kafka_committed(pointer, list.pointer, left), "asking for the positions of group \(group)")
        clearRefusal()
        return try list.offsets("the position of group \(group)")
      } catch {
        guard error.code == .unstableOffset, monotonicMilliseconds() < deadline else { throw explained(error) }
      }
    }
  }
}
