import PurchasesCore

/// `advancedCommerceInfo` of a transaction: what was sold under a generic product, item by item.
public struct AdvancedCommerceTransaction: PayloadModel {
  public let requestReferenceID: String?
  public let descriptors: AdvancedCommerceDescriptors?
  public let items: [AdvancedCommerceTransactionItem]?
  /// ISO 8601, such as `P1M`.
  public let period: String?
  public let taxCode: String?
  /// A decimal number as text, such as `0.15`.
  public let taxRate: String?
  /// Milliunits of the transaction's currency.
  public let taxExclusivePrice: Int64?
  /// Milliunits of the transaction's currency.
  public let estimatedTax: Int64?

  public init(_ reader: inout PayloadReader) {
    requestReferenceID = reader.id("requestReferenceId")
    descriptors = reader.object("descriptors")
    items = reader.objects("items")
    period = reader.text("period")
    taxCode = reader.text("taxCode")
    taxRate = reader.text("taxRate")
    taxExclusivePrice = reader.milliunits("taxExclusivePrice")
    estimatedTax = reader.milliunits("estimatedTax")
  }

  /// The item of that stock-keeping unit.
  public func item(sku: String) -> AdvancedCommerceTransactionItem? { items?.first { $0.sku == sku } }
}

public struct AdvancedCommerceTransactionItem: PayloadModel {
  public let sku: String?
  public let displayName: String?
  public let description: String?
  /// Milliunits of the transaction's currency.
  public let price: Int64?
  public let offer: AdvancedCommerceOffer?
  public let refunds: [AdvancedCommerceRefund]?
  public let revocationDate: Instant?

  public init(_ reader: inout PayloadReader) {
    sku = reader.id("SKU")
    displayName = reader.text("displayName")
    description = reader.text("description")
    price = reader.milliunits("price")
    offer = reader.object("offer")
    refunds = reader.objects("refunds")
    revocationDate = reader.date("revocationDate")
  }
}

public struct AdvancedCommerceRefund: PayloadModel {
  /// Milliunits of the transaction's currency.
  public let amount: Int64?
  public let date: Instant?
  public let type: Stated<AdvancedCommerceRefundType>?
  public let reason: Stated<AdvancedCommerceRefundReason>?
  public let revokedSeats: Int64?

  public init(_ reader: inout PayloadReader) {
    amount = reader.milliunits("refundAmount")
    date = reader.date("refundDate")
    type = reader.listed("refundType")
    reason = reader.listed("refundReason")
    revokedSeats = reader.integer("revokedSeatQuantity")
  }
}

/// `advancedCommerceInfo` of renewal info.
public struct AdvancedCommerceRenewal: PayloadModel {
  public let requestReferenceID: String?
  public let consistencyToken: String?
  public let descriptors: AdvancedCommerceDescriptors?
  public let items: [AdvancedCommerceRenewalItem]?
  /// ISO 8601, such as `P1M`.
  public let period: String?
  public let taxCode: String?

  public init(_ reader: inout PayloadReader) {
    requestReferenceID = reader.id("requestReferenceId")
    consistencyToken = reader.text("consistencyToken")
    descriptors = reader.object("descriptors")
    items = reader.objects("items")
    period = reader.text("period")
    taxCode = reader.text("taxCode")
  }
}

public struct AdvancedCommerceRenewalItem: PayloadModel {
  public let sku: String?
  public let displayName: String?
  public let description: String?
  /// Milliunits of the renewal info's currency.
  public let price: Int64?
  public let offer: AdvancedCommerceOffer?
  public let priceIncrease: AdvancedCommercePriceIncrease?

  public init(_ reader: inout PayloadReader) {
    sku = reader.id("SKU")
    displayName = reader.text("displayName")
    description = reader.text("description")
    price = reader.milliunits("price")
    offer = reader.object("offer")
    priceIncrease = reader.object("priceIncreaseInfo")
  }
}

public struct AdvancedCommercePriceIncrease: PayloadModel {
  public let status: Stated<AdvancedCommercePriceIncreaseStatus>?
  /// Milliunits of the renewal info's currency.
  public let price: Int64?
  public let dependentSKUs: [String]?

  public init(_ reader: inout PayloadReader) {
    status = reader.listed("status")
    price = reader.milliunits("price")
    dependentSKUs = reader.texts("dependentSKUs")
  }
}

public struct AdvancedCommerceOffer: PayloadModel {
  public let reason: Stated<AdvancedCommerceOfferReason>?
  /// Milliunits of the currency around it.
  public let price: Int64?
  /// ISO 8601, such as `P1M`.
  public let period: String?
  public let periodCount: Int64?

  public init(_ reader: inout PayloadReader) {
    reason = reader.listed("reason")
    price = reader.milliunits("price")
    period = reader.text("period")
    periodCount = reader.integer("periodCount")
  }
}

public struct AdvancedCommerceDescriptors: PayloadModel {
  public let displayName: String?
  public let description: String?

  public init(_ reader: inout PayloadReader) {
    displayName = reader.text("displayName")
    description = reader.text("description")
  }
}
