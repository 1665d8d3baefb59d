import Foundation
import PurchasesSQLite
import Testing

@Suite struct SQLiteConnectionTests {
  let folder: TemporaryFolder
  let connection: SQLiteConnection

  init() throws {
    folder = try TemporaryFolder()
    connection = try SQLiteConnection(path: folder.file("a.db"))
  }

  private func failure(_ body: () throws -> Void) -> SQLiteError? {
    do {
      try body()
      return nil
    } catch {
      return error as? SQLiteError
    }
  }

  @Test func opensWithTheSafeDefaults() throws {
    #expect(try connection.scalar("PRAGMA journal_mode") == "wal")
    #expect(try connection.scalar("PRAGMA synchronous") == 2)
    #expect(try connection.scalar("PRAGMA foreign_keys") == 1)
  }

  @Test func keepsEveryValueExactly() throws {
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    let values: [SQLiteValue] = [
      .null, .integer(.min), .integer(.max), .real(0.1), .text(""), .text("a\0b é 🛒"), .blob([]), .blob([0, 255, 0]),
      .blob([UInt8](repeating: 7, count: 3_000_000)),
    ]
    for (index, value) in values.enumerated() {
      try connection.run("INSERT INTO t VALUES(?,?)", .integer(Int64(index)), value)
    }
    var seen: [SQLiteValue] = []
    try connection.statement("SELECT v FROM t ORDER BY id").eachRow { seen.append($0.value(0)) }
    #expect(seen == values)
  }

  @Test func tellsNullFromEmpty() throws {
    let statement = try connection.prepare("SELECT ?, ?")
    try statement.bind(1, nil as [UInt8]?)
    try statement.bind(2, [])
    #expect(try statement.step())
    #expect(statement.optionalBytes(0) == nil)
    #expect(statement.optionalBytes(1) == [])
  }

