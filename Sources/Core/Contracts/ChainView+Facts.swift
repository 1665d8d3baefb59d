import PurchasesCore
import PurchasesJSON

extension ChainView.PurchaseFacts {
  init(_ revision: TransactionRevision, _ model: SignedTransaction, isTrial: Bool?) {
    self.init(
      transaction: revision.transaction, product: revision.product, type: revision.type,
      ownershipType: revision.ownershipType, subscriptionGroup: revision.subscriptionGroup,
      appTransaction: model.appTransactionID, purchasedAt: revision.purchaseDate, paidThrough: revision.expiresDate,
      revokedAt: nil, revocationType: nil, revocationReason: nil, revocationPercentage: nil,
      isUpgraded: revision.isUpgraded, quantity: revision.quantity, price: revision.price,
      currency: revision.currency, billingPlan: model.billingPlanType?.raw,
      offer: ChainView.Offer(revision, model, isTrial: isTrial),
      items: (model.advancedCommerce?.items ?? []).compactMap(ChainView.Item.init), signedAt: revision.rank.signedDate)
    takeRevocation(revision)
  }

  mutating func takeRevocation(_ revision: TransactionRevision) {
    revokedAt = revision.revocationDate
    revocationType = revision.revocationType
    revocationReason = revision.revocationReason
    revocationPercentage = revision.revocationPercentage
  }
}

extension ChainView.Offer {
  fileprivate init?(_ revision: TransactionRevision, _ model: SignedTransaction, isTrial: Bool?) {
    let isTrial = isTrial ?? (model.offerDiscountType?.known == .freeTrial)
    guard revision.offerType != nil || revision.offerDiscountType != nil || isTrial else { return nil }
    self.init(
      type: revision.offerType, isTrial: isTrial, discountType: revision.offerDiscountType,
      identifier: model.offerIdentifier, period: model.offerPeriod)
  }
}

extension ChainView.Item {
  fileprivate init?(_ item: AdvancedCommerceTransactionItem) {
    guard let sku = item.sku else { return nil }
    // Sums of what Apple signed; one that no currency could hold is left out rather than cut.
    let refunded = item.refunds?.reduce(Int64?.some(0)) { sum, refund in
      guard let sum else { return nil }
      let (total, overflow) = sum.addingReportingOverflow(refund.amount ?? 0)
      return overflow ? nil : total
    }
    self.init(sku: sku, price: item.price, revokedAt: item.revocationDate, refunded: refunded ?? nil)
  }
}

extension ChainView.RenewalFacts {
  init(_ revision: RenewalRevision, _ model: SignedRenewalInfo) {
    self.init(
      autoRenews: revision.autoRenewStatus.map { $0 == 1 }, isInBillingRetry: revision.isInBillingRetry ?? false,
      graceUntil: revision.gracePeriodExpiresDate, expirationIntent: revision.expirationIntent,
      renewsAt: revision.renewalDate, price: model.renewalPrice, currency: model.currency,
      signedAt: revision.rank.signedDate)
  }
}

// MARK: For people and HTTP answers

extension ChainView {
  public func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("originalTransactionId", originalTransaction.text)
      json.field("basis", basis.rawValue)
      purchase.write(&json)
      json.field("seats", seats)
      if let renewal {
        json.field("autoRenews", renewal.autoRenews)
        json.field("inBillingRetry", renewal.isInBillingRetry)
        json.field("graceUntil", rfc3339: renewal.graceUntil)
        json.field("expirationIntent", renewal.expirationIntent)
        json.field("renewsAt", rfc3339: renewal.renewsAt)
        json.field("renewalPrice", renewal.price)
        json.field("renewalCurrency", renewal.currency)
        json.field("renewalSignedAt", rfc3339: renewal.signedAt)
      }
      json.field(
        "pendingChanges",
        array: { json in
          for change in pending {
            json.object { json in
              json.field("change", change.kind.rawValue)
              json.field("at", rfc3339: change.at)
              json.field("to", change.to)
            }
          }
        })
    }
  }
}

extension ChainView.PurchaseFacts {
  fileprivate func write(_ json: inout JSONWriter) {
    json.field("transactionId", transaction.text)
    json.field("productId", product.text)
    json.field("type", type.apple)
    json.field("ownershipType", ownershipType)
    json.field("subscriptionGroup", subscriptionGroup)
    json.field("appTransactionId", appTransaction)
    json.field("purchasedAt", rfc3339: purchasedAt)
    json.field("paidThrough", rfc3339: paidThrough)
    json.field("revokedAt", rfc3339: revokedAt)
    json.field("revocationType", revocationType)
    json.field("revocationReason", revocationReason)
    json.field("revocationPercentage", revocationPercentage)
    json.field("upgraded", isUpgraded)
    json.field("quantity", quantity)
    json.field("price", price)
    json.field("currency", currency)
    json.field("billingPlan", billingPlan)
    if let offer {
      json.field(
        "offer",
        object: { json in
          json.field("type", offer.type)
          json.field("trial", offer.isTrial)
          json.field("discountType", offer.discountType)
          json.field("identifier", offer.identifier)
          json.field("period", offer.period)
        })
    }
    if !items.isEmpty {
      json.field(
        "items",
        array: { json in
          for item in items {
            json.object { json in
              json.field("sku", item.sku)
              json.field("price", item.price)
              json.field("revokedAt", rfc3339: item.revokedAt)
              json.field("refunded", item.refunded)
            }
          }
        })
    }
    json.field("signedAt", rfc3339: signedAt)
  }
}

extension StoreReader {
  /// Chains of one account that one answer lists: more are somebody's test account.
  public static var maximumChains: Int { 1_000 }

  /// The chains that an account owns in an environment, in order of original transaction. Those that it shares are its
  /// owner's. False beside them where there are more.
  /// - Throws: `corrupt` for rows that can't be read.
  public func chains(
    _ environment: Environment, _ account: Account, at instant: Instant
  ) throws(StoreFailure) -> (views: [ChainView], areComplete: Bool) {
    let rows = try rows(.chain, where: "account", is: .text(account.text), limit: Self.maximumChains)
    do throws(FieldFailure) {
      var views: [ChainView] = []
      for row in rows where row.key.values[0].text == environment.rawValue {
        let chain = try ChainRow(row)
        if !chain.parts.isEmpty { views.append(try ChainView(chain, at: instant)) }
      }
      return (views, rows.count < Self.maximumChains)
    } catch {
      throw StoreFailure(.corrupt, error.description)
    }
  }
}
