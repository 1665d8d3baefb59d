import PurchasesCore
import PurchasesJSON

/// One purchase as an answer of `verifyReceipt` lists it. A value that is absent or can't be read is nil; all that came is
/// in ``raw``.
public struct VerifyReceiptTransaction: Sendable, Hashable {
  public var product: String?
  /// Decimal text, however Apple wrote it.
  public var transaction: String?
  public var originalTransaction: String?
  public var webOrderLineItem: String?
  public var quantity: Int64?
  public var purchaseDate: Instant?
  public var originalPurchaseDate: Instant?
  public var expiresDate: Instant?
  /// A refund, or the end of family sharing, or the upgrade that took the purchase's place.
  public var cancellationDate: Instant?
  public var cancellationReason: Int64?
  public var isTrialPeriod: Bool?
  public var isInIntroOfferPeriod: Bool?
  public var isUpgraded: Bool?
  public var ownershipType: String?
  public var subscriptionGroup: String?
  public var accountToken: String?
  public var offerCodeReference: String?
  public var promotionalOffer: String?
  public let raw: JSON
}

/// How a subscription goes on, from `pending_renewal_info`.
public struct VerifyReceiptRenewal: Sendable, Hashable {
  public var product: String?
  public var autoRenewProduct: String?
  public var originalTransaction: String?
  /// 1 renews, 0 does not.
  public var autoRenewStatus: Int64?
  public var expirationIntent: Int64?
  public var isInBillingRetry: Bool?
  public var gracePeriodExpiresDate: Instant?
  public var priceConsentStatus: Int64?
  public var accountToken: String?
  public let raw: JSON
}

/// What Apple says of a receipt, in one shape whatever shape it came in.
public struct VerifyReceiptAnswer: Sendable, Hashable, CustomStringConvertible {
  public let status: VerifyReceiptStatus
  /// Whose server it is from: production or sandbox.
  public let environment: Environment
  /// What the answer says of its environment; the oldest receipts' answers say nothing.
  public var statedEnvironment: String?
  /// The body as it came, byte for byte: the evidence.
  public let body: [UInt8]
  public var bundleID: String?
  public var appAppleID: String?
  public var applicationVersion: String?
  public var originalApplicationVersion: String?
  /// `Production`, `ProductionSandbox`, `ProductionVPP`, …
  public var receiptType: String?
  /// The date that the receipt's purchases are judged at.
  public var receiptCreationDate: Instant?
  /// The date that ``latest`` and ``renewals`` are judged at.
  public var requestDate: Instant?
  /// Base64 of the newest receipt.
  public var latestReceipt: String?
  /// The receipt's own purchases: `receipt.in_app`, or the receipt itself where it is one transaction.
  public var purchases: [VerifyReceiptTransaction] = []
  /// `latest_receipt_info`, and `latest_expired_receipt_info` after it.
  public var latest: [VerifyReceiptTransaction] = []
  public var renewals: [VerifyReceiptRenewal] = []
  /// Entries of the lists above that are no objects; more than none is worth a look.
  public var unreadable = 0
  /// Whether `receipt.in_app` was there: absent is not the same as empty, though neither holds a purchase.
  public var listsPurchases = false

  init(status: VerifyReceiptStatus, environment: Environment, body: [UInt8]) {
    self.status = status
    self.environment = environment
    self.body = body
  }

  /// Whether the answer is of the environment that it comes from, as far as it says.
  public var agrees: Bool { statedEnvironment == nil || statedEnvironment == environment.rawValue }

  /// For a log line: nothing of whom the receipt is, or what is in it.
  public var description: String {
    "receipt (\(environment.rawValue), \(status)): \(purchases.count) purchases, \(latest.count) latest, "
      + "\(renewals.count) renewals"
  }

  /// Whether anything was bought at all. A genuine receipt without a purchase is no error.
  public var holdsPurchases: Bool { !purchases.isEmpty || !latest.isEmpty }
}
