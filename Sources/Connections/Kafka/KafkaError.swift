import CPurchasesKafka

/// What went wrong between us and Kafka, with librdkafka's own judgement of what may be done about it.
public struct KafkaError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the caller may do next.
  public enum Severity: String, Hashable, Sendable {
    /// A setting is unknown, has a value that cannot be, or would break a guarantee. Nothing was started.
    case setting
    /// The client instance is unusable: throw it away.
    case fatal
    /// The transaction at hand must be aborted; the producer lives on.
    case abortable
    /// The same call may be made again.
    case retriable
    /// This call failed, and making it again is expected to fail too.
    case permanent
  }

  public let severity: Severity
  public let code: KafkaCode
  /// One sentence: what failed, and why. Never holds a record's content or a password.
  public let message: String
  /// The setting that is at fault, where one is.
  public let setting: String?

  public init(_ severity: Severity, _ code: KafkaCode, _ message: String, setting: String? = nil) {
    self.severity = severity
    self.code = code
    self.message = message
    self.setting = setting
  }

  public var description: String { "\(message) [\(code)]" }

  static func setting(_ name: String, _ reason: String) -> KafkaError {
    KafkaError(.setting, .invalidArgument, "setting \(name): \(reason)", setting: name)
  }

  static func closed(_ what: String) -> KafkaError {
    KafkaError(.permanent, .destroyed, "the \(what) is closed")
  }

  /// A plain code carries no judgement: this is ours, for calls outside transactions.
  static func code(_ code: rd_kafka_resp_err_t, _ doing: String) -> KafkaError {
    let code = KafkaCode(code)
    return KafkaError(severity(of: code), code, "\(doing): \(code.explanation)")
  }

  static func severity(of code: KafkaCode) -> Severity {
    switch code {
    case .fatal, .fenced, .fencedInstance, .producerFenced: .fatal
    case .timedOut, .messageTimedOut, .queueFull, .transport, .allBrokersDown, .resolve, .requestTimedOut,
      .coordinatorNotAvailable, .notCoordinator, .concurrentTransactions, .unstableOffset, .rebalanceInProgress:
      .retriable
    default:
      switch rd_kafka_resp_err_t(code.rawValue) {
      case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        // What the protocol itself calls retriable about a leader that is new, or not chosen yet.
        RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
        RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND,
        RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
        RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__WAIT_CACHE:
        .retriable
      default: .permanent
      }
    }
  }

  /// Takes over an error object of librdkafka and frees it.
  static func taking(_ error: OpaquePointer, _ doing: String) -> KafkaError {
    defer { rd_kafka_error_destroy(error) }
    let severity: Severity =
      if rd_kafka_error_is_fatal(error) != 0 {
        .fatal
      } else if rd_kafka_error_txn_requires_abort(error) != 0 {
        .abortable
      } else if rd_kafka_error_is_retriable(error) != 0 {
        .retriable
      } else {
        .permanent
      }
    return KafkaError(
      severity, KafkaCode(rd_kafka_error_code(error)), "\(doing): \(String(cString: rd_kafka_error_string(error)))")
  }

  /// Throws when librdkafka answered an error object.
  static func check(_ error: OpaquePointer?, _ doing: @autoclosure () -> String) throws(KafkaError) {
    if let error { throw taking(error, doing()) }
  }

  /// Throws when librdkafka answered a code other than "no error".
  static func check(_ code: rd_kafka_resp_err_t, _ doing: @autoclosure () -> String) throws(KafkaError) {
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .code(code, doing()) }
  }
}
