import PurchasesContracts
import PurchasesSQLite

/// One numbered step of the schema. A step that was released is never changed; a change is a new step.
struct Migration {
  let version: Int64
  let name: String
  let sql: String

  static let all: [Migration] = [.first, .second]

  static let newest: Int64 = all.last?.version ?? 0

  /// Brings the schema to this program's version, each step in a transaction of its own.
  ///
  /// - Parameter last: an older version to stop at, as tests of what comes after it do.
  static func run(on connection: SQLiteConnection, upTo last: Int64 = newest) throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS schema_migration (
        version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
      ) STRICT
      """)
    for migration in all where migration.version <= last {
      // The version is read inside, so that two programs that start together don't both apply it.
      try connection.transaction(.immediate) {
        let present = try version(connection)
        guard present <= newest else { throw StoreFailure.newerSchema(present, known: newest) }
        guard present < migration.version else { return }
        try connection.execute(migration.sql)
        try connection.run(
          "INSERT INTO schema_migration (version, name) VALUES (?, ?)", .integer(migration.version),
          .text(migration.name))
      }
    }
  }

  /// Refuses a store that is not of this program's version.
  static func check(_ connection: SQLiteConnection) throws {
    let exists = try connection.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migration'")
    let present = exists == 1 ? try version(connection) : 0
    if present > newest { throw StoreFailure.newerSchema(present, known: newest) }
    if present < newest { throw StoreFailure.notMigrated(present, needed: newest) }
  }

  private static func version(_ connection: SQLiteConnection) throws -> Int64 {
    try connection.integer("SELECT max(version) FROM schema_migration") ?? 0
  }
}
