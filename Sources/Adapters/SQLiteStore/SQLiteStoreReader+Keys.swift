import PurchasesContracts
import PurchasesSQLite

extension SQLiteConnection {
  /// Those of these rows that exist. In one transaction, so that the file is locked once and not once per row.
  func rows(_ keys: [RowKey]) throws -> [RowKey: Row] {
    isInTransaction ? try found(keys) : try transaction(.deferred) { try found(keys) }
  }

  private func found(_ keys: [RowKey]) throws -> [RowKey: Row] {
    var found: [RowKey: Row] = [:]
    for (table, keys) in Dictionary(grouping: keys, by: \.table) {
      let columns = table.columns.map { quoted($0.name) }.joined(separator: ", ")
      let condition = table.key.map { "\(quoted($0.name)) = ?" }.joined(separator: " AND ")
      let statement = try statement("SELECT \(columns) FROM \(quoted(table.name)) WHERE \(condition)")
      defer { statement.reset() }
      for key in keys {
        statement.reset()
        for (index, value) in key.values.enumerated() { try statement.bind(index + 1, value) }
        if try statement.step() { found[key] = Row(key, statement.values(table.columns, from: 0)) }
      }
    }
    return found
  }
}
