import Glibc
import PurchasesContracts
import PurchasesPostgres
import PurchasesTestKit
import Synchronization
import Testing

@testable import PurchasesPostgresStore

/// A server of `Scripts/postgres`, or any other that lets us create schemas.
let serverURL: String? = getenv("PURCHASES_TEST_POSTGRES").map { String(cString: $0) }

/// A schema of its own in the server's database.
final class PostgresDatabase: StoreDatabase {
  private static let made = Mutex(0)

  let schema: String
  let url: String

  init() throws {
    let number = Self.made.withLock { made in
      made += 1
      return made
    }
    let server = try #require(serverURL)
    schema = "store_\(getpid())_\(number)"
    url = server + (server.contains("?") ? "&" : "?") + "options=-csearch_path%3D\(schema)"
    let connection = try PostgresConnection(server)
    defer { connection.close() }
    try connection.execute("CREATE SCHEMA \(schema)")
  }

  func open() throws -> any Store { PostgresStore(url: url) }

  func migrate(upTo version: Int64) throws {
    let connection = try PostgresConnection(url)
    defer { connection.close() }
    try Migration.run(on: connection, upTo: version)
  }

  func sql(_ script: String) throws {
    let connection = try PostgresConnection(url)
    defer { connection.close() }
    try connection.execute(script)
  }

  func text(_ query: String) throws -> String {
    // Times as UTC, wherever the server stands.
    let connection = try PostgresConnection(url, options: .init(settings: [("TimeZone", "UTC")]))
    defer { connection.close() }
    return try #require(try connection.query(query)[0].text(0))
  }

  func hold(_ script: String) throws -> any HeldTransaction {
    let connection = try PostgresConnection(url)
    try connection.begin()
    try connection.execute(script)
    return Held(connection)
  }

  func columns(of table: String) throws -> [ColumnDescription] {
    let connection = try PostgresConnection(url)
    defer { connection.close() }
    let rows = try connection.query(
      """
      SELECT c.attname::text, format_type(c.atttypid, NULL), NOT c.attnotnull,
        coalesce(array_position(i.indkey::smallint[], c.attnum), -1)::bigint
      FROM pg_attribute AS c
      JOIN pg_index AS i ON i.indrelid = c.attrelid AND i.indisprimary
      WHERE c.attrelid = to_regclass($1) AND c.attnum > 0 ORDER BY c.attnum
      """, [.text(table)])
    let kinds: [String: Column.Kind] = ["bigint": .integer, "text": .text, "bytea": .bytes]
    return try rows.map { row in
      ColumnDescription(
        name: try #require(row.text(0)), kind: try #require(kinds[row.text(1) ?? ""]),
        isOptional: row.bool(2) == true, keyPlace: Int(try #require(row.int64(3))) + 1)
    }
  }

  var emptyDocument: String { #"'\x7b7d'"# }

  func remove() {
    try? sql("DROP SCHEMA \(schema) CASCADE")
  }

  private final class Held: HeldTransaction {
    private let connection: PostgresConnection

    init(_ connection: PostgresConnection) { self.connection = connection }

    func commit() throws {
      try connection.commit()
      connection.close()
    }

    func drop() { connection.close() }
  }
}
