import PurchasesCore
import PurchasesJSON

extension ReceivedEvent {
  /// Longer than any signed payload that Apple sends today by a factor of ten.
  public static let maximumProofBytes = 1 << 20

  /// Reads and checks the data of an event of the topic `received`.
  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    try self.init(type: type, fields: Fields(parsing: data))
  }

  public init(type: EventType, fields: Fields) throws(FieldFailure) {
    switch type {
    case .paymentAdded, .paymentDeferred, .paymentPurchased, .paymentFailed, .paymentRestored, .paymentFinished:
      self = .payment(try Self.payment(type, fields))
    case .restoreStarted, .restoreCompleted, .restoreFailed:
      var event = RestoreReported(
        type: type, environment: try fields.requiredEnvironment(), account: try fields.required("account"),
        attempt: try fields.requiredText("attemptId"))
      event.occurredAt = try fields.instant("occurredAt")
      event.failure = try Self.failure(fields)
      self = .restore(event)
    case .storeNotified:
      self = .notified(
        StoreNotified(
          signedPayload: try fields.requiredText("signedPayload", maximumBytes: Self.maximumProofBytes),
          isBackfill: try fields.flag("backfill") ?? false))
    case .purchaseClaimed:
      self = .claimed(
        PurchaseClaimed(
          environment: try fields.requiredEnvironment(), account: try fields.required("account"),
          originalTransaction: try fields.required("originalTransactionId"),
          attempt: try fields.requiredText("attemptId")))
    case .creditSpendRequested:
      guard let amount = try fields.integer("amount") else { throw fields.failure("amount", "is missing") }
      guard amount > 0 else { throw fields.failure("amount", "must be above 0") }
      self = .spendRequested(
        SpendRequested(
          environment: try fields.requiredEnvironment(), account: try fields.required("account"),
          unit: try fields.required("unit"), amount: amount,
          idempotencyKey: try fields.requiredText("idempotencyKey", maximumBytes: 256)))
    case .accessOrdered: self = .ordered(try Self.order(fields))
    case .operatorActed:
      var arguments: [String] = []
      for element in fields.member("arguments")?.elements ?? [] {
        guard let text = element.string else { throw fields.failure("arguments", "must be strings") }
        arguments.append(text)
      }
      self = .operatorActed(
        OperatorActed(
          actID: try fields.requiredText("actId"), operatorName: try fields.requiredText("operator"),
          reason: try fields.requiredText("reason", maximumBytes: 4096), action: try fields.requiredText("action"),
          arguments: arguments))
    default: throw FieldFailure("type", "\(type.rawValue) is not an event that may be received")
    }
  }

  private static func payment(_ type: EventType, _ fields: Fields) throws(FieldFailure) -> PaymentReported {
    var event = PaymentReported(
      type: type, environment: try fields.environment(), account: try fields.identifier("account"),
      attempt: try fields.text("attemptId"))
    event.occurredAt = try fields.instant("occurredAt")
    event.product = try fields.identifier("productId")
    event.quantity = try fields.integer("quantity")
    if let quantity = event.quantity, !(1...ApplePayload.maximumQuantity).contains(quantity) {
      throw fields.failure("quantity", "must be 1 to \(ApplePayload.maximumQuantity)")
    }
    event.transaction = try fields.identifier("transactionId")
    event.originalTransaction = try fields.identifier("originalTransactionId")
    for (field, id) in [
      ("transactionId" as StaticString, event.transaction?.text),
      ("originalTransactionId", event.originalTransaction?.text),
    ] {
      if let id, !IdentifierRule.isDecimal(id) { throw fields.failure(field, "must be a string of decimal digits") }
    }
    event.signedTransaction = try fields.text("signedTransaction", maximumBytes: Self.maximumProofBytes)
    event.appReceipt = try fields.text("appReceipt", maximumBytes: Self.maximumProofBytes)
    if let device = try fields.text("deviceId", maximumBytes: IdentifierRule.maximumBytes) {
      guard let known = DeviceIdentifier(device) else {
        throw fields.failure("deviceId", "must be a UUID or up to \(DeviceIdentifier.maximumBytes) bytes in hex")
      }
      event.device = known
    }
    event.failure = try failure(fields)
    switch type {
    case .paymentPurchased, .paymentRestored:
      guard event.proof != nil else { throw fields.failure("signedTransaction", "is missing, and so is appReceipt") }
      guard event.transaction != nil else { throw fields.failure("transactionId", "is missing") }
    case .paymentFailed:
      guard event.failure != nil else { throw fields.failure("failure", "is missing") }
      fallthrough
    case .paymentAdded, .paymentDeferred:
      guard event.product != nil else { throw fields.failure("productId", "is missing") }
      fallthrough
    default:
      guard event.signedTransaction == nil else {
        throw fields.failure("signedTransaction", "is only taken with payment.purchased and payment.restored")
      }
      guard event.appReceipt == nil else {
        throw fields.failure("appReceipt", "is only taken with payment.purchased and payment.restored")
      }
      guard event.environment != nil else { throw fields.failure("environment", "is missing") }
      guard event.account != nil else { throw fields.failure("account", "is missing") }
      guard event.attempt != nil else { throw fields.failure("attemptId", "is missing") }
    }
    return event
  }

  private static func failure(_ fields: Fields) throws(FieldFailure) -> PaymentFailure? {
    guard let failure = try fields.object("failure") else { return nil }
    guard let code = try failure.integer("code") else { throw failure.failure("code", "is missing") }
    return PaymentFailure(
      domain: try failure.requiredText("domain"), code: code, userCancelled: try failure.flag("userCancelled") ?? false)
  }

  private static func order(_ fields: Fields) throws(FieldFailure) -> AccessOrdered {
    let action = try fields.requiredText("action")
    let order: AccessOrdered.Order
    switch action {
    case "grant": order = .grant(try fields.required("entitlement"), until: try fields.instant("until"))
    case "revoke": order = .revoke(try fields.required("entitlement"), until: try fields.instant("until"))
    case "reverse": order = .reverse(orderID: try fields.requiredText("reverses"))
    case "adjust":
      guard let amount = try fields.integer("amount") else { throw fields.failure("amount", "is missing") }
      guard amount != 0, amount.magnitude <= AccessOrdered.maximumAdjustment.magnitude else {
        throw fields.failure("amount", "must be up to \(AccessOrdered.maximumAdjustment) either way, and not 0")
      }
      order = .adjust(try fields.required("unit"), amount: amount)
    case "transfer":
      order = .transfer(try fields.required("originalTransactionId"), to: try fields.required("toAccount"))
    case "merge": order = .merge(into: try fields.required("toAccount"))
    default: throw fields.failure("action", "must be grant, revoke, reverse, adjust, transfer or merge")
    }
    return AccessOrdered(
      environment: try fields.requiredEnvironment(), account: try fields.required("account"), order: order,
      orderID: try fields.requiredText("orderId"), operatorName: try fields.requiredText("operator"),
      reason: try fields.requiredText("reason", maximumBytes: 4096))
  }

  public var type: EventType {
    switch self {
    case .payment(let event): event.type
    case .restore(let event): event.type
    case .notified: .storeNotified
    case .claimed: .purchaseClaimed
    case .spendRequested: .creditSpendRequested
    case .ordered: .accessOrdered
    case .operatorActed: .operatorActed
    }
  }

  /// The proof that the event carries, if any; the signed transaction where a receipt is beside it.
  public var proof: String? {
    switch self {
    case .payment(let event): event.proof
    case .notified(let event): event.signedPayload
    default: nil
    }
  }

  /// What stands beside the proof and is of its size.
  private var besideCount: Int {
    guard case .payment(let event) = self, event.signedTransaction != nil else { return 0 }
    return event.appReceipt?.utf8.count ?? 0
  }

  public var data: [UInt8] {
    var writer = JSONWriter(reserving: 256 + (proof?.utf8.count ?? 0) + besideCount)
    writer.object { json in
      switch self {
      case .payment(let event):
        json.field("environment", event.environment?.rawValue)
        json.field("account", event.account?.text)
        json.field("attemptId", event.attempt)
        json.field("occurredAt", rfc3339: event.occurredAt)
        json.field("productId", event.product?.text)
        json.field("quantity", event.quantity)
        json.field("transactionId", event.transaction?.text)
        json.field("originalTransactionId", event.originalTransaction?.text)
        json.field("signedTransaction", event.signedTransaction)
        json.field("appReceipt", event.appReceipt)
        json.field("deviceId", event.device?.text)
        Self.write(event.failure, &json)
      case .restore(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("attemptId", event.attempt)
        json.field("occurredAt", rfc3339: event.occurredAt)
        Self.write(event.failure, &json)
      case .notified(let event):
        json.field("signedPayload", event.signedPayload)
        json.field("backfill", event.isBackfill ? true : nil)
      case .claimed(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("originalTransactionId", event.originalTransaction.text)
        json.field("attemptId", event.attempt)
      case .spendRequested(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("unit", event.unit.text)
        json.field("amount", event.amount)
        json.field("idempotencyKey", event.idempotencyKey)
      case .ordered(let event): Self.write(event, &json)
      case .operatorActed(let event):
        json.field("actId", event.actID)
        json.field("operator", event.operatorName)
        json.field("reason", event.reason)
        json.field("action", event.action)
        json.field("arguments", array: { json in for argument in event.arguments { json.element(argument) } })
      }
    }
    return writer.bytes
  }

  private static func write(_ failure: PaymentFailure?, _ json: inout JSONWriter) {
    guard let failure else { return }
    json.field(
      "failure",
      object: { json in
        json.field("domain", failure.domain)
        json.field("code", failure.code)
        json.field("userCancelled", failure.userCancelled)
      })
  }

  private static func write(_ event: AccessOrdered, _ json: inout JSONWriter) {
    json.field("environment", event.environment.rawValue)
    json.field("account", event.account.text)
    switch event.order {
    case .grant(let entitlement, let until), .revoke(let entitlement, let until):
      json.field("action", event.order.action)
      json.field("entitlement", entitlement.text)
      json.field("until", rfc3339: until)
    case .reverse(let orderID):
      json.field("action", event.order.action)
      json.field("reverses", orderID)
    case .adjust(let unit, let amount):
      json.field("action", event.order.action)
      json.field("unit", unit.text)
      json.field("amount", amount)
    case .transfer(let original, let to):
      json.field("action", event.order.action)
      json.field("originalTransactionId", original.text)
      json.field("toAccount", to.text)
    case .merge(let into):
      json.field("action", event.order.action)
      json.field("toAccount", into.text)
    }
    json.field("orderId", event.orderID)
    json.field("operator", event.operatorName)
    json.field("reason", event.reason)
  }
}

extension AccessOrdered {
  /// A million millions: far more than anybody adjusts, and millions of them fit a balance.
  public static let maximumAdjustment: Int64 = 1_000_000_000_000
}

extension AccessOrdered.Order {
  /// The word on the wire.
  public var action: String {
    switch self {
    case .grant: "grant"
    case .revoke: "revoke"
    case .reverse: "reverse"
    case .adjust: "adjust"
    case .transfer: "transfer"
    case .merge: "merge"
    }
  }
}

extension PaymentReported {
  /// The signed transaction, else the receipt.
  public var proof: String? { signedTransaction ?? appReceipt }
}
