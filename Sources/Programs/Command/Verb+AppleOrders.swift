import PurchasesAppStoreClient
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// What people tell Apple: on the log before it is sent.
extension Verb {
  static let appleTest = Verb(
    words: ["apple", "test"], summary: "Ask Apple for a test notification and print its token",
    notes: ["It is on the log before it is asked for."], settings: Setting.ofOrders,
    examples: ["purchases apple test --operator kim --reason 'new endpoint' --config purchases.conf"],
    statuses: [(1, "the log, or Apple, failed or refused")]
  ) { call in
    let api = try client(call)
    return try carryOut(call, "appstore.test", []) { () throws(ServerAPIFailure) in
      let token = try api.requestTestNotification()
      Output.line(token)
      return []
    }
  }

  static let appleConsumption = Verb(
    words: ["apple", "consumption"], summary: "Tell Apple what became of a purchase that a refund is asked for",
    notes: [
      "Apple waits twelve hours for it after its CONSUMPTION_REQUEST. Only with the customer's consent, and on the log before",
      "it is sent.",
    ],
    settings: [.transaction, .consent, .delivery, .sample, .consumed, .preference] + Setting.ofOrders,
    examples: [
      "purchases apple consumption --transaction 2000000632750685 --consent crm/4711 --delivery DELIVERED \\\n"
        + "      --consumed 25000 --operator kim --reason 'refund 17' --config purchases.conf"
    ],
    statuses: [(1, "the log, or Apple, failed or refused")]
  ) { call in
    let id = try transaction(call)
    guard let consent = call.values.text(.consent) else {
      throw UsageError("--consent: is missing: without the customer's consent nothing may be sent")
    }
    guard let delivery = call.values.text(.delivery).flatMap({ ConsumptionInformation.Delivery(rawValue: $0) }) else {
      throw UsageError("--delivery: must be one of \(Setting.delivery.help)")
    }
    var information = ConsumptionInformation(
      consent: CustomerConsent(onRecord: consent), delivery: delivery,
      sampleProvided: try call.values.flag(.sample), consumed: try call.values.number(.consumed, 0...100_000))
    if let text = call.values.text(.preference) {
      guard let preference = ConsumptionInformation.RefundPreference(rawValue: text) else {
        throw UsageError("--preference: must be one of \(Setting.preference.help)")
      }
      information.preference = preference
    }
    var arguments = [
      "transactionId=\(id.text)", "consent=\(consent)", "deliveryStatus=\(delivery.rawValue)",
      "sampleContentProvided=\(information.sampleProvided)",
    ]
    if let consumed = information.consumed { arguments.append("consumptionPercentage=\(consumed)") }
    if let preference = information.preference { arguments.append("refundPreference=\(preference.rawValue)") }
    let api = try client(call)
    return try carryOut(call, "appstore.consumption", arguments) { [information] () throws(ServerAPIFailure) in
      try api.sendConsumption(information, of: id)
      return []
    }
  }

  static let appleAccount = Verb(
    words: ["apple", "account-token"], summary: "Tell Apple whose a purchase is",
    notes: ["--transaction is the chain's first transaction. On the log before it is sent."],
    settings: [.transaction, .accountToken] + Setting.ofOrders,
    examples: [
      "purchases apple account-token --transaction 2000000632750685 --account-token 7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11 \\\n"
        + "      --operator kim --reason 'offer code' --config purchases.conf"
    ],
    statuses: [(1, "the log, or Apple, failed or refused")]
  ) { call in
    let id = try original(call)
    guard let token = call.values.text(.accountToken), Account.isUUID(token) else {
      throw UsageError("--account-token: must be a UUID")
    }
    let api = try client(call)
    let arguments = ["originalTransactionId=\(id.text)", "appAccountToken=\(token.lowercased())"]
    return try carryOut(call, "appstore.account-token", arguments) { () throws(ServerAPIFailure) in
      try api.setAccountToken(token, of: id)
      return []
    }
  }

