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
    var purchase = SyntheticTransaction(id: id(index), account: account, at: instant)
    purchase.product = product(index, expires)
    if !isConsumable(index, expires) {
      purchase.expires = expires ?? instant.advanced(byMilliseconds: 30 * 86_400_000)
    }
    return purchase.payload
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
