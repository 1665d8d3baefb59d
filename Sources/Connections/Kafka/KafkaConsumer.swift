import CPurchasesKafka

/// A member of a consumer group. It reads committed records only, and never commits by itself.
///
/// Drive it from one thread at a time; its calls block that thread. A consumer that is dropped unclosed does not leave its
/// group, as after a crash: its partitions move on when the session has run out.
///
/// `@unchecked Sendable`: it may be handed from one thread to another, not used by two at once; it keeps no state of its
/// own between calls but what its documented single driver changes.
public final class KafkaConsumer: @unchecked Sendable {
  /// What happened after the records before it.
  public enum Event: Sendable {
    /// The group gave us partitions. Answer with `assign`, naming the offset to start each at.
    case assigned([KafkaPartition])
    /// The group takes partitions back, and waits until we answer with `release`. Lost: they are another member's
    /// already, and whatever is under way for them must be dropped.
    case revoked([KafkaPartition], lost: Bool)
    /// Retriable: go on polling. Fatal: throw the consumer away. Partition: where one is concerned.
    case failed(KafkaError, KafkaPartition?)
  }

  /// Records in order, and what followed them.
  public struct Polled: Sendable {
    public var records: [FetchedRecord] = []
    /// Partitions of which every committed record has been read.
    public var ends: Set<KafkaPartition> = []
    public var event: Event?
  }

  let client: Client
  private var source: EventSource?
  public let group: String
  public let instance: String?

  static let role = [
    "enable.auto.commit": "false", "enable.auto.offset.store": "false", "isolation.level": "read_committed",
    "auto.offset.reset": "error", "enable.partition.eof": "true", "allow.auto.create.topics": "false",
  ]

  /// - Parameter instance: a name that survives restarts (static membership): a new process of that name takes over the
  ///   partitions of the old one at once, and the old one is fenced.
  /// - Throws: a `KafkaError` of severity `setting`. Nothing is connected yet.
  public init(
    settings: KafkaSettings, group: String, instance: String? = nil, log: @escaping KafkaLogSink = { _ in }
  ) throws(KafkaError) {
    var role = KafkaConsumer.role
    role["group.id"] = group
    if let instance { role["group.instance.id"] = instance }
    client = try Client(
      RD_KAFKA_CONSUMER, settings, role: role, events: RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR,
      skipsClose: true, log: log)
    self.group = group
    self.instance = instance
    // Errors of the client come in line with the records.
    rd_kafka_poll_set_consumer(client.pointer)
    guard let queue = rd_kafka_queue_get_consumer(client.pointer) else { preconditionFailure("no consumer queue") }
    source = EventSource(client, taking: queue)
  }

  /// The error that made this consumer unusable, where there is one; `poll` tells it too.
  public var fatalError: KafkaError? { client.fatalError }

  public func subscribe(_ topics: [String]) throws(KafkaError) {
    let list = PartitionList(topics.map { KafkaPartition($0, purchases_kafka_any_partition()) })
    try KafkaError.check(rd_kafka_subscribe(client.pointer, list.pointer), "subscribing to \(topics)")
  }

  /// Waits up to so long for the first record or event, then takes what is there. An event ends the batch. The end of a
  /// partition does not: with many partitions that a little comes into all the time, one of them is always at its end, and
  /// batches would be so small that the stage falls behind for good.
  public func poll(records limit: Int, bytes: Int = .max, milliseconds: Int32) throws(KafkaError) -> Polled {
    guard let source else { throw .closed("consumer") }
    var polled = Polled()
    var size = 0
    source.forgetTopics()
    while polled.records.count < limit, size < bytes {
      let isEmpty = polled.records.isEmpty && polled.ends.isEmpty
      guard let happening = source.next(milliseconds: isEmpty ? milliseconds : 0) else { break }
      switch happening {
      case .record(let record, let bytes):
        if !polled.ends.isEmpty { polled.ends.remove(record.source) }
        polled.records.append(record)
        size += bytes
        continue
      case .assigned(let list): polled.event = .assigned(list.partitions)
      case .revoked(let list):
        polled.event = .revoked(list.partitions, lost: rd_kafka_assignment_lost(client.pointer) != 0)
      case .rebalanceFailed(let error):
        rd_kafka_assign(client.pointer, nil)
        polled.event = .failed(error, nil)
      case .end(let partition, _):
        polled.ends.insert(partition)
        continue
      case .failed(let error, let partition): polled.event = .failed(error, partition)
      }
      break
    }
    return polled
  }

