import PurchasesCore
import PurchasesJSON

extension OwnedEvent {
  public var type: EventType {
    switch self {
    case .owned: .purchaseOwned
    case .transferred: .purchaseTransferred
    case .unowned: .purchaseUnowned
    case .ticked: .clockTicked
    case .consentRescinded: .consentRescinded
    case .noted: .factNoted
    }
  }

  /// The record's key: the account's; the chain's while nobody owns it; the app transaction's.
  public var key: String {
    switch self {
    case .owned(let event): TopicKey.account(event.environment, event.account)
    case .transferred(let event): TopicKey.account(event.environment, event.account)
    case .unowned(let event): TopicKey.chain(event.environment, event.originalTransaction)
    case .ticked(let event): TopicKey.account(event.environment, event.account)
    case .consentRescinded(let event): TopicKey.app(event.environment, event.appTransaction)
    case .noted(let event): TopicKey.account(event.environment, event.account)
    }
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    try self.init(type: type, fields: Fields(parsing: data))
  }

  public init(type: EventType, fields: Fields) throws(FieldFailure) {
    switch type {
    case .purchaseOwned:
      self = .owned(
        PurchaseOwned(
          environment: try fields.requiredEnvironment(), account: try fields.required("account"),
          basis: try fields.requiredBasis(), originalTransaction: try fields.required("originalTransactionId"),
          proof: try fields.text("proof"), signedDate: try fields.milliseconds("signedDate"),
          notification: try fields.notification(), report: try fields.report(),
          parts: try SignedPart.list(fields, "parts")))
    case .purchaseTransferred:
      self = .transferred(
        PurchaseTransferred(
          environment: try fields.requiredEnvironment(), account: try fields.required("account"),
          from: try fields.required("from"), to: try fields.required("to"), basis: try fields.requiredBasis(),
          originalTransaction: try fields.required("originalTransactionId"), proof: try fields.text("proof"),
          orderID: try fields.text("orderId"), report: try fields.report(),
          parts: try SignedPart.list(fields, "parts")))
    case .purchaseUnowned:
      guard let signedDate = try fields.milliseconds("signedDate") else {
        throw fields.failure("signedDate", "is missing")
      }
      self = .unowned(
        PurchaseUnowned(
          environment: try fields.requiredEnvironment(),
          originalTransaction: try fields.required("originalTransactionId"), proof: try fields.requiredText("proof"),
          signedDate: signedDate, notification: try fields.notification(), parts: try SignedPart.list(fields, "parts")))
    case .clockTicked: self = .ticked(try ClockTicked(fields))
    case .consentRescinded: self = .consentRescinded(try ConsentRescinded(fields))
    case .factNoted: self = .noted(try AccountFact(fields))
    default: throw FieldFailure("type", "\(type.rawValue) is not an event of the topic owned")
    }
  }

  public var data: [UInt8] {
    var writer = JSONWriter(reserving: 2048)
    writer.object { json in
      switch self {
      case .owned(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("basis", event.basis.rawValue)
        json.field("originalTransactionId", event.originalTransaction.text)
        json.field("proof", event.proof)
        json.field("signedDate", milliseconds: event.signedDate)
        if let notification = event.notification { json.field("notification", object: { notification.write(&$0) }) }
        if let report = event.report { json.field("report", object: { report.write(&$0) }) }
        json.field("parts", array: { json in for part in event.parts { part.write(&json) } })
      case .transferred(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("from", event.from.text)
        json.field("to", event.to.text)
        json.field("basis", event.basis.rawValue)
        json.field("originalTransactionId", event.originalTransaction.text)
        json.field("proof", event.proof)
        json.field("orderId", event.orderID)
        if let report = event.report { json.field("report", object: { report.write(&$0) }) }
        json.field("parts", array: { json in for part in event.parts { part.write(&json) } })
      case .unowned(let event):
        json.field("environment", event.environment.rawValue)
        json.field("originalTransactionId", event.originalTransaction.text)
        json.field("proof", event.proof)
        json.field("signedDate", milliseconds: event.signedDate)
        if let notification = event.notification { json.field("notification", object: { notification.write(&$0) }) }
        json.field("parts", array: { json in for part in event.parts { part.write(&json) } })
      case .ticked(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("instant", rfc3339: event.instant)
        json.field("catalogueVersion", event.catalogueVersion)
        json.field("limit", event.limit)
        json.field("dueAt", rfc3339: event.dueAt)
      case .consentRescinded(let event):
        json.field("environment", event.environment.rawValue)
        json.field("appTransactionId", event.appTransaction.text)
        json.field("bundleId", event.bundleID)
        json.field("proof", event.proof)
        json.field("signedDate", milliseconds: event.signedDate)
        json.field("notification", object: { event.notification.write(&$0) })
      case .noted(let event):
        json.field("environment", event.environment.rawValue)
        json.field("account", event.account.text)
        json.field("outcome", event.outcome.rawValue)
        json.field("reason", event.reason)
        json.field("proof", event.proof)
        if !event.via.isEmpty {
          json.field("via", array: { json in for account in event.via { json.element(account.text) } })
        }
        json.field("orderedAt", rfc3339: event.orderedAt)
        event.fact.write(&json)
      }
    }
    return writer.bytes
  }
}

extension ClockTicked {
  init(_ fields: Fields) throws(FieldFailure) {
    guard let instant = try fields.instant("instant") else { throw fields.failure("instant", "is missing") }
    let limit = try fields.integer("limit")
    guard limit ?? 1 > 0 else { throw fields.failure("limit", "must be 1 or more") }
    self.init(
      environment: try fields.requiredEnvironment(), account: try fields.required("account"), instant: instant,
      catalogueVersion: try fields.requiredText("catalogueVersion"), limit: limit, dueAt: try fields.instant("dueAt"))
  }
}

extension ConsentRescinded {
  init(_ fields: Fields) throws(FieldFailure) {
    guard let signedDate = try fields.milliseconds("signedDate") else {
      throw fields.failure("signedDate", "is missing")
    }
    guard let notification = try fields.notification() else { throw fields.failure("notification", "is missing") }
    self.init(
      environment: try fields.requiredEnvironment(), appTransaction: try fields.required("appTransactionId"),
      bundleID: try fields.requiredText("bundleId"), proof: try fields.requiredText("proof"), signedDate: signedDate,
      notification: notification)
  }
}

extension AccountFact {
  init(_ fields: Fields) throws(FieldFailure) {
    guard let outcome = Outcome(rawValue: try fields.requiredText("outcome")) else {
      throw fields.failure("outcome", "is not a known outcome")
    }
    var via: [Account] = []
    for element in fields.member("via")?.elements ?? [] {
      guard let account = element.string.flatMap({ Account($0) }) else {
        throw fields.failure("via", "must be accounts")
      }
      via.append(account)
    }
    self.init(
      environment: try fields.requiredEnvironment(), account: try fields.required("account"), outcome: outcome,
      reason: try fields.text("reason"), proof: try fields.text("proof"), via: via,
      orderedAt: try fields.instant("orderedAt"), fact: try FactNoted(fields))
  }
}

extension Fields {
  func requiredBasis() throws(FieldFailure) -> OwnershipBasis {
    guard let basis = OwnershipBasis(rawValue: try requiredText("basis")) else {
      throw failure("basis", "is not a known basis of ownership")
    }
    return basis
  }

  func notification() throws(FieldFailure) -> NotificationFacts? {
    guard let inner = try object("notification") else { return nil }
    return try NotificationFacts(inner)
  }

  func report() throws(FieldFailure) -> Report? {
    guard let inner = try object("report") else { return nil }
    return try Report(inner)
  }
}
