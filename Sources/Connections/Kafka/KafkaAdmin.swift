import CPurchasesKafka

/// A topic to be made.
public struct NewTopic: Hashable, Sendable {
  public let name: String
  public let partitions: Int32
  /// -1: the cluster's default.
  public let replication: Int32
  /// The topic's settings by Kafka's names, such as `cleanup.policy`.
  public let settings: [String: String]

  public init(name: String, partitions: Int32, replication: Int32 = -1, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replication = replication
    self.settings = settings
  }
}

/// Asks and tells the cluster. Safe to use from any thread; its calls block the calling thread.
public final class KafkaAdmin: Sendable {
  let client: Client
  private let thread: PollThread

  /// - Throws: a `KafkaError` of severity `setting`. Nothing is connected yet.
  public init(settings: KafkaSettings, log: @escaping KafkaLogSink = { _ in }) throws(KafkaError) {
    let client = try Client(
      RD_KAFKA_PRODUCER, settings, role: KafkaProducer.role, events: RD_KAFKA_EVENT_ERROR, log: log)
    self.client = client
    thread = PollThread(noting: client)
  }

  deinit { thread.stop() }

  // A refused log-in shows aside from the call, so a long wait is cut into slices.
  // It grows, since a far-away cluster needs longer for one answer.
  private static let firstSliceMilliseconds: Int32 = 250
  private static let longestSliceMilliseconds: Int32 = 2_000

  /// Returns when a broker has answered. A refused password or certificate is told at once.
  public func connect(milliseconds: Int32) throws(KafkaError) {
    let deadline = monotonicMilliseconds() + Int64(milliseconds)
    var slice = KafkaAdmin.firstSliceMilliseconds
    while true {
      do throws(KafkaError) {
        var metadata: UnsafePointer<rd_kafka_metadata>?
        try KafkaError.check(
          rd_kafka_metadata(client.pointer, 0, nil, &metadata, slice), "reaching the brokers")
        if let metadata { rd_kafka_metadata_destroy(metadata) }
        client.clearRefusal()
        return
      } catch {
        let explained = client.explained(error)
        let left = deadline - monotonicMilliseconds()
        if Client.isRefusal(explained.code) || left <= 0 { throw explained }
        slice = Int32(clamping: max(1, min(left, Int64(min(slice * 2, KafkaAdmin.longestSliceMilliseconds)))))
      }
    }
  }

  /// How many partitions each topic has; a topic that is not there is left out. Nil asks for all topics.
  public func partitionCounts(of topics: [String]?, milliseconds: Int32) throws(KafkaError) -> [String: Int32] {
    var metadata: UnsafePointer<rd_kafka_metadata>?
    var counts: [String: Int32] = [:]
    func ask(_ topic: OpaquePointer?) throws(KafkaError) {
      try KafkaError.check(
        rd_kafka_metadata(client.pointer, topic == nil ? 1 : 0, topic, &metadata, milliseconds), "asking for topics")
      guard let found = metadata else { return }
      defer { rd_kafka_metadata_destroy(found) }
      for index in 0..<Int(found.pointee.topic_cnt) {
        let topic = found.pointee.topics[index]
        let name = String(cString: topic.topic)
        switch topic.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR: counts[name] = topic.partition_cnt
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC: continue
        default: throw .code(topic.err, "asking for topic \(name)")
        }
      }
    }
    do throws(KafkaError) {
      guard let topics else {
        try ask(nil)
        return counts
      }
      for topic in topics { try ask(client.topic(topic).pointer) }
    } catch {
      throw client.explained(error)
    }
    return counts
  }

  /// Makes topics. One that is there already is left as it is.
  /// - Returns: the names of those made now.
  @discardableResult
  public func createTopics(_ topics: [NewTopic], milliseconds: Int32) throws(KafkaError) -> [String] {
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    var pointers: [OpaquePointer?] = []
    defer { for pointer in pointers { rd_kafka_NewTopic_destroy(pointer) } }
    for topic in topics {
      guard let made = rd_kafka_NewTopic_new(topic.name, topic.partitions, topic.replication, &text, text.count) else {
        throw KafkaError(.permanent, .invalidArgument, "topic \(topic.name): \(Client.string(text))")
      }
      pointers.append(made)
      for (name, value) in topic.settings {
        try KafkaError.check(rd_kafka_NewTopic_set_config(made, name, value), "topic \(topic.name), setting \(name)")
      }
    }
    let event = try client.ask("creating topics", RD_KAFKA_ADMIN_OP_CREATETOPICS, milliseconds) { options, queue in
      rd_kafka_CreateTopics(client.pointer, &pointers, pointers.count, options, queue)
    }
    defer { rd_kafka_event_destroy(event) }
    var count = 0
    let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
    return try KafkaAdmin.names(results, count, "creating topic", tolerating: .topicAlreadyExists)
  }

  /// Deletes topics with all their records. One that is not there is no error.
  @discardableResult
  public func deleteTopics(_ topics: [String], milliseconds: Int32) throws(KafkaError) -> [String] {
    var pointers: [OpaquePointer?] = topics.map { rd_kafka_DeleteTopic_new($0) }
    defer { for pointer in pointers { rd_kafka_DeleteTopic_destroy(pointer) } }
    let event = try client.ask("deleting topics", RD_KAFKA_ADMIN_OP_DELETETOPICS, milliseconds) { options, queue in
      rd_kafka_DeleteTopics(client.pointer, &pointers, pointers.count, options, queue)
    }
    defer { rd_kafka_event_destroy(event) }
    var count = 0
    let results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count)
    return try KafkaAdmin.names(results, count, "deleting topic", tolerating: .unknownTopicOrPartition)
  }

  /// Raises a topic's number of partitions. Keys then map to other partitions: not for topics in use.
  public func createPartitions(topic: String, total: Int, milliseconds: Int32) throws(KafkaError) {
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    guard let wanted = rd_kafka_NewPartitions_new(topic, total, &text, text.count) else {
      throw KafkaError(.permanent, .invalidArgument, "topic \(topic): \(Client.string(text))")
    }
    defer { rd_kafka_NewPartitions_destroy(wanted) }
    var pointers: [OpaquePointer?] = [wanted]
    let event = try client.ask("adding partitions", RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, milliseconds) {
      options, queue in rd_kafka_CreatePartitions(client.pointer, &pointers, pointers.count, options, queue)
    }
    defer { rd_kafka_event_destroy(event) }
    var count = 0
    let results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &count)
    _ = try KafkaAdmin.names(results, count, "adding partitions to topic", tolerating: nil)
  }

  private static func names(
    _ results: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int, _ doing: String, tolerating: KafkaCode?
  ) throws(KafkaError) -> [String] {
    var names: [String] = []
    for index in 0..<count {
      guard let result = results?[index] else { continue }
      let name = String(cString: rd_kafka_topic_result_name(result))
      let code = rd_kafka_topic_result_error(result)
      if code == RD_KAFKA_RESP_ERR_NO_ERROR {
        names.append(name)
      } else if KafkaCode(code) != tolerating {
        let text = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
        throw KafkaError(KafkaError.severity(of: KafkaCode(code)), KafkaCode(code), "\(doing) \(name): \(text)")
      }
    }
    return names
  }
}
