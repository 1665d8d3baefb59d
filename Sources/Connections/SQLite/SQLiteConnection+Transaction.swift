import CPurchasesSQLite

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
    try statement(kind.rawValue).run()
    do {
      let value = try body()
      try statement("COMMIT").run()
      return value
    } catch {
      rollBack()
      throw error
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
