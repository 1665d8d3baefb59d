import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// What Apple signs of one transaction, with the fields that decide something, in Apple's own words.
struct AppleTransaction {
  var environment = Environment.production
  var transaction: String
  var original: String
  var product: String
  var type: ProductType
  /// Epoch milliseconds, as all dates here.
  var purchased: Int64
  var originallyPurchased: Int64
  var expires: Int64?
  var quantity: Int64?
  var lineItem: String?
  var signed: Int64
  var revoked: Int64?
  var revocationType: String?
  var percentage: Int64?
  var token: String?
  var isUpgraded = false
  var ownership = "PURCHASED"
  /// Of a subscription that is bought with seats: how many of this transaction's a refund took back.
  var seats: Int64?
  var isAddition = false

  init(
    _ transaction: String, of original: String, _ product: String, _ type: ProductType, purchased: Int64,
    originally: Int64
  ) {
    self.transaction = transaction
    self.original = original
    self.product = product
    self.type = type
    self.purchased = purchased
    originallyPurchased = originally
    signed = purchased
  }

  var key: String { "\(environment.rawValue)/\(original)" }

  func part(_ source: RevisionSource) -> SignedPart {
    var writer = JSONWriter()
    writer.object { json in
      json.field("transactionId", transaction)
      json.field("originalTransactionId", original)
      json.field("bundleId", "com.example.app")
      json.field("productId", product)
      json.field("type", type.apple)
      json.field("environment", environment.rawValue)
      json.field("signedDate", signed)
      json.field("purchaseDate", purchased)
      json.field("originalPurchaseDate", originallyPurchased)
      json.field("expiresDate", expires)
      json.field("quantity", quantity)
      json.field("webOrderLineItemId", lineItem)
      json.field("inAppOwnershipType", ownership)
      json.field("revocationDate", revoked)
      json.field("revocationReason", revoked == nil ? nil : 0 as Int64)
      json.field("revocationType", revocationType)
      json.field("revocationPercentage", percentage)
      json.field("appAccountToken", token)
      if isUpgraded { json.field("isUpgraded", true) }
      if let seats {
        json.field(
          "multiSeatInfo",
          object: { json in
            json.field("invitationManagement", "APPLE")
            if seats > 0 { json.field("revokedSeatQuantity", seats) }
          })
      }
      if isAddition { json.field("additionalTransactionReason", "SEAT_ADDITION") }
    }
    return signedPart(.transaction, writer.bytes, source)
  }
}

/// What Apple signs of how a subscription goes on.
struct AppleRenewal {
  var environment: Environment
  var original: String
  var product: String
  var next: String
  var signed: Int64
  var renewal: Int64
  var autoRenews = true
  var isInBillingRetry = false
  var grace: Int64?

  func part(_ source: RevisionSource) -> SignedPart {
    var writer = JSONWriter()
    writer.object { json in
      json.field("originalTransactionId", original)
      json.field("productId", product)
      json.field("autoRenewProductId", next)
      json.field("autoRenewStatus", autoRenews ? 1 as Int64 : 0)
      json.field("environment", environment.rawValue)
      json.field("signedDate", signed)
      json.field("renewalDate", renewal)
      if isInBillingRetry { json.field("isInBillingRetryPeriod", true) }
      json.field("gracePeriodExpiresDate", grace)
    }
    return signedPart(.renewalInfo, writer.bytes, source)
  }
}

private func signedPart(_ kind: ProofKind, _ payload: [UInt8], _ source: RevisionSource) -> SignedPart {
  SignedPart(kind: kind, digest: SHA256.digest(payload).hex, source: source, payload: payload)
}
