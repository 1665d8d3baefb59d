import CPurchasesKafka

/// An error code of librdkafka or of the broker. Negative codes are the client's own.
public struct KafkaCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public let rawValue: Int32

  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  init(_ code: rd_kafka_resp_err_t) {
    rawValue = code.rawValue
  }

  /// The name in the protocol's documentation, such as `ILLEGAL_GENERATION` or `_TIMED_OUT`.
  public var description: String {
    String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue)))
  }

  /// One sentence for people.
  public var explanation: String {
    String(cString: rd_kafka_err2str(rd_kafka_resp_err_t(rawValue)))
  }

  // The client's own.
  public static let transport = KafkaCode(RD_KAFKA_RESP_ERR__TRANSPORT)
  public static let allBrokersDown = KafkaCode(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
  public static let resolve = KafkaCode(RD_KAFKA_RESP_ERR__RESOLVE)
  public static let authentication = KafkaCode(RD_KAFKA_RESP_ERR__AUTHENTICATION)
  public static let tls = KafkaCode(RD_KAFKA_RESP_ERR__SSL)
  public static let invalidArgument = KafkaCode(RD_KAFKA_RESP_ERR__INVALID_ARG)
  public static let timedOut = KafkaCode(RD_KAFKA_RESP_ERR__TIMED_OUT)
  public static let messageTimedOut = KafkaCode(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
  public static let queueFull = KafkaCode(RD_KAFKA_RESP_ERR__QUEUE_FULL)
  public static let purgedFromQueue = KafkaCode(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
  public static let purgedInFlight = KafkaCode(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
  public static let unknownTopic = KafkaCode(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
  public static let unknownPartition = KafkaCode(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
  public static let state = KafkaCode(RD_KAFKA_RESP_ERR__STATE)
  public static let fatal = KafkaCode(RD_KAFKA_RESP_ERR__FATAL)
  public static let fenced = KafkaCode(RD_KAFKA_RESP_ERR__FENCED)
  public static let gapless = KafkaCode(RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE)
  public static let noOffsetToResetTo = KafkaCode(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
  public static let logTruncated = KafkaCode(RD_KAFKA_RESP_ERR__LOG_TRUNCATION)
  public static let maxPollExceeded = KafkaCode(RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED)
  public static let assignmentLost = KafkaCode(RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST)
  public static let destroyed = KafkaCode(RD_KAFKA_RESP_ERR__DESTROY)

  // The broker's.
  public static let offsetOutOfRange = KafkaCode(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
  public static let unknownTopicOrPartition = KafkaCode(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
  public static let requestTimedOut = KafkaCode(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT)
  public static let recordTooLarge = KafkaCode(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
  public static let coordinatorNotAvailable = KafkaCode(RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE)
  public static let notCoordinator = KafkaCode(RD_KAFKA_RESP_ERR_NOT_COORDINATOR)
  public static let illegalGeneration = KafkaCode(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
  public static let unknownMember = KafkaCode(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
  public static let rebalanceInProgress = KafkaCode(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)
  public static let staleMemberEpoch = KafkaCode(RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH)
  public static let fencedMemberEpoch = KafkaCode(RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH)
  public static let fencedInstance = KafkaCode(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
  public static let topicAuthorizationFailed = KafkaCode(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
  public static let groupAuthorizationFailed = KafkaCode(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
  public static let clusterAuthorizationFailed = KafkaCode(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
  public static let transactionAuthorizationFailed = KafkaCode(
    RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
  public static let topicAlreadyExists = KafkaCode(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
  public static let invalidProducerEpoch = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH)
  public static let producerFenced = KafkaCode(RD_KAFKA_RESP_ERR_PRODUCER_FENCED)
  public static let concurrentTransactions = KafkaCode(RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS)
  public static let unstableOffset = KafkaCode(RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT)
  public static let recordListTooLarge = KafkaCode(RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE)
  public static let invalidTimestamp = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)
  public static let invalidRecord = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_RECORD)
  public static let invalidTopic = KafkaCode(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)
  public static let invalidTransactionTimeout = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
  public static let policyViolation = KafkaCode(RD_KAFKA_RESP_ERR_POLICY_VIOLATION)
  public static let invalidReplication = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR)
  public static let invalidPartitions = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_PARTITIONS)
  public static let invalidConfig = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_CONFIG)
  public static let unsupportedVersion = KafkaCode(RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION)
  public static let saslAuthenticationFailed = KafkaCode(RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED)
  public static let groupNotFound = KafkaCode(RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
}
