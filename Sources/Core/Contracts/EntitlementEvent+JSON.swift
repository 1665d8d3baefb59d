import PurchasesCore
import PurchasesJSON

extension AccountChange.Step {
  public var type: EventType {
    switch self {
    case .granted: .entitlementGranted
    case .extended: .entitlementExtended
    case .reduced: .entitlementReduced
    case .revoked: .entitlementRevoked
    case .expired: .entitlementExpired
    }
  }

  public init?(_ type: EventType) {
    switch type {
    case .entitlementGranted: self = .granted
    case .entitlementExtended: self = .extended
    case .entitlementReduced: self = .reduced
    case .entitlementRevoked: self = .revoked
    case .entitlementExpired: self = .expired
    default: return nil
    }
  }
}

extension EntitlementState {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let isActive = try fields.flag("active") else { throw fields.failure("active", "is missing") }
    self.init(
      isActive: isActive, endsAt: try fields.instant("endsAt"), product: try fields.identifier("productId"),
      originalTransaction: try fields.identifier("originalTransactionId"))
  }

  /// Writes the members of an object.
  public func write(_ json: inout JSONWriter) {
    json.field("active", isActive)
    json.field("endsAt", rfc3339: endsAt)
    json.field("productId", product?.text)
    json.field("originalTransactionId", originalTransaction?.text)
  }
}

extension EntitlementEvent {
  public var type: EventType {
    switch content {
    case .entitlement(let change): change.step.type
    case .credit(let change): change.isAddition ? .creditAdded : .creditRemoved
    case .finishable: .paymentFinishable
    }
  }

  public var key: String { TopicKey.account(environment, account) }

  /// `ENVIRONMENT/TRANSACTION` where the event is about one transaction.
  public var subject: String? {
    let transaction: TransactionID? =
      switch content {
      case .entitlement: nil
      case .credit(let change): change.transaction
      case .finishable(let permit): permit.transaction
      }
    return transaction.map { TransactionSubject(environment, $0).text }
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    let fields = try Fields(parsing: data)
    let content: Content
    func rule() throws(FieldFailure) -> Rule {
      guard let rule = Rule(rawValue: try fields.requiredText("rule")) else {
        throw fields.failure("rule", "is not a known rule")
      }
      return rule
    }
    func state(_ name: StaticString) throws(FieldFailure) -> EntitlementState {
      guard let state = try fields.object(name) else { throw fields.failure(name, "is missing") }
      return try EntitlementState(state)
    }
    func number(_ name: StaticString) throws(FieldFailure) -> Int64 {
      guard let number = try fields.integer(name) else { throw fields.failure(name, "is missing") }
      return number
    }
    switch type {
    case .creditAdded, .creditRemoved:
      content = .credit(
        CreditChanged(
          unit: try fields.required("unit"), amount: try number("amount"), isAddition: type == .creditAdded,
          balanceBefore: try number("balanceBefore"), balanceAfter: try number("balanceAfter"),
          entry: try fields.requiredText("entry", maximumBytes: 2048),
          transaction: try fields.identifier("transactionId"),
          product: try fields.identifier("productId"), rule: try rule()))
    case .paymentFinishable:
      guard let outcome = Permit.Content(rawValue: try fields.requiredText("content")) else {
        throw fields.failure("content", "is not a known content of a permit")
      }
      content = .finishable(
        PaymentFinishable(
          proof: try fields.requiredText("proof", maximumBytes: 2048), content: outcome,
          reason: try fields.requiredText("reason"), transaction: try fields.identifier("transactionId"),
          product: try fields.identifier("productId"), attempt: try fields.text("attemptId")))
    default:
      guard let step = AccountChange.Step(type) else {
        throw FieldFailure("type", "\(type.rawValue) is not an event of the topic entitlements")
      }
      content = .entitlement(
        EntitlementChanged(
          entitlement: try fields.required("entitlement"), step: step, before: try state("before"),
          after: try state("after"), rule: try rule()))
    }
    guard let asOf = try fields.instant("asOf") else { throw fields.failure("asOf", "is missing") }
    guard let cause = try fields.object("cause") else { throw fields.failure("cause", "is missing") }
    self.init(
      environment: try fields.requiredEnvironment(), account: try fields.required("account"),
      version: try number("version"), asOf: asOf, catalogueVersion: try fields.requiredText("catalogueVersion"),
      cause: Cause(
        event: try cause.requiredText("event"), proof: try cause.text("proof", maximumBytes: 2048),
        transaction: try cause.identifier("transactionId")),
      content: content)
  }

  public var data: [UInt8] {
    var writer = JSONWriter(reserving: 768)
    writer.object { json in
      json.field("environment", environment.rawValue)
      json.field("account", account.text)
      json.field("version", version)
      switch content {
      case .entitlement(let change):
        json.field("entitlement", change.entitlement.text)
        json.field("rule", change.rule.rawValue)
        json.field("before", object: { change.before.write(&$0) })
        json.field("after", object: { change.after.write(&$0) })
      case .credit(let change):
        json.field("unit", change.unit.text)
        json.field("amount", change.amount)
        json.field("balanceBefore", change.balanceBefore)
        json.field("balanceAfter", change.balanceAfter)
        json.field("entry", change.entry)
        json.field("transactionId", change.transaction?.text)
        json.field("productId", change.product?.text)
        json.field("rule", change.rule.rawValue)
      case .finishable(let permit):
        json.field("proof", permit.proof)
        json.field("content", permit.content.rawValue)
        json.field("reason", permit.reason)
        json.field("transactionId", permit.transaction?.text)
        json.field("productId", permit.product?.text)
        json.field("attemptId", permit.attempt)
      }
      json.field("asOf", rfc3339: asOf)
      json.field("catalogueVersion", catalogueVersion)
      json.field(
        "cause",
        object: { json in
          json.field("event", cause.event)
          json.field("proof", cause.proof)
          json.field("transactionId", cause.transaction?.text)
        })
    }
    return writer.bytes
  }
}
