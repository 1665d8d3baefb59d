import PurchasesCore
import PurchasesJSON

extension RevisionSource {
  public var name: String {
    switch self {
    case .client: "client"
    case .backfill: "backfill"
    case .notification: "notification"
    }
  }

  public init?(name: String) {
    switch name {
    case "client": self = .client
    case "backfill": self = .backfill
    case "notification": self = .notification
    default: return nil
    }
  }
}

extension SignedPart {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let kind = ProofKind(rawValue: try fields.requiredText("kind")) else {
      throw fields.failure("kind", "is not a known kind of proof")
    }
    guard let source = RevisionSource(name: try fields.requiredText("source")) else {
      throw fields.failure("source", "must be client, backfill or notification")
    }
    guard let payload = fields.member("payload"), payload.kind == .object else {
      throw fields.failure("payload", "must be a JSON object")
    }
    let name = try fields.text("standing")
    let standing = name.flatMap { Standing(rawValue: $0) }
    guard name == nil || standing != nil else { throw fields.failure("standing", "must be superseded or copy") }
    self.init(
      kind: kind, digest: try fields.requiredText("digest"), source: source, payload: payload.text, standing: standing)
  }

  public func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("kind", kind.rawValue)
      json.field("digest", digest)
      json.field("source", source.name)
      json.field("standing", standing?.rawValue)
      json.field("payload", raw: payload)
    }
  }

  /// Reads a member that holds an array of parts.
  public static func list(_ fields: Fields, _ name: StaticString) throws(FieldFailure) -> [SignedPart] {
    guard let value = fields.member(name) else { return [] }
    guard value.kind == .array else { throw fields.failure(name, "must be an array") }
    var parts: [SignedPart] = []
    for element in value.elements { parts.append(try SignedPart(Fields(element, path: fields.name(name)))) }
    return parts
  }

  /// The payload as a document; it was JSON when it was verified.
  public func document() throws(FieldFailure) -> JSONView {
    do { return try JSONDocument(parsing: payload).root } catch {
      throw FieldFailure("payload", "is not JSON (byte \(error.offset))")
    }
  }

  public func transactionRevision() throws(FieldFailure) -> TransactionRevision {
    try ApplePayload.transaction(document(), digest: digest, source: source)
  }

  public func renewalRevision() throws(FieldFailure) -> RenewalRevision {
    try ApplePayload.renewal(document(), digest: digest, source: source)
  }
}

extension Report {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let type = EventType(rawValue: try fields.requiredText("type")) else {
      throw fields.failure("type", "is not an event of this pipeline")
    }
    self.init(
      type: type, account: try fields.identifier("account"), attempt: try fields.text("attemptId"),
      product: try fields.identifier("productId"), transaction: try fields.identifier("transactionId"))
  }

  public func write(_ json: inout JSONWriter) {
    json.field("type", type.rawValue)
    json.field("account", account?.text)
    json.field("attemptId", attempt)
    json.field("productId", product?.text)
    json.field("transactionId", transaction?.text)
  }
}

extension NotificationFacts {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let signedDate = try fields.milliseconds("signedDate") else {
      throw fields.failure("signedDate", "is missing")
    }
    self.init(
      uuid: try fields.requiredText("notificationUUID"), type: try fields.requiredText("notificationType"),
      subtype: try fields.text("subtype"), version: try fields.text("version"), signedDate: signedDate)
  }

  public func write(_ json: inout JSONWriter) {
    json.field("notificationUUID", uuid)
    json.field("notificationType", type)
    json.field("subtype", subtype)
    json.field("version", version)
    json.field("signedDate", milliseconds: signedDate)
  }
}

