import Glibc
import PurchasesPostgres
import Testing

/// A server of `Scripts/postgres`, or any other that lets us create schemas.
let serverURL: String? = getenv("PURCHASES_TEST_POSTGRES").map { String(cString: $0) }

func connect(_ options: PostgresConnection.Options = .init()) throws -> PostgresConnection {
  try PostgresConnection(try #require(serverURL), options: options)
}

/// The error that the body throws; nil where it throws none, which fails the expectations on it.
func failure(_ body: () throws -> Void) -> PostgresError? {
  do {
    try body()
    return nil
  } catch {
    return error as? PostgresError
  }
}

@Suite(.enabled(if: serverURL != nil, "needs a server: PURCHASES_TEST_POSTGRES=$(Scripts/postgres start DIR)"))
struct ConnectionTests {
  @Test("values come back as they went") func valuesComeBackAsTheyWent() throws {
    let connection = try connect()
    let row = try connection.query(
      "SELECT $1::bigint, $2::text, $3::bytea, $4::bytea, $5::boolean, $6::text, $7::smallint::text, $8::integer",
      [
        .int64(.min), .text("Käufe 🛒 '; DROP TABLE x"), .bytes([0, 255, 39, 92]), .bytes([]), .bool(true), .null,
        .text("7"), .null,
      ])[0]
    #expect(row.int64(0) == .min)
    #expect(row.text(1) == "Käufe 🛒 '; DROP TABLE x")
    #expect(row.bytes(2) == [0, 255, 39, 92])
    #expect(row.bytes(3) == [])
    #expect(row.bool(4) == true)
    #expect(row.isNull(5) && row.text(5) == nil)
    #expect(row.text(6) == "7")
    #expect(row.int64(7) == nil)
  }

  @Test("arrays unnest to rows, nulls and empties included") func arraysUnnestToRowsNullsAndEmptiesIncluded() throws {
    let connection = try connect()
    let sql = """
      SELECT a, b, c FROM unnest($1::bytea[], $2::bigint[], $3::text[]) WITH ORDINALITY AS r(a, b, c, i) ORDER BY i
      """
    let rows = try connection.query(
      sql,
      [
        .bytesArray([[], nil, [1, 2, 0]]), .int64Array([.max, nil, -1]), .textArray(["", nil, "ü{},\"\\"]),
      ])
    #expect(rows.map { $0.bytes(0) } == [[], nil, [1, 2, 0]])
    #expect(rows.map { $0.int64(1) } == [.max, nil, -1])
    #expect(rows.map { $0.text(2) } == ["", nil, "ü{},\"\\"])
    let none = try connection.query(sql, [.bytesArray([]), .int64Array([]), .textArray([])])
    #expect(none.isEmpty && none.columnCount == 3)
  }

  @Test("a statement of many thousand rows") func aStatementOfManyThousandRows() throws {
    let connection = try connect()
    try connection.execute("CREATE TEMPORARY TABLE t (k bytea PRIMARY KEY, v bigint NOT NULL)")
    let count = 20_000
    let keys = (0..<count).map { "key-\($0)".utf8.map { $0 } as [UInt8]? }
    let inserted = try connection.query(
      "INSERT INTO t SELECT * FROM unnest($1::bytea[], $2::bigint[])",
      [.bytesArray(keys), .int64Array((0..<count).map { Int64($0) })])
    #expect(inserted.affected == count)
    #expect(try connection.query("SELECT sum(v)::bigint FROM t")[0].int64(0) == Int64(count * (count - 1) / 2))
  }

  @Test("an error names state, constraint and table, and quotes no row")
  func anErrorNamesStateConstraintAndTableAndQuotesNoRow() throws {
    let connection = try connect()
    try connection.execute("CREATE TEMPORARY TABLE owner (chain text, CONSTRAINT one_owner PRIMARY KEY (chain))")
    try connection.query("INSERT INTO owner VALUES ($1)", [.text("secret-chain")])
    let twice = failure {
      try connection.query("INSERT INTO owner VALUES ($1)", [.text("secret-chain")])
    }
    #expect(twice?.isConstraint == true && twice?.isUniqueViolation == true)
    #expect(twice?.isConstraint("one_owner") == true)
    #expect(twice?.table == "owner")
    #expect(twice?.isConnectionLost == false && twice?.isRetriable == false)
    let cast = failure {
      try connection.query("SELECT $1::text::bigint", [.text("secret-value")])
    }
    for error in [twice, cast] {
      #expect(error.map { "\($0)".contains("secret") } == false)
    }
    #expect(cast?.sqlState == "22P02")
    // A mistake in the statement itself may be quoted: that is what one needs to read.
    let typo = failure { try connection.query("SELECT * FROM no_such_table") }
    #expect(typo?.message.contains("no_such_table") == true)
    // And the connection goes on.
    #expect(try connection.query("SELECT 1")[0].int64(0) == 1)
  }

  @Test("a trigger's refusal looks like a constraint") func aTriggersRefusalLooksLikeAConstraint() throws {
    let connection = try connect()
    let error = failure {
      try connection.execute(
        "DO $$ BEGIN RAISE EXCEPTION 'position 7' USING ERRCODE = '23514', CONSTRAINT = 'never_back', TABLE = 'p'; END $$"
      )
    }
    #expect(error?.isConstraint("never_back") == true)
    #expect(error?.table == "p")
  }

  @Test("transactions commit or leave nothing") func transactionsCommitOrLeaveNothing() throws {
    let connection = try connect()
    try connection.execute("CREATE TEMPORARY TABLE t (v bigint PRIMARY KEY)")
    try connection.transaction { () throws(PostgresError) in
      try connection.query("INSERT INTO t VALUES (1)")
    }
    #expect(throws: PostgresError.self) {
      try connection.transaction { () throws(PostgresError) in
        try connection.query("INSERT INTO t VALUES (2)")
        try connection.query("INSERT INTO t VALUES (1)")
      }
    }
    #expect(!connection.isInTransaction)
    try connection.begin()
    try connection.query("INSERT INTO t VALUES (3)")
    #expect(connection.isInTransaction)
    connection.rollback()
    #expect(try connection.query("SELECT v FROM t").map { $0.int64(0) } == [1])
  }

  @Test("a commit after a failed statement is no success") func aCommitAfterAFailedStatementIsNoSuccess() throws {
    let connection = try connect()
    try connection.begin()
    #expect(throws: PostgresError.self) { try connection.query("SELECT 1/0") }
    let error = failure { try connection.commit() }
    #expect(error?.sqlState == "25P02")
    #expect(!connection.isInTransaction)
  }

  @Test("a pipeline is one round trip and all or nothing") func aPipelineIsOneRoundTripAndAllOrNothing() throws {
    let connection = try connect()
    try connection.execute("CREATE TEMPORARY TABLE t (v bigint PRIMARY KEY)")
    let insert = "INSERT INTO t VALUES ($1)"
    let results = try connection.pipeline([
      .init("BEGIN"), .init(insert, [.int64(1)]), .init("SELECT v FROM t"), .init("COMMIT"),
    ])
    #expect(results.count == 4)
    #expect(results[1].affected == 1)
    #expect(results[2].map { $0.int64(0) } == [1])
    let error = failure {
      try connection.pipeline([
        .init("BEGIN"), .init(insert, [.int64(2)]), .init(insert, [.int64(1)]), .init(insert, [.int64(3)]),
        .init("COMMIT"),
      ])
    }
    #expect(error?.step == 2)
    #expect(error?.isUniqueViolation == true)
    connection.rollback()
    #expect(!connection.isInTransaction)
    #expect(try connection.query("SELECT v FROM t").map { $0.int64(0) } == [1])
    #expect(try connection.pipeline([]).isEmpty)
  }

  @Test("a pipeline moves megabytes both ways") func aPipelineMovesMegabytesBothWays() throws {
    let connection = try connect()
    let block = [UInt8](repeating: 7, count: 1 << 20)
    let results = try connection.pipeline(
      (0..<16).map { _ in .init("SELECT octet_length($1::bytea)", [.bytes(block)]) })
    #expect(results.allSatisfy { $0[0].int64(0) == 1 << 20 })
  }

  @Test("a pipeline whose answers fill every buffer while it is still sending")
  func aPipelineWhoseAnswersFillEveryBuffer() throws {
    let connection = try connect()
    let block = [UInt8](repeating: 7, count: 1 << 20)
    let results = try connection.pipeline((0..<24).map { _ in .init("SELECT $1::bytea", [.bytes(block)]) })
    #expect(results.allSatisfy { $0[0].bytes(0) == block })
  }

  @Test("a connection that the server ends is told as lost") func aConnectionThatTheServerEndsIsToldAsLost() throws {
    let connection = try connect()
    let other = try connect()
    let id = try #require(try connection.query("SELECT pg_backend_pid()::bigint")[0].int64(0))
    try other.query("SELECT pg_terminate_backend($1::bigint::integer, 10000)", [.int64(id)])
    let error = failure { try connection.query("SELECT 1") }
    #expect(error?.isConnectionLost == true)
    #expect(!connection.isOpen)
    let again = failure {
      try connection.pipeline([.init("SELECT 1"), .init("SELECT 2")])
    }
    #expect(again?.isConnectionLost == true)
  }

  @Test("a pipeline over a connection that just ended is told as lost")
  func aPipelineOverAConnectionThatJustEndedIsToldAsLost() throws {
    let connection = try connect()
    let other = try connect()
    let id = try #require(try connection.query("SELECT pg_backend_pid()::bigint")[0].int64(0))
    try connection.query("SELECT 1")
    try other.query("SELECT pg_terminate_backend($1::bigint::integer, 10000)", [.int64(id)])
    let error = failure {
      try connection.pipeline([.init("SELECT 1"), .init("SELECT 1")])
    }
    #expect(error?.isConnectionLost == true)
  }

  @Test("a statement that takes too long is ended by the server") func aStatementThatTakesTooLongIsEndedByTheServer()
    throws
  {
    var options = PostgresConnection.Options()
    options.statementTimeoutMilliseconds = 50
    let connection = try connect(options)
    let error = failure { try connection.query("SELECT pg_sleep(30)") }
    #expect(error?.isTimeout == true)
    #expect(connection.isOpen)
  }

  @Test("two transactions in each other's way are told as retriable")
  func twoTransactionsInEachOthersWayAreToldAsRetriable() throws {
    let first = try connect()
    let second = try connect()
    let schema = "serial_\(getpid())"
    try first.execute(
      "CREATE SCHEMA \(schema); CREATE TABLE \(schema).t (v bigint); INSERT INTO \(schema).t VALUES (1)")
    defer { try? first.execute("DROP SCHEMA \(schema) CASCADE") }
    try first.begin(.repeatableRead)
    try first.query("SELECT * FROM \(schema).t")
    try second.query("UPDATE \(schema).t SET v = 2")
    let error = failure { try first.query("UPDATE \(schema).t SET v = 3") }
    first.rollback()
    #expect(error?.isSerializationFailure == true && error?.isRetriable == true)
  }

  @Test("settings of the session") func settingsOfTheSession() throws {
    let connection = try connect(.init(applicationName: "a test", settings: [("work_mem", "8MB")]))
    #expect(try connection.query("SELECT current_setting('work_mem')")[0].text(0) == "8MB")
    #expect(try connection.query("SELECT current_setting('application_name')")[0].text(0) == "a test")
    #expect(throws: PostgresError.self) { try connect(.init(settings: [("no_such_setting", "1")])) }
  }
}

@Suite struct ConnectingTests {
  @Test(
    "a URL that is none is refused without quoting it",
    arguments: ["postgres://u:hunter2@[::1/x", "postgres://u:hunter2@h/x?nonsense=1", "hunter2"])
  func aURLThatIsNoneIsRefusedWithoutQuotingIt(url: String) {
    let error = failure { _ = try PostgresConnection(url) }
    #expect(error.map { $0.message.contains("hunter2") } == false)
  }

  @Test("a server that is not there is told as lost, with the reason and without the password")
  func aServerThatIsNotThereIsToldAsLostWithTheReasonAndWithoutThePassword() {
    let error = failure {
      _ = try PostgresConnection("postgres://u:hunter2@/x?host=/nowhere/at/all")
    }
    #expect(error?.isConnectionLost == true)
    #expect(error?.message.contains("/nowhere/at/all") == true)
    #expect(error.map { $0.message.contains("hunter2") } == false)
  }
}
