import PurchasesContracts
import PurchasesPostgres

/// The statements for one table: their text is made once; each moves any number of rows, which travel as one array per
/// column.
struct TableStatements {
  private let table: Table
  let select: String
  private let put: String
  private let insert: String
  private let merge: String
  private let delete: String
  private let exchange: String

  init(_ table: Table) {
    self.table = table
    let name = quoted(table.name)
    let key = table.key.map { quoted($0.name) }
    let columns = table.columns.map { quoted($0.name) }
    let all = table.key + table.columns

    /// `unnest($1::text[], …) AS w("environment", …)`: the rows that the call brings.
    func rows(_ columns: [Column], _ names: [String]) -> String {
      let arrays = columns.enumerated().map { "$\($0 + 1)::\($1.arrayType)" }.joined(separator: ", ")
      return "unnest(\(arrays)) AS w(\(names.joined(separator: ", ")))"
    }
    let matching = key.map { "t.\($0) = w.\($0)" }.joined(separator: " AND ")
    // Rows are locked in one order by all writers, so that two that meet wait and don't lock each other out.
    let order = table.key.map { "w.\(quoted($0.name))\($0.kind == .text ? #" COLLATE "C""# : "")" }
    let brought = (key + columns).map { "w.\($0)" }.joined(separator: ", ")
    insert = """
      INSERT INTO \(name) AS t (\((key + columns).joined(separator: ", ")))
      SELECT \(brought) FROM \(rows(all, key + columns)) ORDER BY \(order.joined(separator: ", "))
      """
    let onConflict = "\(insert) ON CONFLICT (\(key.joined(separator: ", "))) DO UPDATE SET "
    put = onConflict + columns.map { "\($0) = EXCLUDED.\($0)" }.joined(separator: ", ")
    merge =
      onConflict
      + table.columns.map { column in
        let name = quoted(column.name)
        // LEAST takes no notice of nulls.
        return table.keepsLeast.contains(column.name)
          ? "\(name) = LEAST(t.\(name), EXCLUDED.\(name))" : "\(name) = COALESCE(EXCLUDED.\(name), t.\(name))"
      }.joined(separator: ", ")
    delete = "DELETE FROM \(name) AS t USING \(rows(table.key, key)) WHERE \(matching)"
    let old = table.columns.map { quoted("was_" + $0.name) }
    exchange = """
      UPDATE \(name) AS t SET \(columns.map { "\($0) = w.\($0)" }.joined(separator: ", "))
      FROM \(rows(all + table.columns, key + columns + old))
      WHERE \(matching) AND \(zip(columns, old).map { "t.\($0) IS NOT DISTINCT FROM w.\($1)" }.joined(separator: " AND "))
      """
    let arrays = table.key.enumerated().map { "$\($0 + 1)::\($1.arrayType)" }.joined(separator: ", ")
    select = """
      SELECT w.place, \(columns.map { "t.\($0)" }.joined(separator: ", "))
      FROM unnest(\(arrays)) WITH ORDINALITY AS w(\((key + ["place"]).joined(separator: ", ")))
      JOIN \(name) AS t ON \(matching)
      """
  }

  func step(_ group: WritePlan.Group) -> PostgresConnection.Step {
    let values = group.rows.map(\.values)
    let key = arrays(table.key, group.rows.map(\.key))
    return switch group.kind {
    case .put: .init(put, key + arrays(table.columns, values))
    case .insert: .init(insert, key + arrays(table.columns, values))
    case .merge: .init(merge, key + arrays(table.columns, values))
    case .delete: .init(delete, key)
    case .exchange: .init(exchange, key + arrays(table.columns + table.columns, values))
    }
  }

  /// Finds rows by key; the first column of the answer is the key's place in the list, from 1.
  func step(selecting keys: [RowKey]) -> PostgresConnection.Step {
    .init(select, arrays(table.key, keys.map(\.values)))
  }

  private func arrays(_ columns: [Column], _ rows: [[Value]]) -> [PostgresValue] {
    columns.enumerated().map { index, column in
      switch column.kind {
      case .integer: .int64Array(rows.map { $0[index].integer })
      case .text: .textArray(rows.map { $0[index].text })
      case .bytes: .bytesArray(rows.map { $0[index].bytes })
      }
    }
  }
}

/// Names come from our own tables; quoting is for those that are words of SQL (`partition`, `transaction`).
func quoted(_ name: String) -> String { "\"\(name)\"" }

extension Column {
  fileprivate var arrayType: String { type + "[]" }

  var type: String {
    switch kind {
    case .integer: "bigint"
    case .text: "text"
    case .bytes: "bytea"
    }
  }
}

extension PostgresValue {
  init(_ value: Value) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .int64(value)
    case .text(let value): self = .text(value)
    case .bytes(let value): self = .bytes(value)
    }
  }
}

extension PostgresRow {
  /// The values of these columns, beginning at `first`.
  func values(_ columns: [Column], from first: Int) -> [Value] {
    var values: [Value] = []
    values.reserveCapacity(columns.count)
    for (index, column) in columns.enumerated() {
      switch column.kind {
      case .integer: values.append(int64(first + index).map { .integer($0) } ?? .null)
      case .text: values.append(text(first + index).map { .text($0) } ?? .null)
      case .bytes: values.append(bytes(first + index).map { .bytes($0) } ?? .null)
      }
    }
    return values
  }
}
