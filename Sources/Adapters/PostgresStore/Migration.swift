import PurchasesContracts
import PurchasesPostgres

/// One numbered step of the schema. A step that was released is never changed; a change is a new step.
struct Migration {
  let version: Int64
  let name: String
  let sql: String

  static let all: [Migration] = [.first, .second]

  static let newest: Int64 = all.last?.version ?? 0

  /// Held (mixed with the schema's name) while migrating, so that programs that start together don't both do it. Any
  /// number would do; this one is ours.
  private static let lock: Int64 = 0x7075_7263_6861_7365

  /// Brings the schema to this program's version, each step in a transaction of its own.
  ///
  /// - Parameter last: an older version to stop at, as tests of what comes after it do.
  static func run(on connection: PostgresConnection, upTo last: Int64 = newest) throws {
    // Ends with the connection, which lives for this only.
    try connection.query(
      "SELECT pg_advisory_lock($1::bigint # hashtextextended(current_schema()::text, 0))", [.int64(lock)])
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS schema_migration (
        version bigint PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
      )
      """)
    for migration in all where migration.version <= last {
      let present = try version(connection)
      guard present <= newest else { throw StoreFailure.newerSchema(present, known: newest) }
      guard present < migration.version else { continue }
      try connection.transaction { () throws(PostgresError) in
        try connection.execute(migration.sql)
        try connection.query(
          "INSERT INTO schema_migration (version, name) VALUES ($1, $2)",
          [.int64(migration.version), .text(migration.name)])
      }
    }
  }

  /// Refuses a store that is not of this program's version.
  static func check(_ connection: PostgresConnection) throws {
    let exists = try connection.query("SELECT to_regclass('schema_migration') IS NOT NULL")[0].bool(0)
    let present = exists == true ? try version(connection) : 0
    if present > newest { throw StoreFailure.newerSchema(present, known: newest) }
    if present < newest { throw StoreFailure.notMigrated(present, needed: newest) }
  }

  private static func version(_ connection: PostgresConnection) throws -> Int64 {
    try connection.query("SELECT max(version) FROM schema_migration")[0].int64(0) ?? 0
  }
}
