import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesLocalAppStore

/// Purchases made up for a load: each of another account, genuine, signed under the local App Store's root.
struct SyntheticPurchases {
  let authority: LocalAuthority
  /// Sets one load's accounts and transactions apart from another's: three digits at the end of a transaction's id.
  let series: Int

  /// A purchase as its account's back end reports it.
  struct Report: Sendable {
    let account: String
    /// The proof's digest, by which the permit is asked for.
    let proof: String
    /// The body of `POST /v1/events`.
    let body: [UInt8]
  }

  /// Credits for the odd ones and a subscription for the others; `expires` gives all of them a subscription that ends then.
  func report(_ index: Int, at instant: Instant, expires: Instant? = nil) -> Report {
    let account = uuid(index)
    let signed = authority.sign(transaction(index, account, at: instant, expires: expires))
    var body = JSONWriter(reserving: signed.utf8.count + 256)
    body.object { json in
      json.field("type", EventType.paymentPurchased.rawValue)
      json.field("environment", Environment.production.rawValue)
      json.field("account", account)
      json.field("transactionId", id(index))
      json.field("productId", product(index, expires))
      json.field("signedTransaction", signed)
    }
    return Report(account: account, proof: SHA256.digest(signed).hex, body: body.bytes)
  }

  /// The payload as Apple writes it, unsigned.
  func transaction(_ index: Int, _ account: String, at instant: Instant, expires: Instant? = nil) -> [UInt8] {
    let id = id(index)
    let isConsumable = isConsumable(index, expires)
    let end = isConsumable ? nil : expires ?? instant.advanced(byMilliseconds: 30 * 86_400_000)
    var writer = JSONWriter(reserving: 900)
    writer.object { json in
      json.field("transactionId", id)
      json.field("originalTransactionId", id)
      json.field("webOrderLineItemId", end == nil ? nil : "9" + id)
      json.field("bundleId", DemoCatalogue.bundleID)
      json.field("productId", product(index, expires))
      json.field("subscriptionGroupIdentifier", end == nil ? nil : "21000001")
      json.field("purchaseDate", instant.milliseconds)
      json.field("originalPurchaseDate", instant.milliseconds)
      json.field("expiresDate", end?.milliseconds)
      json.field("quantity", 1 as Int64)
      json.field("type", isConsumable ? "Consumable" : "Auto-Renewable Subscription")
      json.field("appAccountToken", account)
      json.field("inAppOwnershipType", "PURCHASED")
      json.field("signedDate", instant.milliseconds)
      json.field("environment", Environment.production.rawValue)
      json.field("transactionReason", "PURCHASE")
      json.field("storefront", "USA")
      json.field("storefrontId", "143441")
      json.field("price", 990 as Int64)
      json.field("currency", "USD")
    }
    return writer.bytes
  }

  private func id(_ index: Int) -> String { String(700_000_000_000_000 + index * 1_000 + series) }

  private func isConsumable(_ index: Int, _ expires: Instant?) -> Bool { expires == nil && index % 2 == 1 }

  private func product(_ index: Int, _ expires: Instant?) -> String {
    DemoCatalogue.bundleID + (isConsumable(index, expires) ? ".coins.100" : ".gold")
  }

  private func uuid(_ index: Int) -> String {
    func hex(_ value: Int, _ digits: Int) -> String {
      let text = String(value, radix: 16)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    return "\(hex(series, 8))-0000-4000-8000-\(hex(index, 12))"
  }
}
