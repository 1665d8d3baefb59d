import PurchasesCore
import PurchasesJSON

extension AuditEvent {
  public var type: EventType {
    switch self {
    case .checkpointed: .auditCheckpointed
    case .anomaly: .auditAnomalyFound
    }
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    let fields = try Fields(parsing: data)
    switch type {
    case .auditCheckpointed: self = .checkpointed(try AuditCheckpointed(fields))
    case .auditAnomalyFound: self = .anomaly(try AuditAnomaly(fields))
    default: throw FieldFailure("type", "\(type.rawValue) is not an event of the topic audit")
    }
  }

  public var data: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      switch self {
      case .checkpointed(let event): event.write(&json)
      case .anomaly(let event): event.write(&json)
      }
    }
    return writer.bytes
  }
}

extension AuditCheckpointed {
  /// A note of ours has three lines, a blank one and a signature.
  static let maximumNoteBytes = 4096

  public init(_ fields: Fields) throws(FieldFailure) {
    let scope: Scope
    switch try fields.requiredText("scope") {
    case "partition":
      scope = .partition(TopicPartition(try fields.requiredText("topic"), try fields.partition("partition")))
    case "summary":
      guard let list = fields.member("added"), list.kind == .array else {
        throw fields.failure("added", "must be an array")
      }
      var added: [String] = []
      for element in list.elements {
        guard let text = element.string else { throw fields.failure("added", "must be strings") }
        added.append(text)
      }
      scope = .summary(added: added)
    default: throw fields.failure("scope", "must be partition or summary")
    }
    self.init(
      scope: scope, size: try fields.count("size"), root: try fields.requiredText("root"),
      note: try fields.requiredText("note", maximumBytes: Self.maximumNoteBytes))
  }

  func write(_ json: inout JSONWriter) {
    switch scope {
    case .partition(let partition):
      json.field("scope", "partition")
      json.field("topic", partition.topic)
      json.field("partition", Int64(partition.partition))
    case .summary(let added):
      json.field("scope", "summary")
      json.field("added", array: { json in for text in added { json.element(text) } })
    }
    json.field("size", size)
    json.field("root", root)
    json.field("note", note)
  }
}

extension AuditAnomaly {
  public init(_ fields: Fields) throws(FieldFailure) {
    guard let kind = Kind(rawValue: try fields.requiredText("kind")) else {
      throw fields.failure("kind", "is not a known kind of anomaly")
    }
    var subject: TransactionSubject?
    if let transaction: TransactionID = try fields.identifier("transactionId") {
      subject = TransactionSubject(try fields.requiredEnvironment(), transaction)
    }
    var coordinates: Coordinates?
    if let inner = try fields.object("record") {
      coordinates = Coordinates(
        topic: try inner.requiredText("topic"), partition: try inner.partition("partition"),
        offset: try inner.count("offset"))
    }
    guard let since = try fields.instant("since") else { throw fields.failure("since", "is missing") }
    self.init(
      kind: kind, subject: subject, coordinates: coordinates, since: since,
      ageMilliseconds: try fields.count("ageMilliseconds"), explanation: try fields.requiredText("explanation"))
  }

  func write(_ json: inout JSONWriter) {
    json.field("kind", kind.rawValue)
    json.field("severity", kind.severity.rawValue)
    json.field("environment", subject?.environment.rawValue)
    json.field("transactionId", subject?.transaction.text)
    if let coordinates {
      json.field(
        "record",
        object: { json in
          json.field("topic", coordinates.topic)
          json.field("partition", Int64(coordinates.partition))
          json.field("offset", coordinates.offset)
        })
    }
    json.field("since", rfc3339: since)
    json.field("ageMilliseconds", ageMilliseconds)
    json.field("explanation", explanation)
  }
}

extension Fields {
  fileprivate func count(_ field: StaticString) throws(FieldFailure) -> Int64 {
    guard let number = try integer(field) else { throw failure(field, "is missing") }
    guard number >= 0 else { throw failure(field, "must not be negative") }
    return number
  }

  fileprivate func partition(_ field: StaticString) throws(FieldFailure) -> Int32 {
    guard let number = Int32(exactly: try count(field)) else { throw failure(field, "is out of range") }
    return number
  }
}
