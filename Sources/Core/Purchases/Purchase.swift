/// What the fold keeps of the newest revision of one purchase: no more than access, credits and permits are computed from.
public struct Purchase: Sendable, Hashable {
  public var key: BusinessKey
  public var rank: RevisionRank
  public var transaction: TransactionID
  public var product: ProductID
  public var type: ProductType
  /// When access begins. Of a one-time purchase the original date: a restore carries a new one and must not start it anew.
  public var begins: Instant
  /// The end of a subscription period as Apple states it.
  public var expires: Instant?
  public var quantity: Int64
  public var revocationDate: Instant?
  /// Thousandths of a percent; nil: all of it.
  public var revocationPercentage: Int64?
  /// Of a consumable: the credits that it came to, once the catalogue knew it.
  public var booking: Booking?
  public var seats: Seats?
  /// What was bought, where it was sold under a generic product.
  public var items: [PurchasedItem]

  public var isRevoked: Bool { revocationDate != nil }

  /// Whether what it says may belong to a purchase that other statements name.
  var needsJoining: Bool { hasDetails || type == .untold }

  /// Whether it says what receipts leave out of it.
  var hasDetails: Bool { seats != nil || !items.isEmpty }

  /// A consumable that some catalogue has known.
  var isBooked: Bool { booking != nil && type == .consumable }

  /// Revoked, and by Apple's word nothing of it is left: any revocation ends access, but of a consumable a share may stay.
  public var isTakenBack: Bool {
    isRevoked && (type != .consumable || (revocationPercentage ?? 100_000) >= 100_000)
  }

  public init(
    key: BusinessKey, rank: RevisionRank, transaction: TransactionID, product: ProductID, type: ProductType,
    begins: Instant, expires: Instant? = nil, quantity: Int64 = 1, revocationDate: Instant? = nil,
    revocationPercentage: Int64? = nil, booking: Booking? = nil, seats: Seats? = nil, items: [PurchasedItem] = []
  ) {
    self.key = key
    self.rank = rank
    self.transaction = transaction
    self.product = product
    self.type = type
    self.begins = begins
    self.expires = expires
    self.quantity = quantity
    self.revocationDate = revocationDate
    self.revocationPercentage = revocationPercentage
    self.booking = booking
    self.seats = seats
    self.items = items
  }

  public init(_ revision: TransactionRevision) {
    // A restore carries a new date; of what may be one, the first counts.
    let isOnce = revision.type == .nonConsumable || revision.type == .nonRenewing || revision.type == .untold
    let first = isOnce ? revision.originalPurchaseDate ?? revision.purchaseDate : revision.purchaseDate
    let begins = min(first, revision.purchaseDate)
    self.init(
      key: revision.businessKey, rank: revision.rank, transaction: revision.transaction, product: revision.product,
      type: revision.type, begins: begins, expires: revision.type == .autoRenewable ? revision.expiresDate : nil,
      quantity: revision.quantity, revocationDate: revision.revocationDate,
      revocationPercentage: revision.revocationPercentage, seats: revision.seats, items: revision.items)
  }
}

/// Credits of one consumable in the ledger.
public struct Booking: Sendable, Hashable {
  public var unit: CreditUnit
  /// What the purchase is worth, by the catalogue in force when it was bought, else the first later one that knew it.
  public var worth: Int64
  /// What of it the ledger holds now.
  public var booked: Int64

  public init(unit: CreditUnit, worth: Int64, booked: Int64) {
    self.unit = unit
    self.worth = worth
    self.booked = booked
  }

  /// What a refund of that share takes back: the nearest whole credit, half of one rounded up.
  public static func refund(of worth: Int64, percentage: Int64?) -> Int64 {
    guard let percentage else { return worth }
    // Below 10^9 credits times 10^4 pieces times 10^5: within 64 bits.
    return (worth * min(max(percentage, 0), 100_000) + 50_000) / 100_000
  }
}

/// What the fold keeps of the newest renewal info of one chain.
public struct Renewal: Sendable, Hashable {
  public var originalTransaction: OriginalTransactionID
  public var rank: RevisionRank
  public var graceEnds: Instant?
  /// Auto-renew on, off, or not said: for people and the store's answers; it never changes access.
  public var autoRenews: Bool?
  public var isInBillingRetry: Bool
  public var nextProduct: ProductID?

  public init(
    originalTransaction: OriginalTransactionID, rank: RevisionRank, graceEnds: Instant? = nil, autoRenews: Bool? = nil,
    isInBillingRetry: Bool = false, nextProduct: ProductID? = nil
  ) {
    self.originalTransaction = originalTransaction
    self.rank = rank
    self.graceEnds = graceEnds
    self.autoRenews = autoRenews
    self.isInBillingRetry = isInBillingRetry
    self.nextProduct = nextProduct
  }

  public init(_ revision: RenewalRevision) {
    self.init(
      originalTransaction: revision.originalTransaction, rank: revision.rank,
      graceEnds: revision.gracePeriodExpiresDate, autoRenews: revision.autoRenewStatus.map { $0 == 1 },
      isInBillingRetry: revision.isInBillingRetry ?? false, nextProduct: revision.autoRenewProduct)
  }
}
