import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// What an unverified proof says of itself. Only good for choosing a partition and an id: where it lies, it hurts nobody
/// but its own record.
struct ProofPeek {
  var environment: Environment?
  var originalTransaction: OriginalTransactionID?
  var notification: String?

  init() {}

  init(of proof: [UInt8]) {
    guard let payload = Self.payload(of: proof) else { return }
    environment = Self.environment(payload)
    originalTransaction = payload["originalTransactionId"]?.string.flatMap { OriginalTransactionID($0) }
    guard payload["notificationType"] != nil else { return }
    notification = payload["notificationUUID"]?.string
    for name in ["data", "summary", "appData"] as [StaticString] {
      guard let body = payload[name] else { continue }
      if environment == nil { environment = Self.environment(body) }
      for nested in ["signedTransactionInfo", "signedRenewalInfo"] as [StaticString] where originalTransaction == nil {
        originalTransaction = body[nested]?.utf8.flatMap { Self.payload(of: $0) }
          .flatMap { $0["originalTransactionId"]?.string }.flatMap { OriginalTransactionID($0) }
      }
    }
    if let purchase = payload["externalPurchaseToken"]?["externalPurchaseId"]?.string, environment == nil {
      environment = purchase.hasPrefix("SANDBOX") ? .sandbox : .production
    }
  }

  private static func environment(_ view: JSONView) -> Environment? {
    // An app transaction calls it `receiptType`.
    (view["environment"] ?? view["receiptType"])?.string.flatMap { Environment(rawValue: $0) }
  }

  private static func payload(of proof: [UInt8]) -> JSONView? {
    let dot = UInt8(ascii: ".")
    guard let first = proof.firstIndex(of: dot), let second = proof[(first + 1)...].firstIndex(of: dot),
      let bytes = Base64URL.decode(proof[(first + 1)..<second])
    else { return nil }
    return try? JSONDocument(parsing: bytes).root
  }
}

extension Reception {
  /// SHA-256 over environment, type and exact content, each with its length before it, so that no two lists of parts have
  /// the same bytes. A proof's environment is the one it names itself: two senders of the same proof agree, whatever else
  /// they say.
  static func identity(of event: ReceivedEvent, proof: [UInt8]?, peek: ProofPeek?) -> String {
    let hasher = SHA256.Hasher()
    func add(_ bytes: [UInt8]) {
      hasher.update(bigEndian: UInt32(bytes.count))
      hasher.update(bytes)
    }
    func add(_ text: String?) { add(Array((text ?? "").utf8)) }
    add("purchases.received")
    add((peek?.environment ?? (proof == nil ? environment(of: event) : nil))?.rawValue)
    add(event.type.rawValue)
    if let proof {
      add(proof)
    } else {
      let (account, attempt) = origin(of: event)
      add(account?.text)
      add(attempt)
    }
    return hasher.finish().hex
  }

  private static func environment(of event: ReceivedEvent) -> Environment? {
    switch event {
    case .payment(let event): event.environment
    case .restore(let event): event.environment
    case .claimed(let event): event.environment
    case .spendRequested(let event): event.environment
    case .ordered(let event): event.environment
    case .notified, .operatorActed: nil
    }
  }

  /// Whose fact it is, and the sender's own id of it.
  private static func origin(of event: ReceivedEvent) -> (Account?, String?) {
    switch event {
    case .payment(let event): (event.account, event.attempt)
    case .restore(let event): (event.account, event.attempt)
    case .claimed(let event): (event.account, event.attempt)
    case .spendRequested(let event): (event.account, event.idempotencyKey)
    case .ordered(let event): (event.account, event.orderID)
    case .operatorActed(let event): (nil, event.actID)
    case .notified: (nil, nil)
    }
  }

  /// environment/originalTransactionId where the proof, a claim or an order to transfer names one; else
  /// environment/account; else environment/notificationUUID. What names nothing stands by itself.
  static func key(of event: ReceivedEvent, id: String, proofDigest: String?, peek: ProofPeek?) -> String {
    if let environment = peek?.environment {
      if let original = peek?.originalTransaction { return key(environment, original) }
      if let account = origin(of: event).0 { return key(environment, account) }
      if let uuid = peek?.notification, IdentifierRule.accepts(uuid) {
        return "\(environment.rawValue)/\(uuid.lowercased())"
      }
    }
    switch event {
    case .claimed(let claim): return key(claim.environment, claim.originalTransaction)
    case .ordered(let ordered):
      if case .transfer(let original, _) = ordered.order { return key(ordered.environment, original) }
    default: break
    }
    if let environment = environment(of: event), let account = origin(of: event).0 { return key(environment, account) }
    if let proofDigest { return "unreadable/\(proofDigest)" }
    return "operator/\(id)"
  }

  /// A payment that names its transaction has it for its subject, in the environment that its proof names.
  static func subject(of event: ReceivedEvent, peek: ProofPeek?) -> TransactionSubject? {
    guard case .payment(let payment) = event, let transaction = payment.transaction,
      let environment = peek?.environment ?? payment.environment
    else { return nil }
    return TransactionSubject(environment, transaction)
  }

  /// The key that an event has in the topic `received`, whatever its producer chose.
  public static func key(of event: ReceivedEvent) -> String {
    let proof = event.proof.map { Array($0.utf8) }
    let peek = proof.map { ProofPeek(of: $0) }
    return key(
      of: event, id: identity(of: event, proof: proof, peek: peek), proofDigest: proof.map { SHA256.digest($0).hex },
      peek: peek)
  }

  /// The subject that an event has in the topic `received`.
  public static func subject(of event: ReceivedEvent) -> String? {
    subject(of: event, peek: event.proof.map { ProofPeek(of: Array($0.utf8)) })?.text
  }

  /// The key under which facts about one purchase meet.
  public static func key(_ environment: Environment, _ original: OriginalTransactionID) -> String {
    "\(environment.rawValue)/\(original.text)"
  }

  /// The key under which facts about one account meet.
  public static func key(_ environment: Environment, _ account: Account) -> String {
    "\(environment.rawValue)/\(account.text)"
  }
}
