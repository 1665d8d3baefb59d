import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

extension AppReceipt {
  /// What a purchase of a receipt is named by: its permit, and what is verified of it. A receipt speaks of many purchases,
  /// whose grants become durable one by one: SHA-256 of the receipt's SHA-256 in hex, a colon and the transaction id.
  public static func digest(ofReceipt digest: String, transaction: String) -> String {
    SHA256.digest("\(digest):\(transaction)").hex
  }

  /// What the receipt says of each purchase, in the form in which folds read signed transactions, and by the same names.
  /// - Parameters:
  ///   - digest: SHA-256 of the receipt as received, in hex.
  ///   - signed: the receipt's date.
  /// - Throws: for a purchase without what every purchase has.
  public func parts(
    digest: String, environment: Environment, signed: Instant, source: RevisionSource
  ) throws(FieldFailure) -> [(part: SignedPart, revision: TransactionRevision)] {
    var parts: [(SignedPart, TransactionRevision)] = []
    for purchase in purchases {
      let part = SignedPart(
        kind: .appReceipt,
        digest: Self.digest(ofReceipt: digest, transaction: purchase.transaction ?? ""), source: source,
        payload: purchase.payload(environment: environment, bundleID: bundleID, signed: signed))
      parts.append((part, try part.transactionRevision()))
    }
    return parts
  }
}

extension AppReceipt.Purchase {
  func payload(environment: Environment, bundleID: String?, signed: Instant) -> [UInt8] {
    var writer = JSONWriter(reserving: 512)
    writer.object { json in
      json.field("transactionId", transaction)
      json.field("originalTransactionId", originalTransaction ?? transaction)
      json.field("webOrderLineItemId", webOrderLineItem.flatMap { $0 == 0 ? nil : String($0) })
      json.field("bundleId", bundleID)
      json.field("productId", product)
      json.field("purchaseDate", milliseconds: purchaseDate)
      json.field("originalPurchaseDate", milliseconds: originalPurchaseDate)
      json.field("expiresDate", milliseconds: expiresDate)
      json.field("quantity", quantity)
      json.field("type", type.apple)
      json.field("productType", productType)
      json.field("revocationDate", milliseconds: cancellationDate)
      json.field("isTrialPeriod", isTrial)
      json.field("isInIntroOfferPeriod", isIntroductory)
      json.field("promotionalOfferId", promotionalOffer)
      json.field("signedDate", milliseconds: signed)
      json.field("environment", environment.rawValue)
    }
    return writer.bytes
  }
}
