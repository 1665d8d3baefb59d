import PurchasesCore
import PurchasesJSON

/// What Apple's newest statements say of one purchase and how it goes on, at an instant: facts side by side, as they were
/// signed, and no word that sums them up. Whoever needs one decides by the facts that matter to them.
public struct ChainView: Sendable, Hashable {
  public var environment: Environment
  public var originalTransaction: OriginalTransactionID
  /// What the owner's right rests on.
  public var basis: OwnershipBasis
  public var at: Instant
  /// The newest transaction that was bought by the instant; the first one where all of them were bought later.
  public var purchase: PurchaseFacts
  /// How a subscription goes on; nil where Apple has said nothing about it.
  public var renewal: RenewalFacts?
  /// What is to change, and when, as things stand.
  public var pending: [PendingChange]
  /// Seats of the running period over all of its transactions, without those that were taken back; nil where it has none.
  public var seats: Int64?

  /// Facts of a transaction.
  public struct PurchaseFacts: Sendable, Hashable {
    public var transaction: TransactionID
    public var product: ProductID
    public var type: ProductType
    /// `PURCHASED`, `FAMILY_SHARED`, …, raw.
    public var ownershipType: String?
    public var subscriptionGroup: String?
    public var appTransaction: String?
    public var purchasedAt: Instant
    /// The end of the period as it was paid.
    public var paidThrough: Instant?
    public var revokedAt: Instant?
    public var revocationType: String?
    public var revocationReason: Int64?
    /// Thousandths of a percent.
    public var revocationPercentage: Int64?
    public var isUpgraded: Bool
    public var quantity: Int64
    /// Milliunits of the currency; of a purchase for several people, for each seat.
    public var price: Int64?
    public var currency: String?
    public var billingPlan: String?
    public var offer: Offer?
    public var items: [Item]
    /// When Apple signed it.
    public var signedAt: Instant
  }

  public struct Offer: Sendable, Hashable {
    /// Apple's number: 1 introductory, 2 promotional, 3 by code, 4 to win back, 5 to keep.
    public var type: Int64?
    public var isTrial: Bool
    /// `FREE_TRIAL`, `PAY_AS_YOU_GO`, …, raw.
    public var discountType: String?
    public var identifier: String?
    /// ISO 8601, such as `P1M`.
    public var period: String?

    public init(type: Int64?, isTrial: Bool, discountType: String?, identifier: String?, period: String?) {
      self.type = type
      self.isTrial = isTrial
      self.discountType = discountType
      self.identifier = identifier
      self.period = period
    }
  }

  /// What was bought under a generic product.
  public struct Item: Sendable, Hashable {
    public var sku: String
    public var price: Int64?
    public var revokedAt: Instant?
    /// Milliunits, over all refunds.
    public var refunded: Int64?

    public init(sku: String, price: Int64?, revokedAt: Instant?, refunded: Int64?) {
      self.sku = sku
      self.price = price
      self.revokedAt = revokedAt
      self.refunded = refunded
    }
  }

  public struct RenewalFacts: Sendable, Hashable {
    public var autoRenews: Bool?
    public var isInBillingRetry: Bool
    public var graceUntil: Instant?
    /// Apple's number.
    public var expirationIntent: Int64?
    public var renewsAt: Instant?
    public var price: Int64?
    public var currency: String?
    public var signedAt: Instant
  }

  public struct PendingChange: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// Auto-renew is off: the subscription ends.
      case end
      /// A downgrade, or a crossgrade to another duration.
      case product
      case quantity
      case billingPlan = "billing-plan"
      /// The customer has been asked for a higher price and has not answered.
      case priceConsent = "price-consent"
    }

    public var kind: Kind
    public var at: Instant?
    /// The product, number of seats or billing plan from then on.
    public var to: String?

    public init(kind: Kind, at: Instant?, to: String?) {
      self.kind = kind
      self.at = at
      self.to = to
    }
  }
}

