import CPurchasesSQLite

/// One compiled statement. Belongs to its connection's thread (see ``SQLiteConnection``); parameters count from 1 and
/// columns from 0, as in SQLite.
///
/// `@unchecked Sendable`: the pointer is only ever used under the connection's contract of one thread at a time, and the
/// shared handle keeps the database open until the statement is finalised.
public final class SQLiteStatement: @unchecked Sendable {
  private let handle: SQLiteHandle
  private let statement: OpaquePointer

  init(handle: SQLiteHandle, sql: String, persistent: Bool) throws(SQLiteError) {
    var compiled: OpaquePointer?
    var hasMore = false
    var text = sql
    let flags = persistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let result = handle.exclusively {
      text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { characters in
          var tail: UnsafePointer<CChar>?
          let result = sqlite3_prepare_v3(
            handle.pointer, characters.baseAddress, Int32(characters.count), flags, &compiled, &tail)
          if let tail, let start = characters.baseAddress {
            let rest = characters[(tail - start)...]
            hasMore = rest.contains { !($0 == 0x20 || $0 == 0x0a || $0 == 0x0d || $0 == 0x09 || $0 == 0x3b) }
          }
          return result
        }
      }
    }
    try handle.check(result)
    guard let compiled, !hasMore else {
      sqlite3_finalize(compiled)
      throw SQLiteError(extendedCode: SQLITE_MISUSE, message: "prepare takes exactly one statement; use execute")
    }
    self.handle = handle
    self.statement = compiled
  }

  deinit { sqlite3_finalize(statement) }

  // MARK: parameters

  public func bind(_ index: Int, _ value: Int64) throws(SQLiteError) {
    try handle.check(sqlite3_bind_int64(statement, Int32(index), value))
  }

  public func bind(_ index: Int, real value: Double) throws(SQLiteError) {
    try handle.check(sqlite3_bind_double(statement, Int32(index), value))
  }

  public func bind(_ index: Int, _ value: String) throws(SQLiteError) {
    var value = value
    let result = value.withUTF8 { bytes in
      // An empty buffer has no address, and a null pointer would bind NULL instead of an empty text.
      bytes.isEmpty
        ? purchases_sqlite_bind_text(statement, Int32(index), "", 0)
        : purchases_sqlite_bind_text(statement, Int32(index), bytes.baseAddress, UInt64(bytes.count))
    }
    try handle.check(result)
  }

  public func bind(_ index: Int, _ value: [UInt8]) throws(SQLiteError) {
    let result = value.withUnsafeBytes { bytes in
      bytes.isEmpty
        ? sqlite3_bind_zeroblob(statement, Int32(index), 0)
        : purchases_sqlite_bind_blob(statement, Int32(index), bytes.baseAddress, UInt64(bytes.count))
    }
    try handle.check(result)
  }

  public func bindNull(_ index: Int) throws(SQLiteError) {
    try handle.check(sqlite3_bind_null(statement, Int32(index)))
  }

  public func bind(_ index: Int, _ value: Int64?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }

  public func bind(_ index: Int, _ value: String?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }

  public func bind(_ index: Int, _ value: [UInt8]?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }

  public func bind(_ index: Int, value: SQLiteValue) throws(SQLiteError) {
    switch value {
    case .null: try bindNull(index)
    case .integer(let value): try bind(index, value)
    case .real(let value): try bind(index, real: value)
    case .text(let value): try bind(index, value)
    case .blob(let value): try bind(index, value)
    }
  }

  /// Binds the values to parameters 1, 2, 3 and so on.
  public func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
    for (position, value) in values.enumerated() { try bind(position + 1, value: value) }
  }

  public func clearBindings() { sqlite3_clear_bindings(statement) }

  // MARK: running

  /// Moves to the next row; false when there is none. After an error the statement is reset.
  public func step() throws(SQLiteError) -> Bool {
    let result = handle.exclusively { sqlite3_step(statement) }
    switch result {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let error = handle.failure(result)
      sqlite3_reset(statement)
      throw error
    }
  }

  /// Steps to the end and resets, keeping the bindings.
  public func run() throws(SQLiteError) {
    while try step() {}
    sqlite3_reset(statement)
  }

  /// Runs to the end and resets with three blobs bound to `index` and the two parameters after it. They are borrowed for
  /// the run instead of copied, and unbound before this returns: for bulk inserts, where the copies would be the cost.
  public func run(
    borrowing first: [UInt8]?, _ second: [UInt8]?, _ third: [UInt8]?, from index: Int
  ) throws(SQLiteError) {
    let result = borrowed(first, index) {
      borrowed(second, index + 1) {
        borrowed(third, index + 2) {
          var result = handle.exclusively { sqlite3_step(statement) }
          while result == SQLITE_ROW { result = handle.exclusively { sqlite3_step(statement) } }
          return result
        }
      }
    }
    let failure = result == SQLITE_DONE ? nil : handle.failure(result)
    sqlite3_reset(statement)
    for offset in 0..<3 { sqlite3_bind_null(statement, Int32(index + offset)) }
    if let failure { throw failure }
  }

  @inline(__always)
  private func borrowed(_ value: [UInt8]?, _ index: Int, _ body: () -> Int32) -> Int32 {
    guard let value else {
      let bound = sqlite3_bind_null(statement, Int32(index))
      return bound == SQLITE_OK ? body() : bound
    }
    return value.withUnsafeBytes { bytes in
      let bound =
        bytes.isEmpty
        ? sqlite3_bind_zeroblob(statement, Int32(index), 0)
        : purchases_sqlite_bind_blob_borrowed(statement, Int32(index), bytes.baseAddress, UInt64(bytes.count))
      return bound == SQLITE_OK ? body() : bound
    }
  }

  /// Ends the current run and, with it, the read lock it held.
  public func reset() { sqlite3_reset(statement) }

  /// Binds the values, hands each row to the body and resets, also when the body throws.
  public func eachRow(_ values: SQLiteValue..., row body: (SQLiteStatement) throws -> Void) throws {
    reset()
    defer { reset() }
    try bind(values)
    while try step() { try body(self) }
  }

  // MARK: columns of the current row

  public var columnCount: Int { Int(sqlite3_column_count(statement)) }

  public func isNull(_ column: Int) -> Bool { sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL }

  public func int64(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

  public func double(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

  /// The column as text; empty for NULL. Bytes that are no UTF-8 become replacement characters.
  public func string(_ column: Int) -> String {
    guard let text = sqlite3_column_text(statement, Int32(column)) else { return "" }
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  /// The column's bytes; empty for NULL.
  public func bytes(_ column: Int) -> [UInt8] {
    guard let blob = sqlite3_column_blob(statement, Int32(column)) else { return [] }
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return [UInt8](UnsafeRawBufferPointer(start: blob, count: count))
  }

  public func optionalInt64(_ column: Int) -> Int64? { isNull(column) ? nil : int64(column) }
  public func optionalString(_ column: Int) -> String? { isNull(column) ? nil : string(column) }
  public func optionalBytes(_ column: Int) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

  public func value(_ column: Int) -> SQLiteValue {
    switch sqlite3_column_type(statement, Int32(column)) {
    case SQLITE_INTEGER: .integer(int64(column))
    case SQLITE_FLOAT: .real(double(column))
    case SQLITE_TEXT: .text(string(column))
    case SQLITE_BLOB: .blob(bytes(column))
    default: .null
    }
  }
}
