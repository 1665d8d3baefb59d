import PurchasesCore

/// An event's CloudEvents 1.0 attributes in the Kafka protocol binding (binary mode), and our four extensions that name
/// the record it was derived from.
public struct Envelope: Sendable, Hashable {
  public var id: String
  public var source: String
  public var type: EventType
  public var version: Int
  public var subject: String?
  public var time: Instant?
  public var traceparent: String?
  public var origin: Origin?

  /// The record that an event was derived from, and which of that record's outputs this is.
  public struct Origin: Sendable, Hashable {
    public var coordinates: Coordinates
    public var index: Int
    public var count: Int

    public init(coordinates: Coordinates, index: Int, count: Int) {
      self.coordinates = coordinates
      self.index = index
      self.count = count
    }
  }

  public init(
    id: String, source: String, type: EventType, version: Int? = nil, subject: String? = nil, time: Instant? = nil,
    traceparent: String? = nil, origin: Origin? = nil
  ) {
    self.id = id
    self.source = source
    self.type = type
    self.version = version ?? type.version
    self.subject = subject
    self.time = time
    self.traceparent = traceparent
    self.origin = origin
  }
}

/// Why a record's headers are not an event of ours. The reason names the header, never its content beyond a type name.
public enum EnvelopeFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case missing(String)
  case malformed(String)
  case unknownType(String)
  case newerVersion(EventType, Int)

  public var description: String {
    switch self {
    case .missing(let header): "header \(header) is missing"
    case .malformed(let header): "header \(header) is malformed"
    case .unknownType(let type): "type \(type) is not one of this pipeline's"
    case .newerVersion(let type, let version):
      "type \(type.rawValue) in version \(version) is newer than this program (\(type.version))"
    }
  }
}

extension Envelope {
  public static let contentType = "application/json"

  public var headers: [Header] {
    var headers = [
      Header("content-type", Self.contentType), Header("ce_specversion", "1.0"), Header("ce_id", id),
      Header("ce_source", source),
      Header("ce_type", version == type.version ? type.wireName : "\(type.rawValue).v\(version)"),
    ]
    if let subject { headers.append(Header("ce_subject", subject)) }
    // A record of another producer may carry a timestamp that no calendar of four digits holds: better no time than one
    // that nobody can read.
    if let time, time.hasFourDigitYear { headers.append(Header("ce_time", time.rfc3339)) }
    if let traceparent { headers.append(Header("ce_traceparent", traceparent)) }
    if let origin {
      headers.append(Header("ce_origintopic", origin.coordinates.topic))
      headers.append(Header("ce_originpartition", String(origin.coordinates.partition)))
      headers.append(Header("ce_originoffset", String(origin.coordinates.offset)))
      headers.append(Header("ce_outputindex", String(origin.index)))
      headers.append(Header("ce_outputcount", String(origin.count)))
    }
    return headers
  }

  /// Longer attributes than these are nobody's honest event.
  static let maximumAttributeBytes = 1024
  /// CloudEvents' own, ours, and room for other people's extensions.
  static let maximumAttributes = 64

  public init(reading record: Record) throws(EnvelopeFailure) {
    // A dozen headers at most in an honest event: looking through them is quicker than a dictionary of them.
    var found: [(name: String, text: String)] = []
    found.reserveCapacity(record.headers.count)
    func text(_ name: String) -> String? { found.first { $0.name == name }?.text }
    for header in record.headers where header.name.hasPrefix("ce_") || header.name == "content-type" {
      guard found.count < Self.maximumAttributes, text(header.name) == nil, let value = header.text,
        value.utf8.count <= Self.maximumAttributeBytes, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
      else { throw .malformed(header.name) }
      found.append((header.name, value))
    }
    func required(_ name: String) throws(EnvelopeFailure) -> String {
      guard let value = text(name) else { throw .missing(name) }
      guard !value.isEmpty else { throw .malformed(name) }
      return value
    }
    guard try required("ce_specversion") == "1.0" else { throw .malformed("ce_specversion") }
    let id = try required("ce_id")
    let source = try required("ce_source")
    let wire = try required("ce_type")
    if let content = text("content-type"), !content.hasPrefix(Self.contentType) { throw .malformed("content-type") }
    let type: EventType
    let version: Int
    switch EventType.read(wire) {
    case .known(let known, let read): (type, version) = (known, read)
    case .newer(let known, let read): throw .newerVersion(known, read)
    case .unknown:
      throw .unknownType(String(wire.unicodeScalars.prefix(64).map { $0.value < 0x20 ? "?" : Character($0) }))
    }
    self.init(id: id, source: source, type: type, version: version)
    subject = text("ce_subject")
    traceparent = text("ce_traceparent")
    if let value = text("ce_time") {
      guard let instant = Instant(rfc3339: value) else { throw .malformed("ce_time") }
      time = instant
    }
    if let topic = text("ce_origintopic") {
      func number<T: FixedWidthInteger>(_ name: String) throws(EnvelopeFailure) -> T {
        guard let value = T(try required(name)), value >= 0 else { throw .malformed(name) }
        return value
      }
      origin = Origin(
        coordinates: Coordinates(
          topic: topic, partition: try number("ce_originpartition"), offset: try number("ce_originoffset")),
        index: try number("ce_outputindex"), count: try number("ce_outputcount"))
    }
  }
}
