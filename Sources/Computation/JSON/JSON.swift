/// A JSON value held by itself, for what is built, kept or compared. To read a few fields of a document use
/// ``JSONDocument``, which copies nothing.
public enum JSON: Sendable, Hashable {
  case null
  case bool(Bool)
  /// A number written as a plain integer within the range of `Int64`.
  case integer(Int64)
  /// Any other number as it was written, so that it goes back out with the same digits. Must be a number by RFC 8259.
  case number(String)
  case string(String)
  case array([JSON])
  case object(JSONObject)

  /// Reads a whole document; same rules as ``JSONDocument/init(parsing:)``.
  public init(parsing bytes: [UInt8]) throws(JSONError) {
    self = try JSONDocument(parsing: bytes).root.json
  }

  public var isNull: Bool { self == .null }

  public var bool: Bool? {
    if case .bool(let value) = self { value } else { nil }
  }

  public var int64: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  public var string: String? {
    if case .string(let value) = self { value } else { nil }
  }

  public var array: [JSON]? {
    if case .array(let value) = self { value } else { nil }
  }

  public var object: JSONObject? {
    if case .object(let value) = self { value } else { nil }
  }

  /// The member of an object; nil if it is absent or this is no object.
  public subscript(_ name: String) -> JSON? { object?[name] }

  /// Compact serialisation, members in their own order.
  public var bytes: [UInt8] {
    var writer = JSONWriter()
    writer.value(self)
    return writer.bytes
  }

  /// Compact serialisation with the members of each object sorted by the bytes of their names: the form to digest.
  /// Two values that differ only in the order of members agree; numbers that are written differently do not.
  public var canonicalBytes: [UInt8] { sortedByName.bytes }

  private var sortedByName: JSON {
    switch self {
    case .array(let elements): .array(elements.map(\.sortedByName))
    case .object(let object):
      .object(
        JSONObject(
          object.members.map { ($0.name, $0.value.sortedByName) }
            .sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }))
    default: self
    }
  }
}
