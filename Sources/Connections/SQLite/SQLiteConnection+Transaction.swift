import CPurchasesSQLite
import Glibc

extension SQLiteConnection {
  public enum TransactionKind: String, Sendable {
    /// Locks when first read or written. For reading: in write-ahead mode a reader that starts to write after someone
    /// else did fails with busy at once, whatever the timeout.
    case deferred = "BEGIN"
    /// Takes the write lock at the start, waiting up to the busy timeout.
    case immediate = "BEGIN IMMEDIATE"
    /// Keeps readers out as well outside write-ahead mode; the same as immediate in it.
    case exclusive = "BEGIN EXCLUSIVE"
  }

  /// Runs the body in a transaction: committed when it returns, rolled back when it throws or when the commit fails.
  /// With `synchronous=FULL` the commit is on the disk when this returns. Transactions do not nest.
  /// - Throws: ``SQLiteError`` for what SQLite refused, otherwise what the body threw.
  public func transaction<T>(_ kind: TransactionKind, _ body: () throws -> T) throws -> T {
    precondition(!isInTransaction, "SQLite transactions do not nest")
    try begin(kind)
    do {
      let value = try body()
      try statement("COMMIT").run()
      return value
    } catch {
      rollBack()
      throw error
    }
  }

  private func begin(_ kind: TransactionKind) throws(SQLiteError) {
    let begin = try statement(kind.rawValue)
    guard kind != .deferred, let turn else { return try begin.run() }
    turn.letOthersGoFirst()
    // SQLite's own wait would sleep too long between two attempts.
    sqlite3_busy_timeout(handle.pointer, 0)
    defer { sqlite3_busy_timeout(handle.pointer, options.busyTimeout) }
    var waited: Int64 = 0
    defer { if waited > 0 { turn.endWaiting() } }
    while true {
      do throws(SQLiteError) {
        try begin.run()
        turn.hadTurn()
        return
      } catch {
        guard error.isBusy, waited < Int64(options.busyTimeout) * 1000 else { throw error }
        if waited == 0 { turn.beginWaiting() }
        usleep(WriteTurn.attemptMicroseconds)
        waited += Int64(WriteTurn.attemptMicroseconds)
      }
    }
  }

  /// SQLite rolls back by itself on some errors (disk full, I/O), so there may be nothing left to undo; and a rollback
  /// that fails leaves a journal that the next opening undoes.
  private func rollBack() {
    if isInTransaction { try? execute("ROLLBACK") }
  }

  public enum CheckpointMode: String, Sendable {
    /// Moves what can be moved without waiting for anyone.
    case passive = "PASSIVE"
    /// Waits for readers and writers, then empties the write-ahead log file.
    case truncate = "TRUNCATE"
  }

  /// Moves the write-ahead log into the database file; answers whether everything was moved.
  @discardableResult
  public func checkpoint(_ mode: CheckpointMode) throws(SQLiteError) -> Bool {
    let statement = try statement("PRAGMA wal_checkpoint(\(mode.rawValue))")
    defer { statement.reset() }
    guard try statement.step() else { return false }
    return statement.int64(0) == 0 && statement.int64(1) == statement.int64(2)
  }
}