extension ChainView {
  /// - Throws: for a row whose statements can't be read.
  public init(_ row: ChainRow, at instant: Instant) throws(FieldFailure) {
    var revisions: [(revision: TransactionRevision, model: SignedTransaction, isTrial: Bool?)] = []
    var going: (revision: RenewalRevision, model: SignedRenewalInfo)?
    for part in row.parts {
      switch part.kind {
      case .transaction, .appReceipt:
        // Receipts say it in a member of their own.
        let isTrial = try part.document()["isTrialPeriod"]?.bool
        revisions.append((try part.transactionRevision(), try part.transaction().model, isTrial))
      case .renewalInfo: going = (try part.renewalRevision(), try part.renewalInfo().model)
      case .notification, .appTransaction: break
      }
    }
    let inOrder = revisions.sorted {
      $0.revision.purchaseDate == $1.revision.purchaseDate
        ? Self.tellsLess($0.revision, $1.revision) : $0.revision.purchaseDate < $1.revision.purchaseDate
    }
    guard var current = inOrder.last(where: { $0.revision.purchaseDate <= instant }) ?? inOrder.first else {
      throw FieldFailure("chain", "has no transaction")
    }
    if current.revision.revocationDate != nil,
      let standing = inOrder.last(where: {
        $0.revision.revocationDate == nil && Self.isBeside($0.revision, current.revision)
      })
    {
      // Seats that were added and taken back: the period stands.
      current = standing
    }
    environment = row.environment
    originalTransaction = row.originalTransaction
    basis = row.basis
    at = instant
    purchase = PurchaseFacts(current.revision, current.model, isTrial: current.isTrial)
    // What another statement says of the same transaction may be newer, and tell less but this.
    let same = revisions.filter { $0.revision.transaction == current.revision.transaction }
    if let newest = same.max(by: { $0.revision.rank < $1.revision.rank }) { purchase.takeRevocation(newest.revision) }
    renewal = going.map { RenewalFacts($0.revision, $0.model) }
    pending = []
    seats = Self.seats(revisions.map(\.revision), of: current.revision)
    if let going { pending = Self.pending(going.revision, going.model, purchase, seats) }
  }

  /// Of two statements about what was bought at one time, whether the first is to be preferred less: a receipt tells less
  /// than a signed transaction, an older statement less than a newer one.
  private static func tellsLess(_ a: TransactionRevision, _ b: TransactionRevision) -> Bool {
    func rank(_ revision: TransactionRevision) -> Int {
      (revision.type == .untold ? 0 : 1) + (revision.price == nil ? 0 : 1)
        + (revision.seats == nil && revision.items.isEmpty ? 0 : 2)
    }
    let (x, y) = (rank(a), rank(b))
    return x == y ? a.rank < b.rank : x < y
  }

  private static func seats(_ revisions: [TransactionRevision], of current: TransactionRevision) -> Int64? {
    guard current.seats != nil else { return nil }
    return revisions.reduce(0) { sum, revision in
      guard let seats = revision.seats, revision.revocationDate == nil,
        revision.transaction == current.transaction || isBeside(revision, current)
      else { return sum }
      return sum + max(0, revision.quantity - seats.revoked)
    }
  }

  /// Whether two transactions stand for one period that was bought for several people.
  private static func isBeside(_ a: TransactionRevision, _ b: TransactionRevision) -> Bool {
    let (a, b) = (Purchase(a), Purchase(b))
    return a.adds(to: b) || b.adds(to: a)
  }

  private static func pending(
    _ revision: RenewalRevision, _ model: SignedRenewalInfo, _ purchase: PurchaseFacts, _ seats: Int64?
  ) -> [PendingChange] {
    // Renewal info from before the running period spoke of its beginning.
    guard revision.rank.signedDate >= purchase.purchasedAt, purchase.revokedAt == nil else { return [] }
    let at = revision.renewalDate ?? purchase.paidThrough
    guard revision.autoRenewStatus != 0 else {
      return [PendingChange(kind: .end, at: purchase.paidThrough, to: nil)]
    }
    var changes: [PendingChange] = []
    if let next = revision.autoRenewProduct, next != purchase.product {
      changes.append(PendingChange(kind: .product, at: at, to: next.text))
    }
    if let seats, let next = model.renewalQuantity, next != seats {
      changes.append(PendingChange(kind: .quantity, at: at, to: String(next)))
    }
    if let plan = model.renewalBillingPlanType?.raw, let now = purchase.billingPlan, plan != now {
      changes.append(PendingChange(kind: .billingPlan, at: at, to: plan))
    }
    if revision.priceIncreaseStatus == 0 { changes.append(PendingChange(kind: .priceConsent, at: at, to: nil)) }
    return changes
  }
}
