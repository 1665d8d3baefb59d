/// One partition of one topic.
public struct KafkaPartition: Hashable, Sendable, Comparable, CustomStringConvertible {
  public let topic: String
  public let partition: Int32

  public init(_ topic: String, _ partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  public var description: String { "\(topic)/\(partition)" }

  public static func < (a: KafkaPartition, b: KafkaPartition) -> Bool {
    (a.topic, a.partition) < (b.topic, b.partition)
  }
}

/// One header of a record. Names may repeat; a value may be null, which is not the same as empty.
public struct KafkaHeader: Hashable, Sendable {
  public let name: String
  public let value: [UInt8]?

  public init(_ name: String, _ value: [UInt8]?) {
    self.name = name
    self.value = value
  }
}

/// A record on its way to a topic.
public struct OutgoingRecord: Hashable, Sendable {
  public var topic: String
  /// Nil: chosen from the key, as Kafka's Java client does.
  public var partition: Int32?
  public var key: [UInt8]?
  /// Nil is a tombstone.
  public var value: [UInt8]?
  public var headers: [KafkaHeader]
  /// Milliseconds since 1970. Nil: the client's clock at the time of sending.
  public var timestamp: Int64?

  public init(
    topic: String, partition: Int32? = nil, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = [],
    timestamp: Int64? = nil
  ) {
    self.topic = topic
    self.partition = partition
    self.key = key
    self.value = value
    self.headers = headers
    self.timestamp = timestamp
  }
}

/// A record as it stands in a partition.
public struct FetchedRecord: Hashable, Sendable {
  public let source: KafkaPartition
  public let offset: Int64
  /// Milliseconds since 1970; -1 where the broker has none.
  public let timestamp: Int64
  public let key: [UInt8]?
  public let value: [UInt8]?
  public let headers: [KafkaHeader]
}

/// Who we are in a consumer group at one moment: what a transaction must show to commit offsets for the group.
/// Capture it together with the records it was in force for.
public struct GroupMembership: Hashable, Sendable {
  public let group: String
  /// -1: no generation; the broker would then skip its check, so it must commit nothing.
  public let generation: Int32
  public let member: String
  public let instance: String?

  public init(group: String, generation: Int32, member: String, instance: String?) {
    self.group = group
    self.generation = generation
    self.member = member
    self.instance = instance
  }

  /// Whether the group's coordinator has admitted this member, so that it will be checked when it commits.
  public var isJoined: Bool { generation >= 0 && !member.isEmpty }
}
