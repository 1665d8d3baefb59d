/// Who brought a revision: a notification outranks a client where everything else is equal (design: total order).
public enum RevisionSource: Int, Sendable, Hashable, Comparable {
  case client = 0
  case backfill = 1
  case notification = 2

  public static func < (a: RevisionSource, b: RevisionSource) -> Bool { a.rawValue < b.rawValue }
}

/// Apple's `type`; an unknown one is kept raw and grants nothing of its own.
public enum ProductType: Sendable, Hashable {
  case consumable, nonConsumable, autoRenewable, nonRenewing
  case unknown(String)

  public init(apple raw: String) {
    switch raw {
    case "Consumable": self = .consumable
    case "Non-Consumable": self = .nonConsumable
    case "Auto-Renewable Subscription": self = .autoRenewable
    case "Non-Renewing Subscription": self = .nonRenewing
    default: self = .unknown(raw)
    }
  }

  /// Of what a receipt lists without its type.
  public static let untold = ProductType.unknown("not told")

  public var apple: String {
    switch self {
    case .consumable: "Consumable"
    case .nonConsumable: "Non-Consumable"
    case .autoRenewable: "Auto-Renewable Subscription"
    case .nonRenewing: "Non-Renewing Subscription"
    case .unknown(let raw): raw
    }
  }
}

/// Where one revision stands among others of the same thing. The order is total, so that any order of arrival ends the
/// same: the proof's date, then revoked above not revoked, then source, then digest.
public struct RevisionRank: Sendable, Hashable, Comparable {
  public var signedDate: Instant
  public var isRevoked: Bool
  public var source: RevisionSource
  /// SHA-256 of the proof, in hex.
  public var digest: String

  public init(signedDate: Instant, isRevoked: Bool, source: RevisionSource, digest: String) {
    self.signedDate = signedDate
    self.isRevoked = isRevoked
    self.source = source
    self.digest = digest
  }

  public static func < (a: RevisionRank, b: RevisionRank) -> Bool {
    if a.signedDate != b.signedDate { return a.signedDate < b.signedDate }
    if a.isRevoked != b.isRevoked { return b.isRevoked }
    if a.source != b.source { return a.source < b.source }
    return a.digest < b.digest
  }
}

/// One verified statement by Apple about one transaction: the fields that folds and decisions read. The payload as it
/// was signed travels beside it, byte for byte.
public struct TransactionRevision: Sendable, Hashable {
  public var rank: RevisionRank
  public var environment: Environment
  public var transaction: TransactionID
  public var originalTransaction: OriginalTransactionID
  public var product: ProductID
  public var type: ProductType
  public var purchaseDate: Instant
  public var originalPurchaseDate: Instant?
  public var expiresDate: Instant?
  /// 1 where Apple sent none.
  public var quantity: Int64
  public var webOrderLineItem: String?
  public var subscriptionGroup: String?
  /// Any revocation date revokes, whatever the raw type beside it.
  public var revocationDate: Instant?
  public var revocationReason: Int64?
  public var revocationType: String?
  /// Thousandths of a percent (100000 is all of it); nil where Apple sent none.
  public var revocationPercentage: Int64?
  public var isUpgraded: Bool
  /// nil where one person bought for themselves.
  public var seats: Seats?
  /// Each under its own SKU; empty where the product is what was bought.
  public var items: [PurchasedItem]
  /// `PURCHASED`, `FAMILY_SHARED`, …, raw.
  public var ownershipType: String?
  /// The account that `appAccountToken` names, if it names one.
  public var accountToken: Account?
  /// There is an `appAccountToken`, and it names none: not a UUID, or the one of zeroes.
  public var hasUnusableToken = false
  /// Milliunits of `currency` (ISO 4217).
  public var price: Int64?
  public var currency: String?
  public var offerType: Int64?
  public var offerDiscountType: String?
  public var transactionReason: String?
  public var storefront: String?

  public init(
    rank: RevisionRank, environment: Environment, transaction: TransactionID,
    originalTransaction: OriginalTransactionID, product: ProductID, type: ProductType, purchaseDate: Instant,
    quantity: Int64 = 1
  ) {
    self.rank = rank
    self.environment = environment
    self.transaction = transaction
    self.originalTransaction = originalTransaction
    self.product = product
    self.type = type
    self.purchaseDate = purchaseDate
    self.quantity = quantity
    self.isUpgraded = false
    self.items = []
  }
}

/// One verified statement by Apple about how a subscription goes on.
public struct RenewalRevision: Sendable, Hashable {
  public var rank: RevisionRank
  public var environment: Environment
  public var originalTransaction: OriginalTransactionID
  public var product: ProductID?
  public var autoRenewProduct: ProductID?
  public var autoRenewStatus: Int64?
  public var expirationIntent: Int64?
  public var isInBillingRetry: Bool?
  public var gracePeriodExpiresDate: Instant?
  public var renewalDate: Instant?
  public var recentSubscriptionStartDate: Instant?
  public var priceIncreaseStatus: Int64?
  public var accountToken: Account?
  public var hasUnusableToken = false

  public init(rank: RevisionRank, environment: Environment, originalTransaction: OriginalTransactionID) {
    self.rank = rank
    self.environment = environment
    self.originalTransaction = originalTransaction
  }
}
