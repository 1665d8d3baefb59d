import PurchasesContracts

/// Where an event stands, now that it is durable.
public struct Receipt: Sendable, Hashable {
  /// The event's id. The same content has the same id, whoever publishes it and how often.
  public let id: String
  public let topic: String
  public let partition: Int32
  public let offset: Int64
  /// By which its permit is asked (`GET /v1/permits/…`); nil for events that no permit answers.
  public let permit: String?
  /// By which its answer is asked (`GET /v1/answers/…`): of a claim or a spend.
  public let request: String?

  init(_ received: ReceivedRecord, _ coordinates: Coordinates) {
    id = received.id
    topic = coordinates.topic
    partition = coordinates.partition
    offset = coordinates.offset
    permit = received.permit
    request = received.request?.name
  }
}

/// Why an event is not known to be durable. Nothing in it holds a proof, an account or a secret.
public enum ProducerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The event is wrong; a retry can't help. `field` is the member of the event, such as `transactionId`.
  case field(String, reason: String)
  /// The log's address is not one.
  case address(reason: String)
  /// The log refuses: unknown topic, record too large, not permitted. A retry can't help before somebody acts.
  case refused(reason: String)
  /// The log can't do it now, or it can't be told whether it did. Publish the same event again: it has one effect.
  case unavailable(reason: String)
  /// The producer was closed.
  case closed

  public var description: String {
    switch self {
    case .field(let field, let reason): "\(field) \(reason)"
    case .address(let reason): "the log's address is not usable: \(reason)"
    case .refused(let reason): "the log refuses the event: \(reason)"
    case .unavailable(let reason): "the log cannot take the event now: \(reason)"
    case .closed: "the producer is closed"
    }
  }

  public var mayRetry: Bool {
    if case .unavailable = self { true } else { false }
  }

  init(_ failure: FieldFailure) {
    self = .field(failure.field, reason: failure.reason)
  }

  init(_ failure: LogFailure) {
    switch failure.kind {
    case .refused, .corrupt: self = .refused(reason: failure.reason)
    case .fenced, .stale, .aborted, .indefinite, .unavailable, .lost: self = .unavailable(reason: failure.reason)
    }
  }
}
