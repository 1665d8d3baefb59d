/// A value of one of SQLite's five storage classes.
public enum SQLiteValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

extension SQLiteValue: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByNilLiteral {
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(stringLiteral value: String) { self = .text(value) }
  public init(nilLiteral: ()) { self = .null }

  public init(_ value: Int64?) { self = value.map(SQLiteValue.integer) ?? .null }
  public init(_ value: String?) { self = value.map(SQLiteValue.text) ?? .null }
  public init(_ value: [UInt8]?) { self = value.map(SQLiteValue.blob) ?? .null }
}
