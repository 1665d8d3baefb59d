import PurchasesContracts
import PurchasesKafka

extension LogFailure {
  /// For calls that either succeed or leave nothing behind.
  init(_ error: KafkaError) {
    self.init(KafkaFailures.kind(of: error), error.description)
  }
}

enum KafkaFailures {
  /// What a failed call means where no transaction is in play.
  static func kind(of error: KafkaError) -> LogFailure.Kind {
    if error.severity == .setting { return .refused }
    switch error.code {
    case .fencedInstance, .producerFenced, .fenced, .invalidProducerEpoch: return .fenced
    case .illegalGeneration, .unknownMember, .rebalanceInProgress, .staleMemberEpoch, .fencedMemberEpoch,
      .assignmentLost, .maxPollExceeded:
      return .stale
    case .noOffsetToResetTo, .offsetOutOfRange, .logTruncated: return .lost
    default: return isRefusal(error.code) ? .refused : .unavailable
    }
  }

  /// Making the same request again would not help: what is asked for is wrong or not permitted.
  static func isRefusal(_ code: KafkaCode) -> Bool {
    switch code {
    case .authentication, .tls, .recordTooLarge, .recordListTooLarge, .unknownTopic, .unknownTopicOrPartition,
      .unknownPartition, .topicAuthorizationFailed, .groupAuthorizationFailed, .clusterAuthorizationFailed,
      .transactionAuthorizationFailed, .invalidArgument, .invalidTimestamp, .invalidRecord, .invalidTopic,
      .invalidTransactionTimeout, .policyViolation, .invalidReplication, .invalidPartitions, .invalidConfig,
      .unsupportedVersion, .saslAuthenticationFailed:
      true
    default: false
    }
  }

  static func isLogIn(_ code: KafkaCode) -> Bool {
    [.authentication, .tls, .saslAuthenticationFailed].contains(code)
  }

  /// Another producer has the transactional id. (A fenced member of the group is another matter.)
  static func isOfProducer(_ error: KafkaError) -> Bool {
    [.producerFenced, .fenced, .invalidProducerEpoch].contains(error.code)
  }
}

extension KafkaPartition {
  init(_ partition: TopicPartition) { self.init(partition.topic, partition.partition) }
}

extension TopicPartition {
  init(_ partition: KafkaPartition) { self.init(partition.topic, partition.partition) }
}

extension StoredRecord {
  init(_ record: FetchedRecord) {
    self.init(
      coordinates: Coordinates(topic: record.source.topic, partition: record.source.partition, offset: record.offset),
      record: Record(
        key: record.key, value: record.value, headers: record.headers.map { Header($0.name, $0.value) },
        timestamp: .init(milliseconds: record.timestamp)))
  }
}

extension OutgoingRecord {
  init(_ produced: ProducedRecord) {
    self.init(
      topic: produced.topic, partition: produced.partition, key: produced.record.key, value: produced.record.value,
      headers: produced.record.headers.map { KafkaHeader($0.name, $0.value) },
      timestamp: produced.record.timestamp.milliseconds)
  }
}
