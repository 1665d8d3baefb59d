/// What is bought, as opposed to the transactions that speak of it. Revisions with the same key are statements about one
/// purchase, of which the newest counts.
///
/// - A subscription period: (original transaction, web order line item, or purchase date where Apple names none). One
///   charge can carry two transaction ids.
/// - A one-time purchase (non-consumable, non-renewing): (original transaction). A restore mints a new transaction id.
/// - A consumable, and a purchase of a type that we don't know: (transaction).
///
/// A period that was bought for several people has a transaction for each time that seats were added: (period, transaction).
public struct BusinessKey: Sendable, Hashable, Comparable {
  public let originalTransaction: OriginalTransactionID
  /// `once`, `line:ITEM`, `date:MILLISECONDS`, `item:TRANSACTION` or `other:TRANSACTION`: unlike one another by their heads.
  /// Behind that what only some statements about a purchase tell: `/seats:TRANSACTION`, `/items`.
  public let part: String

  public init(originalTransaction: OriginalTransactionID, part: String) {
    self.originalTransaction = originalTransaction
    self.part = part
  }

  public static func < (a: BusinessKey, b: BusinessKey) -> Bool {
    a.originalTransaction == b.originalTransaction
      ? a.part < b.part : a.originalTransaction < b.originalTransaction
  }
}

extension BusinessKey {
  init(
    originalTransaction: OriginalTransactionID, _ type: ProductType, _ transaction: TransactionID, lineItem: String?,
    purchased: Instant
  ) {
    let part: String
    switch type {
    case .autoRenewable: part = lineItem.map { "line:\($0)" } ?? "date:\(purchased.milliseconds)"
    case .nonConsumable, .nonRenewing: part = "once"
    case .consumable: part = "item:\(transaction.text)"
    case .unknown: part = "other:\(transaction.text)"
    }
    self.init(originalTransaction: originalTransaction, part: part)
  }
}

extension TransactionRevision {
  public var businessKey: BusinessKey {
    let key = BusinessKey(
      originalTransaction: originalTransaction, type, transaction, lineItem: webOrderLineItem, purchased: purchaseDate)
    guard seats != nil || !items.isEmpty else { return key }
    return BusinessKey(
      originalTransaction: originalTransaction,
      part: key.part + (seats == nil ? "" : "/seats:\(transaction.text)") + (items.isEmpty ? "" : "/items"))
  }
}
