import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// What became of a proof. Verified and rejected are terminal; pending is neither.
public enum Verdict: Sendable {
  case verified(VerifiedProof)
  case rejected(RejectedProof)
  case pending(PendingProof)
}

/// Authentic: signed by whom the deployment trusts, for an app of the deployment. Says nothing of what it entitles to.
public struct VerifiedProof: Sendable {
  public var kind: ProofKind
  public var environment: Environment
  /// When it was signed; for an app transaction, when its receipt was made.
  public var signedDate: Instant
  /// SHA-256 of the proof, in hex.
  public var digest: String
  /// What was verified in its own right: the proof's payload, or those inside a notification.
  public var parts: [SignedPart]
  public var notification: NotificationFacts?
  /// Of a notification: its payload without the proofs inside, which are parts.
  public var body: [UInt8]?
  /// The transaction, or the one inside the notification.
  public var transaction: TransactionRevision?
  /// The purchase that the proof is about, if it is about one.
  public var originalTransaction: OriginalTransactionID?
  public var evidence: JSON
  /// Of an app receipt: its purchases, in the order of the parts.
  public var purchases: [TransactionRevision] = []
}

public struct RejectedProof: Sendable {
  public var reason: Reason
  /// The field that is missing or not what it must be, with the way to it.
  public var field: String?
  public var digest: String
  /// One sentence for people; names fields, never what they hold.
  public var explanation: String
  public var evidence: JSON
}

public struct PendingProof: Sendable {
  public var reason: PendingReason
  /// When it can be told.
  public var until: Instant
  public var digest: String
  public var evidence: JSON
}

/// Why a verdict has to wait: a closed list, like ``Reason``.
public enum PendingReason: String, Sendable, Hashable, CaseIterable {
  /// Signed at a time that has not come yet, beyond what clocks differ by.
  case signedInTheFuture = "signed-in-the-future"
  /// Nobody could tell whether the signer's certificates have been revoked, and the deployment wants to know.
  case revocationUnknown = "revocation-unknown"
  /// The oldest kind of receipt: nothing in it can be checked here.
  case needsVerifyReceipt = "needs-verify-receipt"
  /// The App Store was asked about such a receipt and could not be reached, or could not tell.
  case verifyReceiptUnknown = "verify-receipt-unknown"

  public var explanation: String {
    switch self {
    case .revocationUnknown: "It could not be told whether the signer's certificates have been revoked."
    case .signedInTheFuture: "The proof is authentic, but dated further in the future than clocks may differ."
    case .needsVerifyReceipt: "The receipt is of the oldest kind, which only the App Store's verifyReceipt can judge."
    case .verifyReceiptUnknown: "The App Store could not be asked about the receipt, or could not tell."
    }
  }
}

/// Ends the judgement of one proof early.
enum Halt: Error {
  case refused(Reason, field: String?)
  case waiting(PendingReason, until: Instant)

  static func claim(_ failure: ClaimFailure, _ field: String? = nil) -> Halt { .refused(.claim(failure), field: field) }

  /// A field failure of the contracts' readers. They name the payload first, which the reader of a verdict doesn't need.
  static func field(_ failure: FieldFailure) -> Halt {
    let name = failure.field.split(separator: ".").last.map(String.init) ?? failure.field
    return failure.reason == "is missing"
      ? .claim(.missingField, name) : .claim(.malformedField, "\(name) \(failure.reason)")
  }

  /// The same about a proof that lies in a member of another.
  func inside(_ member: String) -> Halt {
    guard case .refused(let reason, let field) = self else { return self }
    return .refused(reason, field: field.map { "\(member).\($0)" } ?? member)
  }
}