extension VerifiedEvent {
  public var type: EventType {
    switch self {
    case .verified: .purchaseVerified
    case .rejected: .purchaseRejected
    case .pending: .purchasePending
    case .noted: .factNoted
    }
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    let fields = try Fields(parsing: data)
    func report() throws(FieldFailure) -> Report {
      guard let report = try fields.object("report") else { throw fields.failure("report", "is missing") }
      return try Report(report)
    }
    switch type {
    case .purchaseVerified:
      guard let kind = ProofKind(rawValue: try fields.requiredText("kind")) else {
        throw fields.failure("kind", "is not a known kind of proof")
      }
      guard let signedDate = try fields.milliseconds("signedDate") else {
        throw fields.failure("signedDate", "is missing")
      }
      var notification: NotificationFacts?
      if let inner = try fields.object("notification") { notification = try NotificationFacts(inner) }
      self = .verified(
        PurchaseVerified(
          environment: try fields.requiredEnvironment(), kind: kind, proof: try fields.requiredText("proof"),
          signedDate: signedDate, parts: try SignedPart.list(fields, "parts"), notification: notification,
          body: try Self.body(fields), report: try report(), evidence: fields.member("evidence")?.json ?? .null))
    case .purchaseRejected:
      self = .rejected(
        PurchaseRejected(
          environment: try fields.environment(), proof: try fields.requiredText("proof"),
          reason: try fields.requiredText("reason"), explanation: try fields.requiredText("explanation"),
          report: try report(), evidence: fields.member("evidence")?.json ?? .null))
    case .purchasePending:
      guard let next = try fields.instant("nextTry") else { throw fields.failure("nextTry", "is missing") }
      self = .pending(
        PurchasePending(
          environment: try fields.environment(), proof: try fields.requiredText("proof"),
          reason: try fields.requiredText("reason"), attempt: Int(try fields.integer("attempt") ?? 1), nextTry: next,
          report: try report()))
    case .factNoted:
      self = .noted(try FactNoted(fields))
    default: throw FieldFailure("type", "\(type.rawValue) is not an event of the topic verified")
    }
  }

  private static func body(_ fields: Fields) throws(FieldFailure) -> [UInt8]? {
    guard let body = fields.member("body") else { return nil }
    guard body.kind == .object else { throw fields.failure("body", "must be a JSON object") }
    return body.text
  }

  public var data: [UInt8] {
    var writer = JSONWriter(reserving: 2048)
    writer.object { json in
      switch self {
      case .verified(let event):
        json.field("environment", event.environment.rawValue)
        json.field("kind", event.kind.rawValue)
        json.field("proof", event.proof)
        json.field("signedDate", milliseconds: event.signedDate)
        if let notification = event.notification { json.field("notification", object: { notification.write(&$0) }) }
        json.field("body", raw: event.body)
        json.field("parts", array: { json in for part in event.parts { part.write(&json) } })
        json.field("report", object: { event.report.write(&$0) })
        json.field("evidence", event.evidence)
      case .rejected(let event):
        json.field("environment", event.environment?.rawValue)
        json.field("proof", event.proof)
        json.field("reason", event.reason)
        json.field("explanation", event.explanation)
        json.field("report", object: { event.report.write(&$0) })
        json.field("evidence", event.evidence)
      case .pending(let event):
        json.field("environment", event.environment?.rawValue)
        json.field("proof", event.proof)
        json.field("reason", event.reason)
        json.field("attempt", event.attempt)
        json.field("nextTry", rfc3339: event.nextTry)
        json.field("report", object: { event.report.write(&$0) })
      case .noted(let event): event.write(&json)
      }
    }
    return writer.bytes
  }
}

extension FactNoted {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let type = EventType(rawValue: try fields.requiredText("fact")) else {
      throw fields.failure("fact", "is not an event of this pipeline")
    }
    guard let data = fields.member("data"), data.kind == .object else {
      throw fields.failure("data", "must be a JSON object")
    }
    self.init(type: type, data: data.text)
  }

  public func write(_ json: inout JSONWriter) {
    json.field("fact", type.rawValue)
    json.field("data", raw: data)
  }
}
