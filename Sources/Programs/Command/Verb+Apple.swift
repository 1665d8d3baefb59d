import PurchasesAppStoreClient
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let transaction = Setting("transaction", "ID", "a transaction id; also of a chain's first transaction")
  static let operatorName = Setting("operator", "NAME", "who does this; it goes onto the log")
  static let consent = Setting(
    "consent", "RECORD", "where the customer's consent to this is on record; without one nothing may be sent")
  static let delivery = Setting(
    "delivery", "STATUS", ConsumptionInformation.Delivery.allCases.map(\.rawValue).joined(separator: ", "))
  static let sample = Setting("sample-provided", nil, "the customer could try it before, or read what it is")
  static let consumed = Setting(
    "consumed", "N", "thousandths of a percent that were consumed, 0 to 100000; leave out for a subscription")
  static let preference = Setting(
    "preference", "NAME", ConsumptionInformation.RefundPreference.allCases.map(\.rawValue).joined(separator: ", "))
  static let accountToken = Setting("account-token", "UUID", "whose the purchase is")
  static let days = Setting("days", "N", "days to add, 1 to 90")
  static let extensionReason = Setting(
    "extension-reason", "N", "0 undeclared, 1 customer satisfaction, 2 other, 3 service outage", standard: "0")

  static let ofApple: [Setting] =
    [
      .environment.explained("whose servers: Production or Sandbox (default Production)"),
      .bundleID.explained("the app", repeatable: false),
    ] + serverAPI + [.config]
  static let ofOrders: [Setting] = [.operatorName, .reason] + ofApple + connection.filter { $0 != .config }
}

/// What Apple answers about a customer, as it was signed.
extension Verb {
  private static let kinds = [
    "transaction", "history", "refunds", "app-transaction", "subscriptions", "order", "test",
  ]

  static let appleGet = Verb(
    words: ["apple", "get"], summary: "Ask Apple's Server API and print what it signed, one line each",
    notes: [
      "KIND is \(kinds.joined(separator: ", ")). ID is a transaction id of the customer; for order the",
      "order id, for test the token of `purchases apple test`. What comes is signed by Apple and verified by nobody here:",
      "`purchases verify --jws -` does that.",
    ], arguments: ["KIND", "ID"], settings: Setting.ofApple,
    examples: ["purchases apple get history 2000000632750685 --environment Sandbox --config purchases.conf"],
    statuses: [(1, "Apple refuses or can't be reached")]
  ) { call in
    let api = try client(call)
    let id = call.arguments[1]
    func transaction() throws(UsageError) -> TransactionID {
      guard let found = TransactionID(id) else { throw UsageError("purchases apple get: ID is no transaction id") }
      return found
    }
    func pages(_ page: (String?) throws -> TransactionPage) throws {
      var revision: String?
      repeat {
        let found = try page(revision)
        found.signedTransactions.forEach(Output.line)
        // A revision that doesn't move would ask for ever.
        revision = found.hasMore && found.revision != revision ? found.revision : nil
      } while revision != nil
    }
    switch call.arguments[0] {
    case "transaction": Output.line(try api.transactionInfo(try transaction()))
    case "app-transaction": Output.line(try api.appTransactionInfo(try transaction()))
    case "history":
      let id = try transaction()
      try pages { try api.transactionHistory(id, revision: $0) }
    case "refunds":
      let id = try transaction()
      try pages { try api.refundHistory(id, revision: $0) }
    case "subscriptions":
      for status in try api.subscriptionStatuses(try transaction()) {
        if let signed = status.signedTransactionInfo { Output.line(signed) }
        if let signed = status.signedRenewalInfo { Output.line(signed) }
      }
    case "order":
      let order = try api.lookUpOrder(id)
      guard order.isValid else {
        Output.error("purchases: Apple knows no such order of this app")
        return ExitStatus.failed
      }
      order.signedTransactions.forEach(Output.line)
    case "test":
      let sent = try api.testNotificationStatus(id)
      Output.line(sent.signedPayload)
      for attempt in sent.attempts { Output.error("\(attempt.date?.rfc3339 ?? "?")  \(attempt.result ?? "?")") }
    default: throw UsageError("purchases apple get: KIND is one of \(kinds.joined(separator: ", "))")
    }
    return 0
  }

  static func client(_ call: Call) throws -> ServerAPI {
    let deployment = try Deployment(call.values)
    let apple = AppleSettings(call.values)
    return try apple.serverAPI(
      apple.side(), clock: deployment.clock, alarms: AppleSettings.alarms(deployment.logger, deployment.metrics))
  }
}
