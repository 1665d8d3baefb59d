import CPurchasesSQLite
import Glibc

/// One connection to one SQLite file.
///
/// A connection is used by one thread at a time. It may be handed from thread to thread (hence Sendable), but its owner
/// sees to it that no two are inside at once: give each thread its own, or keep it behind a lock. Debug builds trap on
/// a breach. Only ``interrupt()`` may be called from anywhere.
public final class SQLiteConnection: Sendable {
  /// Statements kept ready per connection. Adapters have a few dozen texts each; the limit only stops a caller that makes
  /// up texts from growing without end.
  static let maximumCachedStatements = 256

  public let path: String
  public let options: SQLiteOptions
  let handle: SQLiteHandle
  let turn: WriteTurn?
  // Same argument as the handle's: only the thread that holds the connection touches it.
  nonisolated(unsafe) private var cache: [String: SQLiteStatement] = [:]

  /// Opens the file and applies the options.
  /// - Throws: `cannotOpen` when the path is missing or not allowed, `isCorrupt` when the file is no database, `isBusy` when
  ///   another process kept the switch to write-ahead logging locked for the whole busy timeout.
  public init(path: String, options: SQLiteOptions = SQLiteOptions()) throws(SQLiteError) {
    self.path = path
    self.options = options
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    if options.readOnly {
      flags |= SQLITE_OPEN_READONLY
    } else {
      flags |= SQLITE_OPEN_READWRITE | (options.create ? SQLITE_OPEN_CREATE : 0)
    }
    handle = try SQLiteHandle(path: path, flags: flags)
    turn = options.takesTurns && !options.readOnly ? WriteTurn(beside: path) : nil
    try configure()
  }

  private func configure() throws(SQLiteError) {
    sqlite3_busy_timeout(handle.pointer, options.busyTimeout)
    // Quoted strings that SQLite would take for identifiers hide typing errors; a schema from elsewhere must not run code.
    for (option, value) in [
      (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    ] as [(Int32, Int32)] {
      try handle.check(purchases_sqlite_set(handle.pointer, option, value))
    }
    // Only before the first page is written, and that includes the switch to write-ahead mode.
    if options.pageSize > 0, !options.readOnly { try execute("PRAGMA page_size=\(options.pageSize)") }
    if options.writeAheadLog, !options.readOnly { try enterWriteAheadMode() }
    try execute(
      """
      PRAGMA synchronous=\(options.synchronous.rawValue);
      PRAGMA foreign_keys=\(options.foreignKeys ? "ON" : "OFF");
      PRAGMA cache_size=-\(options.cacheSize);
      PRAGMA mmap_size=\(options.memoryMap);
      PRAGMA temp_store=MEMORY;
      PRAGMA wal_autocheckpoint=\(options.automaticCheckpoint);
      """)
  }

  /// SQLite does not call its busy handler for this switch, so processes that open a new file together must ask again.
  private func enterWriteAheadMode() throws(SQLiteError) {
    let pause: Int32 = 2
    var waited: Int32 = 0
    while true {
      do throws(SQLiteError) {
        if try scalar("PRAGMA journal_mode") == .text("wal") { return }
        let mode = try scalar("PRAGMA journal_mode=WAL")
        if mode == .text("wal") || mode == .text("memory") { return }
        throw SQLiteError(
          extendedCode: SQLITE_CANTOPEN, message: "write-ahead logging is not possible here", path: path)
      } catch {
        guard error.isBusy, waited < options.busyTimeout else { throw error }
        usleep(UInt32(pause) * 1000)
        waited += pause
      }
    }
  }

  /// Runs a script of one or more statements and drops the rows they give. For schemas and pragmas: values belong in bound
  /// parameters.
  public func execute(_ sql: String) throws(SQLiteError) {
    let result = handle.exclusively { sqlite3_exec(handle.pointer, sql, nil, nil, nil) }
    try handle.check(result)
  }

  /// Compiles one statement.
  public func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(handle: handle, sql: sql, persistent: false)
  }

  /// The statement for this text, compiled once per connection, reset and without bindings. The same text gives the same
  /// object: a caller that steps through one must not ask for its text again before it is done.
  public func statement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    if let known = cache[sql] {
      known.reset()
      known.clearBindings()
      return known
    }
    let made = try SQLiteStatement(handle: handle, sql: sql, persistent: true)
    if cache.count >= Self.maximumCachedStatements { cache.removeAll(keepingCapacity: true) }
    cache[sql] = made
    return made
  }

  /// Runs a cached statement that gives no rows of interest; answers the number of rows changed.
  @discardableResult
  public func run(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) -> Int {
    let statement = try statement(sql)
    try statement.bind(values)
    try statement.run()
    return changes
  }

  /// The first column of the first row, or nil when there is no row.
  public func scalar(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) -> SQLiteValue? {
    let statement = try statement(sql)
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step() ? statement.value(0) : nil
  }

  /// The first column of the first row as an integer; nil when there is no row or it is NULL.
  public func integer(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) -> Int64? {
    let statement = try statement(sql)
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step() && !statement.isNull(0) ? statement.int64(0) : nil
  }

  /// Rows changed by the last INSERT, UPDATE or DELETE.
  public var changes: Int { Int(sqlite3_changes64(handle.pointer)) }
  public var lastInsertRowID: Int64 { sqlite3_last_insert_rowid(handle.pointer) }
  public var isInTransaction: Bool { sqlite3_get_autocommit(handle.pointer) == 0 }

  /// Whether the file was deleted, renamed or replaced since it was opened: what is written now, nobody will find.
  public var hasMoved: Bool { handle.exclusively { purchases_sqlite_has_moved(handle.pointer) } != 0 }

  /// Makes whatever runs on this connection fail with `isInterrupted`. May be called from any thread.
  public func interrupt() { handle.interrupt() }

  /// Lets go of the file. The connection must not be used again; closing twice is allowed.
  public func close() {
    guard handle.isOpen else { return }
    cache.removeAll()
    handle.close()
  }
}
