import PurchasesContracts
import PurchasesSQLite

/// The statements for one table on one connection: their text is made once, they are compiled on first use and kept.
final class TableStatements {
  private let connection: SQLiteConnection
  private let table: Table
  private let quotedName: String
  private var compiled: [WritePlan.Kind: SQLiteStatement] = [:]
  private var selecting: SQLiteStatement?

  init(_ table: Table, _ connection: SQLiteConnection) {
    self.table = table
    self.connection = connection
    quotedName = quoted(table.name)
  }

  /// Applies one group of a plan row by row.
  /// - Throws: `conflict` where an insert met a row that is there.
  func apply(_ group: WritePlan.Group) throws {
    let statement = try statement(group.kind)
    for row in group.rows {
      do throws(SQLiteError) {
        var index = 1
        for value in row.key {
          try statement.bind(index, value)
          index += 1
        }
        for value in row.values {
          try statement.bind(index, value)
          index += 1
        }
        try statement.run()
      } catch {
        if group.kind == .insert, error.isUniqueViolation { throw StoreFailure.conflict(table) }
        throw error
      }
    }
  }

  func row(_ key: RowKey) throws -> Row? {
    let statement = try select()
    defer { statement.reset() }
    var index = 1
    for value in key.values {
      try statement.bind(index, value)
      index += 1
    }
    guard try statement.step() else { return nil }
    return Row(key, statement.values(table.columns, from: 0))
  }

  private func select() throws(SQLiteError) -> SQLiteStatement {
    if let selecting { return selecting }
    let columns = table.columns.map { quoted($0.name) }.joined(separator: ", ")
    let made = try connection.statement("SELECT \(columns) FROM \(quotedName) WHERE \(matchesKey)")
    selecting = made
    return made
  }

  private func statement(_ kind: WritePlan.Kind) throws(SQLiteError) -> SQLiteStatement {
    if let known = compiled[kind] { return known }
    let made = try connection.prepare(sql(kind))
    compiled[kind] = made
    return made
  }

  private func sql(_ kind: WritePlan.Kind) -> String {
    let key = table.key.map { quoted($0.name) }
    let columns = table.columns.map { quoted($0.name) }
    let places = Array(repeating: "?", count: key.count + columns.count).joined(separator: ", ")
    let insert = "INSERT INTO \(quotedName) (\((key + columns).joined(separator: ", "))) VALUES (\(places))"
    let onConflict = " ON CONFLICT (\(key.joined(separator: ", "))) DO UPDATE SET "
    switch kind {
    case .insert: return insert
    case .put: return insert + onConflict + columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    case .merge: return insert + onConflict + table.columns.map(merged).joined(separator: ", ")
    case .exchange:
      // Numbered, since the values come in the order key, new, old.
      func numbered(_ names: [String], _ comparison: String, from first: Int) -> [String] {
        names.enumerated().map { index, name in "\(name) \(comparison) ?\(first + index)" }
      }
      let set = numbered(columns, "=", from: key.count + 1).joined(separator: ", ")
      let unchanged = numbered(key, "=", from: 1) + numbered(columns, "IS", from: key.count + columns.count + 1)
      return "UPDATE \(quotedName) SET \(set) WHERE \(unchanged.joined(separator: " AND "))"
    case .delete: return "DELETE FROM \(quotedName) WHERE \(matchesKey)"
    }
  }

  private var matchesKey: String {
    table.key.map { "\(quoted($0.name)) = ?" }.joined(separator: " AND ")
  }

  private func merged(_ column: Column) -> String {
    let name = quoted(column.name)
    let old = "\(quotedName).\(name)"
    let new = "excluded.\(name)"
    // min() of SQLite is null where one of its arguments is.
    return table.keepsLeast.contains(column.name)
      ? "\(name) = coalesce(min(\(old), \(new)), \(old), \(new))"
      : "\(name) = coalesce(\(new), \(old))"
  }
}

/// Names come from our own tables; quoting is for those that are words of SQL (`partition`, `transaction`).
func quoted(_ name: String) -> String { "\"\(name)\"" }

extension SQLiteStatement {
  func bind(_ index: Int, _ value: Value) throws(SQLiteError) {
    switch value {
    case .null: try bindNull(index)
    case .integer(let value): try bind(index, value)
    case .text(let value): try bind(index, value)
    case .bytes(let value): try bind(index, value)
    }
  }

  /// The values of these columns of the current row, beginning at `first`.
  func values(_ columns: [Column], from first: Int) -> [Value] {
    var values: [Value] = []
    values.reserveCapacity(columns.count)
    for (index, column) in columns.enumerated() {
      let place = first + index
      if isNull(place) {
        values.append(.null)
      } else {
        switch column.kind {
        case .integer: values.append(.integer(int64(place)))
        case .text: values.append(.text(string(place)))
        case .bytes: values.append(.bytes(bytes(place)))
        }
      }
    }
    return values
  }
}
