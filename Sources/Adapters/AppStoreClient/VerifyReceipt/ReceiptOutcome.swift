import PurchasesContracts
import PurchasesCore

/// What came of asking `verifyReceipt`. Closed: there is nothing else.
public enum ReceiptOutcome: Sendable, Hashable {
  /// Genuine.
  case valid(VerifyReceiptAnswer)
  /// Genuine, and its subscription has expired (only the oldest receipts are told of so).
  case expired(VerifyReceiptAnswer)
  /// Final.
  case rejected(ReceiptRejection)
  /// Could not be told: neither grants nor revokes anything.
  case undecided(ReceiptTrouble)
}

public struct ReceiptRejection: Sendable, Hashable {
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// 21003.
    case notAuthentic = "not-authentic"
    /// 21010.
    case accountUnknown = "account-unknown"
  }

  public let reason: Reason
  public let status: Int64
  public let side: AppleSide
  /// The body as it came: the evidence.
  public let body: [UInt8]
}

/// Why nothing could be told, and whether asking again can help.
public struct ReceiptTrouble: Sendable, Hashable, CustomStringConvertible {
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// 21005, 21009 and most of 21100 to 21199.
    case unavailable
    /// 21002, several times in a row. It is invalid only if our own check of the receipt fails too.
    case malformedOrBusy = "malformed-or-busy"
    /// 21004: set the right shared secret, then ask again.
    case wrongSecret = "wrong-secret"
    /// 21000, 21001: ask again when the program is mended.
    case requestFault = "request-fault"
    /// 21100 to 21199 with `is_retryable` false.
    case notRetryable = "not-retryable"
    /// A status that we don't know, or none.
    case unknownStatus = "unknown-status"
    /// No answer: refused, reset, timed out, TLS.
    case unreachable
    /// An HTTP status of 400 or above.
    case httpStatus = "http-status"
    case redirected
    /// 200 with a web page, half a document, or an empty object.
    case unusableBody = "unusable-body"
    /// Nobody asked: too many failures just before.
    case paused
    /// Each side says that it is the other's, or an answer names the wrong environment.
    case contradiction
  }

  public let reason: Reason
  /// The side that was asked last.
  public let side: AppleSide
  /// Apple's status, or HTTP's where there was none.
  public let status: Int64?
  /// Not before this is there any use in asking again; nil where nothing is known of that.
  public let notBefore: Instant?
  /// For people. Holds neither receipt nor secret.
  public let detail: String
  /// Apple's answer as it came, where there was one.
  public var body: [UInt8]?

  init(
    reason: Reason, side: AppleSide, status: Int64?, notBefore: Instant?, detail: String, body: [UInt8]? = nil
  ) {
    self.reason = reason
    self.side = side
    self.status = status
    self.notBefore = notBefore
    self.detail = detail
    self.body = body
  }

  /// Whether the same question may have another answer later. A contradiction has not: it is for people to look at.
  public var isRetryable: Bool { reason != .contradiction && reason != .notRetryable }

  public var description: String { "\(reason.rawValue) (\(side.rawValue)): \(detail)" }
}