  @Test func namesTheConstraintAndNoValue() throws {
    try connection.execute(
      """
      CREATE TABLE t(a TEXT PRIMARY KEY, n INTEGER CHECK(n >= 0), p TEXT REFERENCES t(a)) STRICT;
      CREATE TRIGGER forward BEFORE UPDATE ON t WHEN new.n < old.n BEGIN SELECT RAISE(ABORT, 'n goes back'); END;
      """)
    let insert = "INSERT INTO t VALUES(?,?,?)"
    try connection.run(insert, "secret-a", 5, nil)
    let unique = try #require(failure { try connection.run(insert, "secret-a", 1, nil) })
    #expect(unique.isUniqueViolation && unique.isConstraint)
    let check = try #require(failure { try connection.run(insert, "secret-b", -987654, nil) })
    #expect(check.isCheckViolation)
    let foreign = try #require(failure { try connection.run(insert, "secret-c", 1, "secret-nobody") })
    #expect(foreign.isForeignKeyViolation)
    let trigger = try #require(failure { try connection.run("UPDATE t SET n = ?", 3) })
    #expect(trigger.isTriggerViolation && trigger.message == "n goes back")
    let type = try #require(failure { try connection.run(insert, "secret-d", "secret-text", nil) })
    #expect(type.isConstraint)
    for error in [unique, check, foreign, trigger, type] {
      #expect(!error.description.contains("secret") && !error.description.contains("987654"))
    }
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test func rollsBackWhatThrows() throws {
    struct Refused: Error {}
    try connection.execute("CREATE TABLE t(a)")
    #expect(throws: Refused.self) {
      try connection.transaction(.immediate) {
        try connection.run("INSERT INTO t VALUES(1)")
        throw Refused()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    try connection.transaction(.immediate) { _ = try connection.run("INSERT INTO t VALUES(1)") }
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test func aSecondWriterIsToldThatItIsBusy() throws {
    try connection.execute("CREATE TABLE t(a)")
    let other = try SQLiteConnection(path: folder.file("a.db"), options: SQLiteOptions(busyTimeout: 1))
    try connection.transaction(.immediate) {
      let error = failure { try other.transaction(.immediate) {} }
      #expect(error?.isBusy == true)
    }
    try other.transaction(.immediate) { _ = try other.run("INSERT INTO t VALUES(1)") }
  }

  @Test func aFullDiskIsTypedAndLeavesNothingBehind() throws {
    try connection.execute("CREATE TABLE t(a)")
    let pages = try #require(try connection.integer("PRAGMA page_count"))
    try connection.execute("PRAGMA max_page_count=\(pages + 4)")
    let error = failure {
      try connection.transaction(.immediate) {
        for _ in 0..<100 { try connection.run("INSERT INTO t VALUES(?)", .blob([UInt8](repeating: 1, count: 4000))) }
      }
    }
    #expect(error?.isDiskFull == true)
    #expect(error?.path == folder.file("a.db"), "who is told can say which file")
    #expect(!connection.isInTransaction)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    try connection.run("INSERT INTO t VALUES(1)")
  }

  @Test func refusesWhatIsNoDatabase() throws {
    #expect(failure { _ = try SQLiteConnection(path: folder.file("none/x.db")) }?.cannotOpen == true)
    let missing = SQLiteOptions(create: false)
    #expect(failure { _ = try SQLiteConnection(path: folder.file("missing.db"), options: missing) }?.cannotOpen == true)
    try Data(repeating: 0x41, count: 8192).write(to: URL(fileURLWithPath: folder.file("text.db")))
    #expect(failure { _ = try SQLiteConnection(path: folder.file("text.db")) }?.isCorrupt == true)
  }

  @Test func aReaderCannotWrite() throws {
    try connection.execute("CREATE TABLE t(a)")
    let reader = try SQLiteConnection(path: folder.file("a.db"), options: SQLiteOptions(readOnly: true))
    #expect(try reader.integer("SELECT count(*) FROM t") == 0)
    #expect(failure { try reader.run("INSERT INTO t VALUES(1)") }?.isReadOnly == true)
  }

  @Test func preparesExactlyOneStatement() throws {
    #expect(failure { _ = try connection.prepare("SELECT 1; SELECT 2") } != nil)
    #expect(failure { _ = try connection.prepare("  ") } != nil)
    #expect(failure { _ = try connection.prepare("SELEC 1") } != nil)
    #expect(try connection.prepare("SELECT 1 ;\n").step())
  }

  @Test func cachedStatementsComeBackClean() throws {
    let first = try connection.statement("SELECT ?")
    try first.bind(1, 5)
    #expect(try first.step())
    let again = try connection.statement("SELECT ?")
    #expect(first === again)
    #expect(try again.step())
    #expect(again.isNull(0))
  }

  @Test func statementsOutliveACloseSafely() throws {
    let statement = try connection.prepare("SELECT 1")
    #expect(try statement.step())
    connection.close()
    connection.close()
    connection.interrupt()
    #expect(statement.int64(0) == 1)
  }

  @Test func interruptStopsARunningStatement() throws {
    let connection = connection
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    let running = Thread {
      // Interrupting before the statement runs has no effect, so ask until the other thread has ended.
      while !Thread.current.isCancelled {
        connection.interrupt()
        usleep(500)
      }
    }
    running.start()
    defer { running.cancel() }
    #expect(failure { _ = try connection.integer(endless) }?.isInterrupted == true)
  }

  @Test func manyOpenANewFileAtOnce() throws {
    let path = folder.file("new.db")
    let failures = Failures()
    DispatchQueue.concurrentPerform(iterations: 16) { _ in
      do {
        let connection = try SQLiteConnection(path: path)
        try connection.transaction(.immediate) {
          try connection.execute("CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)")
        }
      } catch {
        failures.add(error)
      }
    }
    #expect(failures.all.isEmpty, "\(failures.all)")
    #expect(try SQLiteConnection(path: path).integer("SELECT count(*) FROM t") == 16)
  }

  @Test func borrowedBlobsAreStoredAndLetGo() throws {
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a BLOB, b BLOB, c BLOB)")
    let insert = try connection.prepare("INSERT INTO t VALUES(?,?,?,?)")
    try insert.bind(1, 1)
    try insert.run(borrowing: [1, 2], nil, [], from: 2)
    #expect(failure { try insert.run(borrowing: [9], [9], [9], from: 2) }?.isUniqueViolation == true)
    // Nothing of the borrowed values is bound any more.
    try insert.bind(1, 2)
    try insert.run()
    var rows: [[SQLiteValue]] = []
    try connection.statement("SELECT a, b, c FROM t ORDER BY id").eachRow { row in
      rows.append((0..<3).map { row.value($0) })
    }
    #expect(rows == [[.blob([1, 2]), .null, .blob([])], [.null, .null, .null]])
  }

  @Test func writersThatTakeTurnsAllGetTheirs() throws {
    let path = folder.file("turns.db")
    try SQLiteConnection(path: path).execute("CREATE TABLE t(who, n)")
    let failures = Failures()
    DispatchQueue.concurrentPerform(iterations: 6) { who in
      do {
        let connection = try SQLiteConnection(path: path, options: SQLiteOptions(takesTurns: true))
        for n in 0..<20 {
          try connection.transaction(.immediate) {
            _ = try connection.run("INSERT INTO t VALUES(?,?)", .integer(Int64(who)), .integer(Int64(n)))
          }
        }
      } catch {
        failures.add(error)
      }
    }
    #expect(failures.all.isEmpty, "\(failures.all)")
    #expect(try SQLiteConnection(path: path).integer("SELECT count(DISTINCT who * 100 + n) FROM t") == 120)
  }

  @Test func aTurnIsWaitedForNoLongerThanTheBusyTimeout() throws {
    let path = folder.file("turns.db")
    let options = SQLiteOptions(busyTimeout: 5, takesTurns: true)
    let first = try SQLiteConnection(path: path, options: options)
    let second = try SQLiteConnection(path: path, options: options)
    try first.transaction(.immediate) {
      #expect(failure { try second.transaction(.immediate) {} }?.isBusy == true)
    }
    try second.transaction(.immediate) {}
    try first.transaction(.immediate) {}
  }

  @Test func checkpointEmptiesTheLog() throws {
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES(1)")
    #expect(try connection.checkpoint(.truncate))
    let size = try FileManager.default.attributesOfItem(atPath: folder.file("a.db-wal"))[.size] as? Int
    #expect(size == 0)
  }
}

final class Failures: @unchecked Sendable {
  private let lock = NSLock()
  private var errors: [any Error] = []
  func add(_ error: any Error) { lock.withLock { errors.append(error) } }
  var all: [any Error] { lock.withLock { errors } }
}
