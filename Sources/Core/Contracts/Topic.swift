/// The topics of the pipeline. Their full names carry the deployment's prefix (`purchases.` by default).
public enum Topic: String, Sendable, Hashable, CaseIterable {
  case received, verified, owned, entitlements
  case entitlementState = "entitlement-state"
  case parked, quarantine, audit
  /// Which catalogue is in force from when.
  case catalogue

  /// Topics whose every record is a leaf of an audit tree: all but the compacted one and `audit` itself.
  public static let audited: [Topic] = [
    .received, .verified, .owned, .entitlements, .parked, .quarantine, .catalogue,
  ]

  /// The same with outputs before what they came of: whoever reads them in this order while the stages work finds the source
  /// of all that it has read.
  public static let auditedOutputsFirst: [Topic] = [
    .quarantine, .entitlements, .owned, .verified, .parked, .received, .catalogue,
  ]

  public var isCompacted: Bool { self == .entitlementState }
}

/// How a deployment names and shapes its topics.
public struct TopicSettings: Sendable, Hashable {
  public var prefix: String
  public var partitions: Int32
  public var replication: Int16
  /// Largest record that `quarantine` takes; it must hold any record that another topic lets in, with its coordinates.
  public var quarantineMaximumBytes: Int
  /// Largest record of every other topic.
  public var maximumBytes: Int

  public init(
    prefix: String = "purchases.", partitions: Int32 = 4, replication: Int16 = 1, maximumBytes: Int = 8 << 20,
    quarantineMaximumBytes: Int = 10 << 20
  ) {
    self.prefix = prefix
    self.partitions = partitions
    self.replication = replication
    self.maximumBytes = maximumBytes
    self.quarantineMaximumBytes = quarantineMaximumBytes
  }

  public func name(_ topic: Topic) -> String { prefix + topic.rawValue }

  public func topic(named name: String) -> Topic? {
    guard name.hasPrefix(prefix) else { return nil }
    return Topic(rawValue: String(name.dropFirst(prefix.count)))
  }

  public var specs: [TopicSpec] {
    Topic.allCases.map {
      TopicSpec(
        name: name($0), partitions: partitions, replication: replication, isCompacted: $0.isCompacted,
        maximumBytes: $0 == .quarantine ? quarantineMaximumBytes : maximumBytes)
    }
  }
}

public struct TopicSpec: Sendable, Hashable {
  public var name: String
  public var partitions: Int32
  public var replication: Int16
  public var isCompacted: Bool
  public var maximumBytes: Int

  public init(name: String, partitions: Int32, replication: Int16, isCompacted: Bool, maximumBytes: Int) {
    self.name = name
    self.partitions = partitions
    self.replication = replication
    self.isCompacted = isCompacted
    self.maximumBytes = maximumBytes
  }
}

/// One partition of one topic, by full name.
public struct TopicPartition: Sendable, Hashable, Comparable, CustomStringConvertible {
  public let topic: String
  public let partition: Int32

  public init(_ topic: String, _ partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  public static func < (a: TopicPartition, b: TopicPartition) -> Bool {
    (a.topic, a.partition) < (b.topic, b.partition)
  }

  public var description: String { "\(topic)/\(partition)" }
}

/// Where a record stands in the log.
public struct Coordinates: Sendable, Hashable, Comparable, CustomStringConvertible {
  public let topic: String
  public let partition: Int32
  public let offset: Int64

  public init(topic: String, partition: Int32, offset: Int64) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
  }

  public var topicPartition: TopicPartition { TopicPartition(topic, partition) }

  public static func < (a: Coordinates, b: Coordinates) -> Bool {
    (a.topic, a.partition, a.offset) < (b.topic, b.partition, b.offset)
  }

  public var description: String { "\(topic)/\(partition)/\(offset)" }
}
