import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// A page of signed transactions.
public struct TransactionPage: Sendable, Hashable {
  /// Each as Apple signed it.
  public let signedTransactions: [String]
  /// Asks for the next page; kept, it asks one day for what is new since.
  public let revision: String?
  public let hasMore: Bool
}

/// What to show of a customer's history. Nil shows all.
public struct TransactionFilter: Sendable, Hashable {
  public var startDate: Instant?
  public var endDate: Instant?
  public var products: [String] = []
  /// `AUTO_RENEWABLE`, `NON_RENEWABLE`, `CONSUMABLE`, `NON_CONSUMABLE`.
  public var productTypes: [String] = []
  public var subscriptionGroups: [String] = []
  /// `PURCHASED` or `FAMILY_SHARED`.
  public var ownershipType: String?
  public var isRevoked: Bool?
  /// By the date of the last change; oldest first where false.
  public var isNewestFirst = false

  public init() {}

  var query: [(name: String, value: String)] {
    var query: [(name: String, value: String)] = []
    if let startDate { query.append(("startDate", String(startDate.milliseconds))) }
    if let endDate { query.append(("endDate", String(endDate.milliseconds))) }
    query += products.map { ("productId", $0) } + productTypes.map { ("productType", $0) }
    query += subscriptionGroups.map { ("subscriptionGroupIdentifier", $0) }
    if let ownershipType { query.append(("inAppOwnershipType", ownershipType)) }
    if let isRevoked { query.append(("revoked", String(isRevoked))) }
    if isNewestFirst { query.append(("sort", "DESCENDING")) }
    return query
  }
}

/// The state of one subscription as Apple signed it.
public struct SubscriptionStatus: Sendable, Hashable {
  public let group: String
  public let originalTransaction: String
  /// 1 active, 2 expired, 3 in billing retry, 4 in grace period, 5 revoked; others are kept as they came.
  public let status: Int64?
  public let signedTransactionInfo: String?
  public let signedRenewalInfo: String?
}

/// What an order id leads to.
public struct OrderLookUp: Sendable, Hashable {
  /// 0 valid, 1 unknown.
  public let status: Int64
  public let signedTransactions: [String]

  public var isValid: Bool { status == 0 }
}

extension ServerAPI {
  /// The newest revision of one transaction, signed. `GET /v1/transactions/{id}`.
  public func transactionInfo(_ id: TransactionID) throws(ServerAPIFailure) -> String {
    try answer(Request("GET", ["v1", "transactions", id.text], .transactionInfo)) {
      $0["signedTransactionInfo"]?.string
    }
  }

  /// A page of all that the customer of this transaction bought. `GET /v2/history/{id}`.
  ///
  /// - Parameter revision: of the page before; the filter must be the same.
  public func transactionHistory(
    _ id: TransactionID, filter: TransactionFilter = TransactionFilter(), revision: String? = nil
  ) throws(ServerAPIFailure) -> TransactionPage {
    var request = Request("GET", ["v2", "history", id.text], .transactionHistory)
    request.query = filter.query
    if let revision { request.query.append(("revision", revision)) }
    return try answer(request, Self.page)
  }

  /// A page of the refunds of this transaction's customer, oldest first. `GET /v2/refund/lookup/{id}`.
  public func refundHistory(
    _ id: TransactionID, revision: String? = nil
  ) throws(ServerAPIFailure) -> TransactionPage {
    var request = Request("GET", ["v2", "refund", "lookup", id.text], .refundHistory)
    if let revision { request.query = [("revision", revision)] }
    return try answer(request, Self.page)
  }

  private static func page(_ root: JSONView) -> TransactionPage? {
    guard let signed = strings(root["signedTransactions"]) else { return nil }
    let hasMore = root["hasMore"]?.bool ?? false
    let revision = root["revision"]?.string
    // More, and no way to ask for it: such a page would be taken for the last one.
    guard !hasMore || revision != nil else { return nil }
    return TransactionPage(signedTransactions: signed, revision: revision, hasMore: hasMore)
  }

  /// The customer's purchase of the app itself, signed. `GET /v1/transactions/appTransactions/{id}`.
  public func appTransactionInfo(_ id: TransactionID) throws(ServerAPIFailure) -> String {
    try answer(Request("GET", ["v1", "transactions", "appTransactions", id.text], .appTransactionInfo)) {
      $0["signedAppTransactionInfo"]?.string
    }
  }

  /// The purchases of an order, by the id on the customer's invoice. `GET /v1/lookup/{orderId}`; production only.
  public func lookUpOrder(_ orderID: String) throws(ServerAPIFailure) -> OrderLookUp {
    guard !orderID.isEmpty, orderID.utf8.count <= IdentifierRule.maximumBytes else {
      throw .notSendable("an order id has 1 to \(IdentifierRule.maximumBytes) characters")
    }
    return try answer(Request("GET", ["v1", "lookup", orderID], .orderLookUp)) { root in
      guard let status = root["status"]?.int64 else { return nil }
      return OrderLookUp(status: status, signedTransactions: Self.strings(root["signedTransactions"]) ?? [])
    }
  }

  /// All subscriptions of this transaction's customer. `GET /v1/subscriptions/{id}`.
  ///
  /// - Parameter statuses: 1 to 5; empty asks for all.
  public func subscriptionStatuses(
    _ id: TransactionID, statuses: [Int64] = []
  ) throws(ServerAPIFailure) -> [SubscriptionStatus] {
    var request = Request("GET", ["v1", "subscriptions", id.text], .subscriptionStatuses)
    request.query = statuses.map { ("status", String($0)) }
    return try answer(request) { root in
      guard let data = root["data"], data.kind == .array else { return nil }
      var all: [SubscriptionStatus] = []
      for group in data.elements {
        for last in group["lastTransactions"]?.elements ?? [] {
          guard let original = last["originalTransactionId"]?.string else { return nil }
          all.append(
            SubscriptionStatus(
              group: group["subscriptionGroupIdentifier"]?.string ?? "", originalTransaction: original,
              status: last["status"]?.int64, signedTransactionInfo: last["signedTransactionInfo"]?.string,
              signedRenewalInfo: last["signedRenewalInfo"]?.string))
        }
      }
      return all
    }
  }

  /// The strings of an array; nil where it is none, or one element is not a string: a page must not lose one in silence.
  static func strings(_ view: JSONView?) -> [String]? {
    guard let view, view.kind == .array else { return nil }
    let elements = view.elements
    let strings = elements.compactMap(\.string)
    return strings.count == elements.count ? strings : nil
  }
}
