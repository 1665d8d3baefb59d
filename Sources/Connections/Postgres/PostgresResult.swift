import CPurchasesPostgres

/// The rows that a statement answered, in binary format.
///
/// `@unchecked Sendable`: a PGresult is finished before it is wrapped, is never written to afterwards, libpq's readers of
/// it are pure, and only `deinit` frees it.
public final class PostgresResult: @unchecked Sendable {
  private let handle: OpaquePointer

  /// Takes over the handle.
  init(_ handle: OpaquePointer) {
    self.handle = handle
  }

  deinit {
    PQclear(handle)
  }

  /// Number of rows.
  public var count: Int { Int(PQntuples(handle)) }

  public var isEmpty: Bool { count == 0 }

  public var columnCount: Int { Int(PQnfields(handle)) }

  /// How many rows an INSERT, UPDATE or DELETE touched; 0 for anything else.
  public var affected: Int {
    guard let text = PQcmdTuples(handle) else { return 0 }
    return Int(String(cString: text)) ?? 0
  }

  public subscript(row: Int) -> PostgresRow {
    precondition(row >= 0 && row < count, "no row \(row) in a result of \(count)")
    return PostgresRow(result: self, row: Int32(row))
  }

  fileprivate func withValue<Value>(
    _ row: Int32, _ column: Int, _ body: (UnsafeRawBufferPointer, UInt32) -> Value
  ) -> Value? {
    let column = Int32(column)
    precondition(column >= 0 && column < PQnfields(handle), "no column \(column)")
    guard PQgetisnull(handle, row, column) == 0 else { return nil }
    let bytes = UnsafeRawBufferPointer(
      start: PQgetvalue(handle, row, column), count: Int(PQgetlength(handle, row, column)))
    return body(bytes, PQftype(handle, column))
  }
}

extension PostgresResult: Sequence {
  public struct Iterator: IteratorProtocol {
    let result: PostgresResult
    let count: Int
    var position: Int = 0

    public mutating func next() -> PostgresRow? {
      guard position < count else { return nil }
      defer { position += 1 }
      return PostgresRow(result: result, row: Int32(position))
    }
  }

  public func makeIterator() -> Iterator { Iterator(result: self, count: count) }
}

/// One row. Columns are told by position; SQL NULL is nil. Asking a column for a type that it does not have traps: the
/// statement is ours and names its types.
public struct PostgresRow: Sendable {
  let result: PostgresResult
  let row: Int32

  public func isNull(_ column: Int) -> Bool {
    result.withValue(row, column) { _, _ in true } == nil
  }

  /// `smallint`, `integer` or `bigint`
  public func int64(_ column: Int) -> Int64? {
    result.withValue(row, column) { bytes, type in
      switch type {
      case TypeID.int64: Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
      case TypeID.int32: Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
      case TypeID.int16: Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
      default: preconditionFailure("column \(column) is of type \(type), not an integer")
      }
    }
  }

  public func bool(_ column: Int) -> Bool? {
    result.withValue(row, column) { bytes, type in
      precondition(type == TypeID.bool, "column \(column) is of type \(type), not boolean")
      return bytes[0] != 0
    }
  }

  /// Any type whose binary format is its text: `text`, `varchar`, `name`.
  public func text(_ column: Int) -> String? {
    result.withValue(row, column) { bytes, type in
      precondition(
        type != TypeID.int64 && type != TypeID.int32 && type != TypeID.bool, "column \(column) is not text")
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// The binary format of any type, which for `bytea` are the bytes themselves.
  public func bytes(_ column: Int) -> [UInt8]? {
    result.withValue(row, column) { bytes, _ in [UInt8](bytes) }
  }
}
