import PurchasesCore

/// The payload of a signed transaction (`JWSTransactionDecodedPayload`). What folds and decisions read of it is
/// ``TransactionRevision``, which is strict; this is the whole of it, for those who want more than access.
public struct SignedTransaction: PayloadModel {
  public let transactionID: String?
  public let originalTransactionID: String?
  public let webOrderLineItemID: String?
  /// The app download that the purchase belongs to.
  public let appTransactionID: String?
  public let bundleID: String?
  public let productID: String?
  public let subscriptionGroupID: String?
  public let type: ProductType?
  public let environment: Stated<Environment>?
  public let signedDate: Instant?
  public let purchaseDate: Instant?
  public let originalPurchaseDate: Instant?
  public let expiresDate: Instant?
  /// Of a purchase for several: the seats that this transaction covers.
  public let quantity: Int64?
  public let isUpgraded: Bool?
  public let appAccountToken: String?
  public let ownershipType: Stated<OwnershipType>?
  public let transactionReason: Stated<TransactionReason>?
  public let additionalTransactionReason: Stated<AdditionalTransactionReason>?
  /// Milliunits of ``currency``.
  public let price: Int64?
  /// ISO 4217.
  public let currency: String?
  /// ISO 3166-1, three letters.
  public let storefront: String?
  public let storefrontID: String?
  public let offerType: Stated<OfferType>?
  public let offerIdentifier: String?
  public let offerDiscountType: Stated<OfferDiscountType>?
  /// ISO 8601, such as `P1M`.
  public let offerPeriod: String?
  public let revocationDate: Instant?
  public let revocationReason: Stated<RevocationReason>?
  public let revocationType: Stated<RevocationType>?
  /// Thousandths of a percent: 100000 is all of it.
  public let revocationPercentage: Int64?
  public let billingPlanType: Stated<BillingPlanType>?
  public let commitment: TransactionCommitment?
  public let multiSeat: TransactionMultiSeat?
  public let advancedCommerce: AdvancedCommerceTransaction?
  /// Only in what a device handed over.
  public let deviceVerification: String?
  public let deviceVerificationNonce: String?

  public init(_ reader: inout PayloadReader) {
    transactionID = reader.id("transactionId")
    originalTransactionID = reader.id("originalTransactionId")
    webOrderLineItemID = reader.id("webOrderLineItemId")
    appTransactionID = reader.id("appTransactionId")
    bundleID = reader.text("bundleId")
    productID = reader.text("productId")
    subscriptionGroupID = reader.id("subscriptionGroupIdentifier")
    type = reader.productType("type")
    environment = reader.environment("environment")
    signedDate = reader.date("signedDate")
    purchaseDate = reader.date("purchaseDate")
    originalPurchaseDate = reader.date("originalPurchaseDate")
    expiresDate = reader.date("expiresDate")
    quantity = reader.integer("quantity")
    isUpgraded = reader.flag("isUpgraded")
    appAccountToken = reader.text("appAccountToken")
    ownershipType = reader.listed("inAppOwnershipType")
    transactionReason = reader.listed("transactionReason")
    additionalTransactionReason = reader.listed("additionalTransactionReason")
    price = reader.milliunits("price")
    currency = reader.text("currency")
    storefront = reader.text("storefront")
    storefrontID = reader.id("storefrontId")
    offerType = reader.listed("offerType")
    offerIdentifier = reader.text("offerIdentifier")
    offerDiscountType = reader.listed("offerDiscountType")
    offerPeriod = reader.text("offerPeriod")
    revocationDate = reader.date("revocationDate")
    revocationReason = reader.listed("revocationReason")
    revocationType = reader.listed("revocationType")
    revocationPercentage = reader.integer("revocationPercentage")
    billingPlanType = reader.listed("billingPlanType")
    commitment = reader.object("commitmentInfo")
    multiSeat = reader.object("multiSeatInfo")
    advancedCommerce = reader.object("advancedCommerceInfo")
    deviceVerification = reader.text("deviceVerification")
    deviceVerificationNonce = reader.text("deviceVerificationNonce")
  }
}

/// `commitmentInfo` of a transaction: a subscription billed monthly that was bought for longer.
public struct TransactionCommitment: PayloadModel {
  public let billingPeriodNumber: Int64?
  public let totalBillingPeriods: Int64?
  public let expiresDate: Instant?
  /// Milliunits of the whole commitment.
  public let price: Int64?

  public init(_ reader: inout PayloadReader) {
    billingPeriodNumber = reader.integer("billingPeriodNumber")
    totalBillingPeriods = reader.integer("totalBillingPeriods")
    expiresDate = reader.date("commitmentExpiresDate")
    price = reader.milliunits("commitmentPrice")
  }
}

/// `multiSeatInfo` of a transaction: a purchase for several people.
public struct TransactionMultiSeat: PayloadModel {
  public let invitationManagement: Stated<InvitationManagement>?
  public let priceTiers: [MultiSeatPriceTier]?
  /// Seats that refunds took back. The transaction itself stays valid for the others: this revokes nobody's access.
  public let revokedSeats: Int64?

  public init(_ reader: inout PayloadReader) {
    invitationManagement = reader.listed("invitationManagement")
    priceTiers = reader.objects("priceTiers")
    revokedSeats = reader.integer("revokedSeatQuantity")
  }
}

/// So many seats at that price each.
public struct MultiSeatPriceTier: PayloadModel {
  /// Milliunits of the currency of what the tier is part of, per seat.
  public let price: Int64?
  public let quantity: Int64?

  public init(_ reader: inout PayloadReader) {
    price = reader.milliunits("price")
    quantity = reader.integer("quantity")
  }
}
