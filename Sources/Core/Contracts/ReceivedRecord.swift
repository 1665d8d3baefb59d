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
  /// SHA-256 of the proof's bytes in hex; nil for an event without one.
  public let proofDigest: String?
  /// By which its permit is asked: the proof's SHA-256 in hex; of a purchase in a receipt
  /// ``AppReceipt/digest(ofReceipt:transaction:)``; of a failed payment `attempt:` and the sender's id.
  /// Nil for an event that no permit answers.
  public let permit: String?

  /// What its answer is asked by; nil for an event that asks for nothing but a permit.
  public let request: AskedRequest?

  /// The space that its permit is answered in: the sender's word, since a proof that is refused has no say in where.
  public var permitEnvironment: Environment? { event.statedEnvironment ?? environment }

  /// `data` is what the sender sent, where it must be kept byte for byte; the event's own form otherwise.
  public init(_ event: ReceivedEvent, data: [UInt8]? = nil) {
    self.event = event
    request = AskedRequest(event)
    self.data = data ?? event.data
    let said = event.proof.map { event.isReceiptAlone ? UnverifiedProof(receipt: $0) : UnverifiedProof($0) }
    let environment = said?.environment ?? event.statedEnvironment
    self.environment = environment
    proofDigest = event.proof.map { SHA256.digest($0).hex }
    id = Self.identity(event, environment, proofDigest)
    key = Self.key(event, environment, said) ?? proofDigest.map { "unreadable/\($0)" } ?? "operator/\(id)"
    switch event {
    case .payment(let payment) where payment.type == .paymentFailed:
      permit = payment.attempt.map { "attempt:\($0)" }
    case .payment(let payment) where event.isReceiptAlone:
      permit = proofDigest.map { digest in
        payment.transaction.map { AppReceipt.digest(ofReceipt: digest, transaction: $0.text) } ?? digest
      }
    case .payment: permit = proofDigest
    default: permit = nil
    }
  }

  /// environment/originalTransactionId where the proof, a claim or an order to transfer names one; else
  /// environment/account; else environment/notificationUUID. Nil for what names none of them.
  private static func key(_ event: ReceivedEvent, _ environment: Environment?, _ said: UnverifiedProof?) -> String? {
    guard let environment else { return nil }
    if let original = said?.originalTransaction { return key(environment, original) }
    switch event {
    case .claimed(let claim): return key(environment, claim.originalTransaction)
    case .ordered(let ordered):
      if case .transfer(let original, _) = ordered.order { return key(environment, original) }
    default: break
    }
    if let account = event.account { return key(environment, account) }
    return said?.notificationUUID.map { "\(environment.rawValue)/\($0)" }
  }

  /// The key under which facts about one purchase meet.
  public static func key(_ environment: Environment, _ original: OriginalTransactionID) -> String {
    "\(environment.rawValue)/\(original.text)"
  }

  /// The key under which facts about one account meet.
  public static func key(_ environment: Environment, _ account: Account) -> String {
    "\(environment.rawValue)/\(account.text)"
  }

  /// A digest of environment, type and exact content. A proof is its own content, whoever sends it; without one it is the
  /// sender's own id, which is unique among the account's only.
  private static func identity(_ event: ReceivedEvent, _ environment: Environment?, _ digest: String?) -> String {
    var parts = ["received", environment?.rawValue ?? "", event.type.rawValue]
    if let digest {
      parts.append(digest)
      if case .payment(let payment) = event, let receipt = payment.appReceipt {
        // One receipt proves many purchases, and each is reported by itself.
        parts.append(event.isReceiptAlone ? payment.transaction?.text ?? "" : SHA256.digest(receipt).hex)
        parts.append(payment.device?.text ?? "")
      }
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
    ProducedRecord(
      topic: topics.name(.received), record: record(source: source, at: now, traceparent: traceparent))
  }

  /// - Parameters:
  ///   - source: who took the event in, as CloudEvents has it (a URI reference).
  ///   - now: becomes the record's timestamp, by which its proof is judged ever after.
  ///   - traceparent: carried on if W3C Trace Context calls it well-formed, else left out.
  public func record(source: String, at now: Instant, traceparent: String? = nil) -> Record {
    let envelope = Envelope(
      id: id, source: source, type: event.type, subject: subject?.text, time: now,
      traceparent: traceparent.flatMap { Self.isTrace($0) ? $0 : nil })
    return Record(key: Array(key.utf8), value: data, headers: envelope.headers, timestamp: now)
  }

  /// `00-<32 hex>-<16 hex>-<2 hex>` in lower case, neither id all zeroes.
  private static func isTrace(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: 0x2d, omittingEmptySubsequences: false)
    guard parts.count == 4, parts.map(\.count) == [2, 32, 16, 2] else { return false }
    for part in parts {
      guard part.allSatisfy({ ($0 >= 48 && $0 <= 57) || ($0 >= 97 && $0 <= 102) }) else { return false }
    }
    return parts[1].contains { $0 != 48 } && parts[2].contains { $0 != 48 }
  }
}

extension ReceivedEvent {
  /// Whether the proof is a receipt.
  var isReceiptAlone: Bool {
    guard case .payment(let payment) = self else { return false }
    return payment.signedTransaction == nil && payment.appReceipt != nil
  }

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

  /// Reads one event as people and back ends write it: a JSON object with its `type` (with or without its version) beside
  /// the members of its data. The bytes are kept as they are, `type` and unknown members included.
  public init(line: [UInt8], allowing allowed: [EventType]) throws(FieldFailure) {
    let fields = try Fields(fromOutside: line)
    try self.init(type: EventType(named: fields.requiredText("type"), among: allowed), fields: fields)
  }
}

extension EventType {
  /// Every type that `received` may hold.
  public static let receivable: [EventType] = reported + [.storeNotified, .accessOrdered, .operatorActed]

  /// A type as people write it: `payment.purchased` or `payment.purchased.v1`.
  public init(named name: String, among allowed: [EventType]) throws(FieldFailure) {
    switch EventType.read(EventType(rawValue: name)?.wireName ?? name) {
    case .known(let type, _) where allowed.contains(type): self = type
    case .newer: throw FieldFailure("type", "is in a newer version than this program knows")
    default:
      throw FieldFailure("type", "must be one of \(allowed.map(\.rawValue).sorted().joined(separator: ", "))")
    }
  }
}

extension ReceivedRecord {
  /// A proof of the largest size and a generous rest.
  public static let maximumBytes = ReceivedEvent.maximumProofBytes + (1 << 16)

  /// Takes one event that comes with its type beside it, such as the body of a notification or a CloudEvent.
  public init(type: String, data: [UInt8], allowing allowed: [EventType] = EventType.receivable) throws(FieldFailure) {
    try self.init(type: EventType(named: type, among: allowed), data: data)
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    try Self.check(data)
    self.init(try ReceivedEvent(type: type, fields: Fields(fromOutside: data)), data: data)
  }

  /// Takes one line of NDJSON, `{"type":"payment.purchased",…}`.
  public init(line: [UInt8], allowing allowed: [EventType] = EventType.receivable) throws(FieldFailure) {
    try Self.check(line)
    self.init(try ReceivedEvent(line: line, allowing: allowed), data: line)
  }

  private static func check(_ data: [UInt8]) throws(FieldFailure) {
    guard data.count <= maximumBytes else { throw FieldFailure("event", "is longer than \(maximumBytes) bytes") }
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
