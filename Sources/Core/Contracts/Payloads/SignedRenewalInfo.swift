import PurchasesCore

/// The payload of signed renewal info (`JWSRenewalInfoDecodedPayload`). It names no app: what it belongs to is told by the
/// transaction beside it.
public struct SignedRenewalInfo: PayloadModel {
  public let originalTransactionID: String?
  public let appTransactionID: String?
  public let productID: String?
  public let autoRenewProductID: String?
  public let autoRenewStatus: Stated<AutoRenewStatus>?
  public let environment: Stated<Environment>?
  public let signedDate: Instant?
  public let recentSubscriptionStartDate: Instant?
  public let renewalDate: Instant?
  public let expirationIntent: Stated<ExpirationIntent>?
  public let isInBillingRetryPeriod: Bool?
  public let gracePeriodExpiresDate: Instant?
  public let priceIncreaseStatus: Stated<PriceIncreaseStatus>?
  public let appAccountToken: String?
  /// Milliunits of ``currency``; of a purchase for several, the average per seat.
  public let renewalPrice: Int64?
  /// ISO 4217.
  public let currency: String?
  /// Seats that will renew.
  public let renewalQuantity: Int64?
  public let offerType: Stated<OfferType>?
  public let offerIdentifier: String?
  public let offerDiscountType: Stated<OfferDiscountType>?
  /// ISO 8601, such as `P1M`.
  public let offerPeriod: String?
  public let eligibleWinBackOfferIDs: [String]?
  public let renewalBillingPlanType: Stated<BillingPlanType>?
  public let commitment: RenewalCommitment?
  public let multiSeat: RenewalMultiSeat?
  public let advancedCommerce: AdvancedCommerceRenewal?

  public init(_ reader: inout PayloadReader) {
    originalTransactionID = reader.id("originalTransactionId")
    appTransactionID = reader.id("appTransactionId")
    productID = reader.text("productId")
    autoRenewProductID = reader.text("autoRenewProductId")
    autoRenewStatus = reader.listed("autoRenewStatus")
    environment = reader.environment("environment")
    signedDate = reader.date("signedDate")
    recentSubscriptionStartDate = reader.date("recentSubscriptionStartDate")
    renewalDate = reader.date("renewalDate")
    expirationIntent = reader.listed("expirationIntent")
    isInBillingRetryPeriod = reader.flag("isInBillingRetryPeriod")
    gracePeriodExpiresDate = reader.date("gracePeriodExpiresDate")
    priceIncreaseStatus = reader.listed("priceIncreaseStatus")
    appAccountToken = reader.text("appAccountToken")
    renewalPrice = reader.milliunits("renewalPrice")
    currency = reader.text("currency")
    renewalQuantity = reader.integer("renewalQuantity")
    offerType = reader.listed("offerType")
    offerIdentifier = reader.text("offerIdentifier")
    offerDiscountType = reader.listed("offerDiscountType")
    offerPeriod = reader.text("offerPeriod")
    eligibleWinBackOfferIDs = reader.texts("eligibleWinBackOfferIds")
    renewalBillingPlanType = reader.listed("renewalBillingPlanType")
    commitment = reader.object("commitmentInfo")
    multiSeat = reader.object("multiSeatInfo")
    advancedCommerce = reader.object("advancedCommerceInfo")
  }
}

/// `commitmentInfo` of renewal info: how a commitment goes on after its end.
public struct RenewalCommitment: PayloadModel {
  public let autoRenewProductID: String?
  public let autoRenewStatus: Stated<AutoRenewStatus>?
  public let billingPlanType: Stated<BillingPlanType>?
  public let renewalDate: Instant?
  /// Milliunits of the renewal info's currency.
  public let renewalPrice: Int64?

  public init(_ reader: inout PayloadReader) {
    autoRenewProductID = reader.text("commitmentAutoRenewProductId")
    autoRenewStatus = reader.listed("commitmentAutoRenewStatus")
    billingPlanType = reader.listed("commitmentRenewalBillingPlanType")
    renewalDate = reader.date("commitmentRenewalDate")
    renewalPrice = reader.milliunits("commitmentRenewalPrice")
  }
}

/// `multiSeatInfo` of renewal info: what the seats of the next period cost.
public struct RenewalMultiSeat: PayloadModel {
  public let renewalPriceTiers: [MultiSeatPriceTier]?

  public init(_ reader: inout PayloadReader) { renewalPriceTiers = reader.objects("renewalPriceTiers") }
}