  static let appleExtend = Verb(
    words: ["apple", "extend"], summary: "Make a subscription's period longer",
    notes: [
      "--transaction is the chain's first transaction. Apple grants two a year and 90 days each at most. On the log before it",
      "is sent, and sent once: where no answer comes, look at the subscription before trying again.",
    ],
    settings: [.transaction, .days, .extensionReason] + Setting.ofOrders,
    examples: [
      "purchases apple extend --transaction 2000000632750685 --days 3 --extension-reason 3 --operator kim \\\n"
        + "      --reason 'outage of 11 May' --config purchases.conf"
    ],
    statuses: [(1, "the log, or Apple, failed or refused")]
  ) { call in
    let id = try original(call)
    guard let days: Int64 = try call.values.number(.days, 1...ServerAPI.maximumExtensionDays) else {
      throw UsageError("--days: is missing")
    }
    let number: Int64 = try call.values.number(.extensionReason, 0...3) ?? 0
    guard let why = ExtensionReason(rawValue: number) else { throw UsageError("--extension-reason: must be 0 to 3") }
    let api = try client(call)
    let request = "\(id.text)-\(try deploymentClock(call).milliseconds)"
    let arguments = [
      "originalTransactionId=\(id.text)", "extendByDays=\(days)", "extendReasonCode=\(number)",
      "requestIdentifier=\(request)",
    ]
    return try carryOut(call, "appstore.extend", arguments) { () throws(ServerAPIFailure) in
      let granted = try api.extendRenewal(of: id, byDays: days, reason: why, requestID: request)
      let end = granted.effectiveDate?.rfc3339 ?? "unknown"
      Output.line(end)
      return ["effectiveDate=\(end)"]
    }
  }

  static let appleFinish = Verb(
    words: ["apple", "finish"], summary: "Tell Apple that a transaction is finished, where the pipeline permits it",
    notes: [
      "Asks the store for the permit (`payment.finishable`); without one nothing is sent. On the log before it is sent."
    ],
    settings: [.transaction, .store] + Setting.ofOrders.filter { $0 != .store },
    examples: [
      "purchases apple finish --transaction 2000000632750685 --operator kim --reason 'client is gone' --config purchases.conf"
    ],
    statuses: [(1, "the log, the store, or Apple, failed or refused"), (ExitStatus.refused, "there is no permit")]
  ) { call in
    let id = try transaction(call)
    let apple = AppleSettings(call.values)
    let environment = try apple.side().environment
    let api = try client(call)
    let store = try Deployment(call.values).openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    guard let permit = try reader.finishPermit(environment, id) else {
      Output.error(
        "purchases: the pipeline has given no permit to finish this transaction in \(environment.rawValue); nothing was sent"
      )
      return ExitStatus.refused
    }
    let arguments = ["transactionId=\(id.text)", "permit=\(permit.event)"]
    return try carryOut(call, "appstore.finish", arguments) { () throws(ServerAPIFailure) in
      try api.finish(permit)
      return []
    }
  }

  private static func deploymentClock(_ call: Call) throws -> Instant { try Deployment(call.values).clock.now() }

  private static func transaction(_ call: Call) throws(UsageError) -> TransactionID {
    guard let id = call.values.text(.transaction).flatMap({ TransactionID($0) }) else {
      throw UsageError("--transaction: needs a transaction id")
    }
    return id
  }

  private static func original(_ call: Call) throws(UsageError) -> OriginalTransactionID {
    guard let id = call.values.text(.transaction).flatMap({ OriginalTransactionID($0) }) else {
      throw UsageError("--transaction: needs the id of the chain's first transaction")
    }
    return id
  }

  private static func carryOut(
    _ call: Call, _ action: String, _ arguments: [String], send: () throws(ServerAPIFailure) -> [String]
  ) throws -> Int32 {
    guard let name = call.values.text(.operatorName) else { throw UsageError("--operator: is missing: who does this?") }
    guard let reason = call.values.text(.reason) else { throw UsageError("--reason: is missing: why is this done?") }
    let side = try AppleSettings(call.values).side()
    let deployment = try Deployment(call.values)
    let log = try deployment.openLogWithTopics()
    defer { log.close() }
    try AppleOrder(
      operatorName: name, reason: reason, action: action,
      arguments: ["environment=\(side.environment.rawValue)"] + arguments
    ).carryOut(on: log, deployment.topics, clock: deployment.clock, send: send)
    return 0
  }
}
