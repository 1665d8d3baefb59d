import Glibc
import PurchasesContracts
import PurchasesSQLite
import PurchasesTestKit
import Testing

@testable import PurchasesSQLiteStore

@Suite struct SQLiteStoreTests {
  @Test("the store suite", arguments: storeConformance)
  func conformance(_ storeCase: StoreCase) throws {
    let database = try SQLiteDatabase()
    defer { database.remove() }
    try storeCase.run(database)
  }

  @Test("what was acknowledged outlives kill -9, and nothing else of a batch does")
  func kills() throws {
    let database = try SQLiteDatabase()
    defer { database.remove() }
    let seed = UInt64.random(in: 0...UInt64.max)
    print("kills of the SQLite store: seed \(seed)")
    try killStoreWriters(database, at: database.path, rounds: 12, seed: seed)
    let connection = try SQLiteConnection(path: database.path)
    defer { connection.close() }
    #expect(try connection.scalar("PRAGMA integrity_check") == .text("ok"))
  }
}

extension SQLiteStoreTests {
  @Test("a store whose file is gone takes and gives nothing more")
  func deleted() throws {
    let database = try SQLiteDatabase()
    defer { database.remove() }
    let store = SQLiteStore(path: database.path)
    try store.migrate()
    let stage = try store.stage("tests", group: "g")
    defer { stage.close() }
    let reader = try store.reader()
    defer { reader.close() }
    try reader.probe()
    unlink(database.path)
    let key = RowKey(.alias, [.text("Sandbox"), .text("a")])
    for work in [
      { () throws(StoreFailure) in try stage.amend([.put(Row(key, [.text("b")]))], epochs: [:]) },
      { () throws(StoreFailure) in _ = try stage.claim([TopicPartition("t", 0)]) },
      { () throws(StoreFailure) in try reader.probe() },
    ] {
      do throws(StoreFailure) {
        try work()
        Issue.record("it went on")
      } catch { #expect(error.kind == .refused) }
    }
  }
}

/// A file in a folder of its own.
final class SQLiteDatabase: StoreDatabase {
  let folder: String
  var path: String { folder + "/store.sqlite" }

  init() throws {
    var template = Array("/tmp/purchases-store.XXXXXX".utf8CString)
    folder = try template.withUnsafeMutableBufferPointer { buffer in
      let start = try #require(buffer.baseAddress)
      return String(cString: try #require(mkdtemp(start)))
    }
  }

  func open() throws -> any Store { SQLiteStore(path: path) }

  func migrate(upTo version: Int64) throws {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    try Migration.run(on: connection, upTo: version)
  }

  func sql(_ script: String) throws {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    try connection.execute(script)
  }

  func text(_ query: String) throws -> String {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    guard case .text(let text) = try connection.scalar(query) else { throw Unmet("no text from \(query)") }
    return text
  }

  func hold(_ script: String) throws -> any HeldTransaction {
    let connection = try SQLiteConnection(path: path)
    try connection.execute("BEGIN")
    // The first row is enough to hold a reader's place.
    _ = try connection.statement(script).step()
    return Held(connection)
  }

  func columns(of table: String) throws -> [ColumnDescription] {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    var columns: [ColumnDescription] = []
    try connection.statement(#"SELECT name, type, "notnull", pk FROM pragma_table_info(?)"#).eachRow(.text(table)) {
      row in
      let kinds: [String: Column.Kind] = ["INTEGER": .integer, "TEXT": .text, "BLOB": .bytes]
      columns.append(
        ColumnDescription(
          name: row.string(0), kind: try #require(kinds[row.string(1)]), isOptional: row.int64(2) == 0,
          keyPlace: Int(row.int64(3))))
    }
    return columns
  }

  var emptyDocument: String { "X'7b7d'" }

  func remove() {
    for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
    rmdir(folder)
  }

  private final class Held: HeldTransaction {
    private let connection: SQLiteConnection

    init(_ connection: SQLiteConnection) { self.connection = connection }

    func commit() throws {
      try connection.execute("COMMIT")
      connection.close()
    }

    func drop() { connection.close() }
  }
}
