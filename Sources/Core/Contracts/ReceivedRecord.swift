import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// An event on its way into the topic `received`, with everything that follows from its content alone: whoever sends the
/// same content, whenever, comes to the same id, key and digest.
public struct ReceivedRecord: Sendable, Hashable {
  public let event: ReceivedEvent
  /// The event's data as it goes onto the log.
  public let data: [UInt8]
  public let id: String
  public let key: String
  /// Where the event belongs: what the proof says of itself (unverified), else what the sender says.
  public let environment: Environment?
  /// By which its permit is asked: the proof's SHA-256 in hex, or `attempt:` and the sender's id where there is no proof.
  /// Nil for an event that no permit answers.
  public let permit: String?

  /// `data` is what the sender sent, where it must be kept byte for byte; the event's own form otherwise.
  public init(_ event: ReceivedEvent, data: [UInt8]? = nil) {
    self.event = event
    self.data = data ?? event.data
    let said = event.proof.map { UnverifiedProof($0) }
    let environment = said?.environment ?? event.statedEnvironment
    self.environment = environment
    let digest = event.proof.map { SHA256.digest($0).hex }
    id = Self.identity(event, environment, digest)
    let space = environment?.rawValue ?? "unknown"
    if let original = said?.originalTransaction {
      key = "\(space)/\(original.text)"
    } else if let account = event.account {
      key = "\(space)/\(account.text)"
    } else {
      key = "\(space)/\(said?.notificationUUID ?? id)"
    }
    switch event {
    case .payment(let payment): permit = digest ?? payment.attempt.map { "attempt:\($0)" }
    default: permit = nil
    }
  }

  /// A digest of environment, type and exact content. A proof is its own content, whoever sends it; without one it is the
  /// sender's own id, which is unique among the account's only.
  private static func identity(_ event: ReceivedEvent, _ environment: Environment?, _ digest: String?) -> String {
    var parts = ["received", environment?.rawValue ?? "", event.type.rawValue]
    if let digest {
      parts.append(digest)
    } else {
      parts += [event.account?.text ?? "", event.senderID ?? ""]
    }
    // Lengths before the parts, so that no two lists of parts make the same bytes.
    let bytes = parts.flatMap { Array("\($0.utf8.count):".utf8) + Array($0.utf8) }
    return SHA256.digest(bytes).hex
  }

  /// Of a payment that names a transaction: what auditing follows it by.
  public var subject: TransactionSubject? {
    guard case .payment(let payment) = event, let environment, let transaction = payment.transaction else { return nil }
    return TransactionSubject(environment, transaction)
  }

  public func produced(
    to topics: TopicSettings, source: String, at now: Instant, traceparent: String? = nil
  ) -> ProducedRecord {
    let envelope = Envelope(
      id: id, source: source, type: event.type, subject: subject?.text, time: now, traceparent: traceparent)
    return ProducedRecord(
      topic: topics.name(.received),
      record: Record(key: Array(key.utf8), value: data, headers: envelope.headers, timestamp: now))
  }
}

extension ReceivedEvent {
  public var account: Account? {
    switch self {
    case .payment(let event): event.account
    case .restore(let event): event.account
    case .claimed(let event): event.account
    case .spendRequested(let event): event.account
    case .ordered(let event): event.account
    case .notified, .operatorActed: nil
    }
  }

  var statedEnvironment: Environment? {
    switch self {
    case .payment(let event): event.environment
    case .restore(let event): event.environment
    case .claimed(let event): event.environment
    case .spendRequested(let event): event.environment
    case .ordered(let event): event.environment
    case .notified, .operatorActed: nil
    }
  }

  var senderID: String? {
    switch self {
    case .payment(let event): event.attempt
    case .restore(let event): event.attempt
    case .claimed(let event): event.attempt
    case .spendRequested(let event): event.idempotencyKey
    case .ordered(let event): event.orderID
    case .operatorActed(let event): event.actID
    case .notified: nil
    }
  }

  /// Reads one event as people and back ends write it: a JSON object with its `type` beside the members of its data. The
  /// bytes are kept as they are, `type` and unknown members included.
  public init(line: [UInt8], allowing allowed: [EventType]) throws(FieldFailure) {
    let fields = try Fields(fromOutside: line)
    let name = try fields.requiredText("type")
    switch EventType.read(EventType(rawValue: name)?.wireName ?? name) {
    case .known(let type, _) where allowed.contains(type): try self.init(type: type, fields: fields)
    case .newer: throw FieldFailure("type", "is in a newer version than this program knows")
    default: throw FieldFailure("type", "is not one of the events that are taken here")
    }
  }
}

extension Fields {
  /// Parses what comes through a door. Two members of one name are refused there: of two readers of the log one would
  /// take the first and another the last.
  public init(fromOutside bytes: [UInt8]) throws(FieldFailure) {
    let document: JSONDocument
    do {
      document = try JSONDocument(parsing: bytes)
    } catch {
      throw FieldFailure("event", "is not JSON (byte \(error.offset): \(error.reason))")
    }
    if let name = document.firstDuplicateMember() {
      // A name that isn't plain may be anything, a secret too.
      let isPlain = name.utf8.count <= 64 && name.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A }
      throw FieldFailure(isPlain ? name : "event", isPlain ? "stands there twice" : "has a member twice")
    }
    try self.init(document.root)
  }
}
