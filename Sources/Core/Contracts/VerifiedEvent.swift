import PurchasesCore
import PurchasesJSON

/// What was signed: told from the verified payload, never from its sender.
public enum ProofKind: String, Sendable, Hashable, CaseIterable {
  case transaction
  case renewalInfo = "renewal-info"
  case notification
  case appTransaction = "app-transaction"
  /// Of a part: what a receipt says of one purchase.
  case appReceipt = "app-receipt"

  /// The kinds that are compact JWS.
  public static let jws: [ProofKind] = [.transaction, .renewalInfo, .notification, .appTransaction]
}

/// One signed payload that was verified in its own right, kept as Apple signed it.
public struct SignedPart: Sendable, Hashable {
  public var kind: ProofKind
  /// SHA-256 of the compact JWS, in hex; of a purchase in a receipt, ``AppReceipt/digest(ofReceipt:transaction:)``.
  public var digest: String
  public var source: RevisionSource
  /// The payload's JSON, every field as it was signed.
  public var payload: [UInt8]
  /// In the topic `owned`, of a statement that changed nothing: why. nil where it is the newest of its kind.
  public var standing: Standing?

  public enum Standing: String, Sendable, Hashable, CaseIterable {
    /// A newer statement about the same thing had come before.
    case superseded
    /// The same bytes had come before.
    case copy
  }

  public init(
    kind: ProofKind, digest: String, source: RevisionSource, payload: [UInt8], standing: Standing? = nil
  ) {
    self.kind = kind
    self.digest = digest
    self.source = source
    self.payload = payload
    self.standing = standing
  }
}

/// The unverified circumstances of a proof: who sent it and what they called it.
public struct Report: Sendable, Hashable {
  public var type: EventType
  public var account: Account?
  public var attempt: String?
  public var product: ProductID?
  public var transaction: TransactionID?

  public init(
    type: EventType, account: Account? = nil, attempt: String? = nil, product: ProductID? = nil,
    transaction: TransactionID? = nil
  ) {
    self.type = type
    self.account = account
    self.attempt = attempt
    self.product = product
    self.transaction = transaction
  }
}

/// The outer facts of a verified notification. Unknown types and subtypes stay as they came.
public struct NotificationFacts: Sendable, Hashable {
  public var uuid: String
  public var type: String
  public var subtype: String?
  public var version: String?
  public var signedDate: Instant

  public init(uuid: String, type: String, subtype: String?, version: String?, signedDate: Instant) {
    self.uuid = uuid
    self.type = type
    self.subtype = subtype
    self.version = version
    self.signedDate = signedDate
  }
}

/// Data of `purchase.verified`.
public struct PurchaseVerified: Sendable, Hashable {
  public var environment: Environment
  public var kind: ProofKind
  /// What a permit is bound to: SHA-256 of the proof as received, in hex; of a purchase in a receipt,
  /// ``AppReceipt/digest(ofReceipt:transaction:)``.
  public var proof: String
  public var signedDate: Instant
  public var parts: [SignedPart]
  public var notification: NotificationFacts?
  /// Of a notification: what was signed around its proofs, every member but the proofs, which are `parts`.
  public var body: [UInt8]?
  public var report: Report
  /// With it the verdict can be judged again offline.
  public var evidence: JSON

  public init(
    environment: Environment, kind: ProofKind, proof: String, signedDate: Instant, parts: [SignedPart],
    notification: NotificationFacts?, body: [UInt8]? = nil, report: Report, evidence: JSON
  ) {
    self.environment = environment
    self.kind = kind
    self.proof = proof
    self.signedDate = signedDate
    self.parts = parts
    self.notification = notification
    self.body = body
    self.report = report
    self.evidence = evidence
  }
}

/// Data of `purchase.rejected`: terminal. Nothing of the payload is in it but the proof as it was sent, in the evidence.
public struct PurchaseRejected: Sendable, Hashable {
  public var environment: Environment?
  public var proof: String
  /// From the closed list of reasons.
  public var reason: String
  /// One sentence for people.
  public var explanation: String
  public var report: Report
  public var evidence: JSON

  public init(
    environment: Environment?, proof: String, reason: String, explanation: String, report: Report, evidence: JSON
  ) {
    self.environment = environment
    self.proof = proof
    self.reason = reason
    self.explanation = explanation
    self.report = report
    self.evidence = evidence
  }
}

/// Data of `purchase.pending`: could not be told yet; the record waits in `parked`.
public struct PurchasePending: Sendable, Hashable {
  public var environment: Environment?
  public var proof: String
  public var reason: String
  public var attempt: Int
  public var nextTry: Instant
  public var report: Report

  public init(
    environment: Environment?, proof: String, reason: String, attempt: Int, nextTry: Instant, report: Report
  ) {
    self.environment = environment
    self.proof = proof
    self.reason = reason
    self.attempt = attempt
    self.nextTry = nextTry
    self.report = report
  }
}

/// Data of `fact.noted`: a received event with nothing in it to verify, passed on as it was.
public struct FactNoted: Sendable, Hashable {
  public var type: EventType
  public var data: [UInt8]

  public init(type: EventType, data: [UInt8]) {
    self.type = type
    self.data = data
  }

  /// The received event inside.
  public func event() throws(FieldFailure) -> ReceivedEvent { try ReceivedEvent(type: type, data: data) }
}

/// The events of the topic `verified`.
public enum VerifiedEvent: Sendable, Hashable {
  case verified(PurchaseVerified)
  case rejected(PurchaseRejected)
  case pending(PurchasePending)
  case noted(FactNoted)
}