  /// Whether the group hands over partitions one by one, so that the others go on being read meanwhile.
  public var isCooperative: Bool {
    rd_kafka_rebalance_protocol(client.pointer).map { String(cString: $0) == "COOPERATIVE" } ?? false
  }

  /// Starts reading these partitions at these offsets: the answer to `assigned`, an empty one included.
  public func assign(_ offsets: [KafkaPartition: Int64]) throws(KafkaError) {
    let list = PartitionList(offsets)
    if isCooperative {
      try KafkaError.check(rd_kafka_incremental_assign(client.pointer, list.pointer), "taking partitions")
    } else {
      try KafkaError.check(rd_kafka_assign(client.pointer, list.pointer), "taking partitions")
    }
  }

  /// Lets the partitions go: the answer to `revoked`.
  public func release(_ partitions: [KafkaPartition]) throws(KafkaError) {
    if isCooperative {
      let list = PartitionList(partitions)
      try KafkaError.check(rd_kafka_incremental_unassign(client.pointer, list.pointer), "letting partitions go")
    } else {
      try KafkaError.check(rd_kafka_assign(client.pointer, nil), "letting partitions go")
    }
  }

  /// Who we are in the group right now. Valid for the records that the next poll delivers, until it delivers an event.
  public var membership: GroupMembership {
    guard let metadata = rd_kafka_consumer_group_metadata(client.pointer) else {
      return GroupMembership(group: group, generation: -1, member: "", instance: instance)
    }
    defer { rd_kafka_consumer_group_metadata_destroy(metadata) }
    return GroupMembership(
      group: group, generation: rd_kafka_consumer_group_metadata_generation_id(metadata),
      member: rd_kafka_consumer_group_metadata_member_id(metadata).map { String(cString: $0) } ?? "",
      instance: instance)
  }

  /// The broker's refusal to let us in, where there was one.
  public var refusal: KafkaError? { client.refused }

  /// Ends the consumer. What `revoked` would ask for must be done before. Blocks up to about twice the time given.
  /// - Parameter leaving: whether a static member gives its place up too, so that others take over at once; else the group
  ///   keeps it until the session has run out. Others always leave.
  public func close(leaving: Bool = true, milliseconds: Int32) {
    guard let source else { return }
    if leaving {
      let deadline = monotonicMilliseconds() + Int64(milliseconds)
      // Closing alone keeps a static member's place; unsubscribing gives it up. The member id is emptied when the request
      // to leave has been sent: closing earlier would drop it.
      rd_kafka_unsubscribe(client.pointer)
      while membership.isJoined, fatalError == nil, monotonicMilliseconds() < deadline { _ = answer(source) }
    }
    self.source = nil
    guard let queue = rd_kafka_queue_new(client.pointer) else { return }
    let closing = EventSource(client, taking: queue)
    guard rd_kafka_consumer_close_queue(client.pointer, queue) == nil else { return }
    let end = monotonicMilliseconds() + Int64(milliseconds)
    while rd_kafka_consumer_closed(client.pointer) == 0, monotonicMilliseconds() < end {
      // A rebalance may have been asked about on the queue that was just given up, and the group waits for the answer for
      // ever: nobody owns anything from here on, so it is given whether asked for or not.
      if !answer(closing) { rd_kafka_assign(client.pointer, nil) }
    }
    if rd_kafka_consumer_closed(client.pointer) == 0 { client.abandon() }
  }

  private static let closingPollMilliseconds: Int32 = 20

  /// False when nothing was asked for in a while.
  private func answer(_ source: EventSource) -> Bool {
    switch source.next(milliseconds: KafkaConsumer.closingPollMilliseconds) {
    case .revoked(let list)?: try? release(list.partitions)
    case .assigned?: try? assign([:])
    case .rebalanceFailed?: rd_kafka_assign(client.pointer, nil)
    case nil: return false
    default: break
    }
    return true
  }
}
