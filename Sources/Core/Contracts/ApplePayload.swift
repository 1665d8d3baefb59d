import PurchasesCore
import PurchasesJSON

/// Reads the payloads that Apple signs into what the folds need. The caller has verified them; these functions check that
/// what must be there is there, and keep unknown values raw. What nothing is decided by is nil where it isn't of its kind:
/// the payload travels with the event whole, and a purchase is not refused for the spelling of its price.
public enum ApplePayload {
  /// Purchases of more than this at once are refused as nonsense rather than credited.
  public static let maximumQuantity: Int64 = 10_000

  public static func transaction(
    _ payload: JSONView, digest: String, source: RevisionSource
  ) throws(FieldFailure) -> TransactionRevision {
    let fields = try Fields(payload, path: "transaction")
    let environment = try fields.requiredEnvironment()
    let transaction: TransactionID = try fields.required("transactionId")
    let original: OriginalTransactionID = try fields.required("originalTransactionId")
    let product: ProductID = try fields.required("productId")
    guard let signedDate = try fields.milliseconds("signedDate") else {
      throw fields.failure("signedDate", "is missing")
    }
    guard let purchaseDate = try fields.milliseconds("purchaseDate") else {
      throw fields.failure("purchaseDate", "is missing")
    }
    let type = ProductType(apple: try fields.requiredText("type"))
    let revocation = try fields.milliseconds("revocationDate")
    let items =
      try fields.member("advancedCommerceInfo").map { info throws(FieldFailure) in try self.items(info) } ?? []
    let isRevoked = revocation != nil || items.contains { $0.revocationDate != nil }
    var revision = TransactionRevision(
      rank: RevisionRank(signedDate: signedDate, isRevoked: isRevoked, source: source, digest: digest),
      environment: environment, transaction: transaction, originalTransaction: original, product: product, type: type,
      purchaseDate: purchaseDate, quantity: try quantity(fields))
    revision.originalPurchaseDate = try fields.milliseconds("originalPurchaseDate")
    revision.expiresDate = try fields.milliseconds("expiresDate")
    revision.webOrderLineItem = try fields.text("webOrderLineItemId")
    revision.subscriptionGroup = try fields.text("subscriptionGroupIdentifier")
    revision.revocationDate = revocation
    revision.revocationReason = fields.member("revocationReason")?.int64
    revision.revocationType = fields.member("revocationType")?.string
    revision.revocationPercentage = try fields.integer("revocationPercentage")
    if let percentage = revision.revocationPercentage, !(0...100_000).contains(percentage) {
      throw fields.failure("revocationPercentage", "must be 0 to 100000 thousandths of a percent")
    }
    revision.isUpgraded = fields.member("isUpgraded")?.bool ?? false
    revision.items = items
    if let info = fields.member("multiSeatInfo") {
      revision.seats = Seats(
        revoked: max(0, info["revokedSeatQuantity"]?.int64 ?? 0),
        isAddition: fields.member("additionalTransactionReason") != nil)
    }
    revision.ownershipType = fields.member("inAppOwnershipType")?.string
    let token = fields.member("appAccountToken")
    revision.accountToken = token?.string.flatMap { Account(token: $0) }
    revision.hasUnusableToken = token != nil && revision.accountToken == nil
    revision.price = fields.member("price")?.int64
    revision.currency = fields.member("currency")?.string
    revision.offerType = fields.member("offerType")?.int64
    revision.offerDiscountType = fields.member("offerDiscountType")?.string
    revision.transactionReason = fields.member("transactionReason")?.string
    revision.storefront = fields.member("storefront")?.string
    if type == .autoRenewable, revision.expiresDate == nil { throw fields.failure("expiresDate", "is missing") }
    return revision
  }

  /// What was sold under a generic product, each SKU once: of two the one that is not revoked. A refund alone revokes
  /// nothing: an item has a date for that.
  private static func items(_ info: JSONView) throws(FieldFailure) -> [PurchasedItem] {
    var items: [PurchasedItem] = []
    for element in info["items"]?.elements ?? [] {
      guard let sku = element["SKU"]?.string.flatMap({ ProductID($0) }) else { continue }
      let item = PurchasedItem(
        sku: sku,
        revocationDate: try Fields(element, path: "advancedCommerceInfo.items").milliseconds("revocationDate"))
      if let index = items.firstIndex(where: { $0.sku == sku }) {
        if item.revocationDate == nil { items[index] = item }
      } else {
        items.append(item)
      }
    }
    return items
  }

  /// Absent is 1, and some senders write the number as text.
  private static func quantity(_ fields: Fields) throws(FieldFailure) -> Int64 {
    guard let value = fields.member("quantity") else { return 1 }
    guard let quantity = value.int64 ?? value.string.flatMap({ Int64($0) }), (1...maximumQuantity).contains(quantity)
    else { throw fields.failure("quantity", "must be 1 to \(maximumQuantity)") }
    return quantity
  }

  public static func renewal(
    _ payload: JSONView, digest: String, source: RevisionSource
  ) throws(FieldFailure) -> RenewalRevision {
    let fields = try Fields(payload, path: "renewalInfo")
    guard let signedDate = try fields.milliseconds("signedDate") else {
      throw fields.failure("signedDate", "is missing")
    }
    var revision = RenewalRevision(
      rank: RevisionRank(signedDate: signedDate, isRevoked: false, source: source, digest: digest),
      environment: try fields.requiredEnvironment(),
      originalTransaction: try fields.required("originalTransactionId"))
    revision.product = fields.member("productId")?.string.flatMap { ProductID($0) }
    revision.autoRenewProduct = try fields.identifier("autoRenewProductId")
    revision.autoRenewStatus = try fields.integer("autoRenewStatus")
    revision.expirationIntent = fields.member("expirationIntent")?.int64
    revision.isInBillingRetry = try fields.flag("isInBillingRetryPeriod")
    revision.gracePeriodExpiresDate = try fields.milliseconds("gracePeriodExpiresDate")
    revision.renewalDate = date(fields.member("renewalDate"))
    revision.recentSubscriptionStartDate = date(fields.member("recentSubscriptionStartDate"))
    revision.priceIncreaseStatus = fields.member("priceIncreaseStatus")?.int64
    let token = fields.member("appAccountToken")
    revision.accountToken = token?.string.flatMap { Account(token: $0) }
    revision.hasUnusableToken = token != nil && revision.accountToken == nil
    return revision
  }

  private static func date(_ member: JSONView?) -> Instant? { member?.milliseconds.map(Instant.init(milliseconds:)) }
}
