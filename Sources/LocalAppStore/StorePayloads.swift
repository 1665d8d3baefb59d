import PurchasesCore
import PurchasesJSON

/// A transaction as the store has it; each signing of it is a revision.
struct StoreTransaction: Sendable {
  var environment: Environment
  var id: String
  var original: String
  var product: DemoCatalogue.Product
  var purchased: Instant
  var firstPurchased: Instant
  var expires: Instant?
  var lineItem: String?
  var quantity: Int64 = 1
  var token: String?
  var revoked: Instant?
  var revocationReason: Int64 = 0
  var isUpgraded = false
  var isRenewal = false
  var bundleID = DemoCatalogue.bundleID

  func payload(signed: Instant) -> [UInt8] {
    var writer = JSONWriter(reserving: 900)
    writer.object { json in
      json.field("transactionId", id)
      json.field("originalTransactionId", original)
      json.field("webOrderLineItemId", lineItem)
      json.field("bundleId", bundleID)
      json.field("productId", product.id)
      json.field("subscriptionGroupIdentifier", expires == nil ? nil : DemoCatalogue.group)
      json.field("purchaseDate", purchased.milliseconds)
      json.field("originalPurchaseDate", firstPurchased.milliseconds)
      json.field("expiresDate", expires?.milliseconds)
      json.field("quantity", quantity)
      json.field("type", product.type)
      json.field("appAccountToken", token)
      json.field("inAppOwnershipType", "PURCHASED")
      json.field("signedDate", signed.milliseconds)
      json.field("revocationDate", revoked?.milliseconds)
      json.field("revocationReason", revoked == nil ? nil : revocationReason)
      json.field("isUpgraded", isUpgraded ? true : nil)
      json.field("environment", environment.rawValue)
      json.field("transactionReason", isRenewal ? "RENEWAL" : "PURCHASE")
      json.field("storefront", "USA")
      json.field("storefrontId", "143441")
      json.field("price", product.price * quantity)
      json.field("currency", "USD")
      json.field("appTransactionId", "7" + original)
    }
    return writer.bytes
  }
}

/// How a subscription goes on.
struct StoreRenewal: Sendable {
  var transaction: StoreTransaction
  var next: DemoCatalogue.Product
  var renews = true
  var isInBillingRetry = false
  var grace: Instant?
  var expirationIntent: Int64?

  func payload(signed: Instant) -> [UInt8] {
    var writer = JSONWriter(reserving: 600)
    writer.object { json in
      json.field("originalTransactionId", transaction.original)
      json.field("autoRenewProductId", next.id)
      json.field("productId", transaction.product.id)
      json.field("autoRenewStatus", renews ? 1 as Int64 : 0)
      json.field("isInBillingRetryPeriod", isInBillingRetry ? true : nil)
      json.field("gracePeriodExpiresDate", grace?.milliseconds)
      json.field("expirationIntent", expirationIntent)
      json.field("signedDate", signed.milliseconds)
      json.field("environment", transaction.environment.rawValue)
      json.field("recentSubscriptionStartDate", transaction.firstPurchased.milliseconds)
      json.field("renewalDate", transaction.expires?.milliseconds)
      json.field("renewalPrice", next.price)
      json.field("currency", "USD")
    }
    return writer.bytes
  }
}

/// A notification on its way out: signed when it is delivered, with the date at which it was made.
struct StoreNotification: Sendable {
  enum Body: Sendable {
    case data(transaction: StoreTransaction?, renewal: StoreRenewal?)
    /// Any other body, by the member that holds it; an app transaction that is an object in it is signed on the way.
    case other(member: String, JSONObject)
  }

  var type: String
  var subtype: String?
  var uuid: String
  var signed: Instant
  var environment: Environment
  var body: Body

  private static let app = "signedAppTransactionInfo"

  func payload(_ authority: LocalAuthority) -> [UInt8] {
    var writer = JSONWriter(reserving: 9000)
    writer.object { json in
      json.field("notificationType", type)
      json.field("subtype", subtype)
      json.field("notificationUUID", uuid)
      switch body {
      case .data(let transaction, let renewal):
        json.field(
          "data",
          object: { json in
            json.field("appAppleId", DemoCatalogue.appAppleID)
            json.field("bundleId", DemoCatalogue.bundleID)
            json.field("bundleVersion", "1.0")
            json.field("environment", environment.rawValue)
            json.field("signedTransactionInfo", transaction.map { authority.sign($0.payload(signed: signed)) })
            json.field("signedRenewalInfo", renewal.map { authority.sign($0.payload(signed: signed)) })
          })
      case .other(let member, var object):
        if let app = object[Self.app], app.object != nil { object[Self.app] = .string(authority.sign(app.bytes)) }
        json.fieldNamed(member, .object(object))
      }
      json.field("version", "2.0")
      json.field("signedDate", signed.milliseconds)
    }
    return writer.bytes
  }
}
