/// What a status of `verifyReceipt` means. Every number, and the absence of one, has a meaning: a status that nobody knows
/// never grants and never refuses.
public enum VerifyReceiptStatus: Sendable, Hashable {
  /// 0. The receipt as a whole is genuine; a subscription in it may have expired.
  case valid
  /// 21006: genuine, and its subscription has expired; only for the oldest receipts, one transaction each.
  case validExpired
  /// 21000, 21001: our request is wrong. Says nothing about the purchase.
  case requestFault(Int64)
  /// 21002: the data is broken, or the service had a moment of weakness. Which of them, only our own check of the receipt
  /// can tell.
  case malformedOrBusy
  /// 21003: Apple can't authenticate the receipt. Final.
  case notAuthentic
  /// 21004: the shared secret is not the account's. Says nothing about the purchase.
  case wrongSecret
  /// 21005, 21009, and 21100 to 21199 unless they say otherwise.
  case tryLater(Int64)
  /// 21100 to 21199 with `is_retryable` false.
  case notRetryable(Int64)
  /// 21007: of the sandbox, and sent to production.
  case isSandbox
  /// 21008: of production, and sent to the sandbox.
  case isProduction
  /// 21010: no such user account, or deleted. Final: as if never bought.
  case accountUnknown
  /// Any other number; nil where there was none.
  case unknown(Int64?)

  /// Apple's internal errors.
  static let internalErrors: ClosedRange<Int64> = 21_100...21_199

  public init(_ status: Int64?, isRetryable: Bool? = nil) {
    switch status {
    case 0: self = .valid
    case 21_000: self = .requestFault(21_000)
    case 21_001: self = .requestFault(21_001)
    case 21_002: self = .malformedOrBusy
    case 21_003: self = .notAuthentic
    case 21_004: self = .wrongSecret
    case 21_005: self = .tryLater(21_005)
    case 21_006: self = .validExpired
    case 21_007: self = .isSandbox
    case 21_008: self = .isProduction
    case 21_009: self = .tryLater(21_009)
    case 21_010: self = .accountUnknown
    case let status? where Self.internalErrors.contains(status):
      self = isRetryable == false ? .notRetryable(status) : .tryLater(status)
    default: self = .unknown(status)
    }
  }
}
