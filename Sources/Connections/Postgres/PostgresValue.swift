/// A parameter of a statement. Values travel in PostgreSQL's binary format and never become part of the SQL text.
///
/// The arrays are there for bulk work: `unnest($1::bytea[], $2::bigint[])` moves thousands of rows in one statement.
public enum PostgresValue: Sendable, Equatable {
  case null
  /// `boolean`
  case bool(Bool)
  /// `bigint`
  case int64(Int64)
  /// `text`. The server refuses U+0000 in text (SQLSTATE 22021).
  case text(String)
  /// `bytea`
  case bytes([UInt8])
  /// `bigint[]`
  case int64Array([Int64?])
  /// `text[]`
  case textArray([String?])
  /// `bytea[]`
  case bytesArray([[UInt8]?])
}

extension PostgresValue {
  /// The server's object id of the type; 0 leaves it to the server to tell from the statement.
  var typeID: UInt32 {
    switch self {
    case .null: 0
    case .bool: TypeID.bool
    case .int64: TypeID.int64
    case .text: TypeID.text
    case .bytes: TypeID.bytes
    case .int64Array: TypeID.int64Array
    case .textArray: TypeID.textArray
    case .bytesArray: TypeID.bytesArray
    }
  }
}

/// Object ids of built-in types: the same in every PostgreSQL.
enum TypeID {
  static let bool: UInt32 = 16
  static let bytes: UInt32 = 17
  static let int64: UInt32 = 20
  static let int16: UInt32 = 21
  static let int32: UInt32 = 23
  static let text: UInt32 = 25
  static let bytesArray: UInt32 = 1001
  static let textArray: UInt32 = 1009
  static let int64Array: UInt32 = 1016
}

/// All parameters of one call, encoded back to back, so that a batch of thousands costs one buffer.
struct EncodedParameters {
  private(set) var buffer: [UInt8] = []
  private(set) var offsets: [Int?] = []
  private(set) var lengths: [Int32] = []

  init(_ values: [PostgresValue]) {
    buffer.reserveCapacity(values.reduce(0) { $0 + Self.size(of: $1) })
    offsets.reserveCapacity(values.count)
    lengths.reserveCapacity(values.count)
    for value in values {
      let start = buffer.count
      append(value)
      let isNull = value == .null
      offsets.append(isNull ? nil : start)
      lengths.append(isNull ? 0 : Int32(buffer.count - start))
    }
  }

  /// An upper bound that is exact for all but short texts.
  private static func size(of value: PostgresValue) -> Int {
    switch value {
    case .null: 0
    case .bool: 1
    case .int64: 8
    case .text(let text): text.utf8.count
    case .bytes(let bytes): bytes.count
    case .int64Array(let items): 20 + items.count * 12
    case .textArray(let items): items.reduce(20) { $0 + 4 + ($1?.utf8.count ?? 0) }
    case .bytesArray(let items): items.reduce(20) { $0 + 4 + ($1?.count ?? 0) }
    }
  }

  private mutating func append(_ value: PostgresValue) {
    switch value {
    case .null: break
    case .bool(let flag): buffer.append(flag ? 1 : 0)
    case .int64(let number): append(number)
    case .text(let text): buffer.append(contentsOf: text.utf8)
    case .bytes(let bytes): buffer.append(contentsOf: bytes)
    case .int64Array(let items):
      appendArrayHeader(count: items.count, element: TypeID.int64)
      for item in items {
        guard let item else {
          append(Int32(-1))
          continue
        }
        append(Int32(8))
        append(item)
      }
    case .textArray(let items):
      appendArrayHeader(count: items.count, element: TypeID.text)
      for item in items {
        guard let item else {
          append(Int32(-1))
          continue
        }
        append(Int32(item.utf8.count))
        buffer.append(contentsOf: item.utf8)
      }
    case .bytesArray(let items):
      appendArrayHeader(count: items.count, element: TypeID.bytes)
      for item in items {
        guard let item else {
          append(Int32(-1))
          continue
        }
        append(Int32(item.count))
        buffer.append(contentsOf: item)
      }
    }
  }

  /// PostgreSQL's array format: dimensions, "has nulls" (the server works it out itself), element type, then length and
  /// lower bound of the one dimension. An empty array has no dimension.
  private mutating func appendArrayHeader(count: Int, element: UInt32) {
    append(Int32(count == 0 ? 0 : 1))
    append(Int32(0))
    append(Int32(bitPattern: element))
    if count > 0 {
      append(Int32(count))
      append(Int32(1))
    }
  }

  private mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.bigEndian) { buffer.append(contentsOf: $0) }
  }
}
