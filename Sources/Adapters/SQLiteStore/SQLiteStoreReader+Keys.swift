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
      let statements = TableStatements(table, self)
      for key in keys {
        if let row = try statements.row(key) { found[key] = row }
      }
    }
    return found
  }
}
