import CPurchasesPostgres

extension PostgresConnection {
  /// What a transaction sees of others.
  public enum Isolation: Sendable {
    /// Each statement sees what was committed before it began.
    case readCommitted
    /// All statements see one instant.
    case repeatableRead
    /// As if transactions ran one after the other; may fail as `isSerializationFailure`.
    case serializable
  }

  public func begin(_ isolation: Isolation = .readCommitted, readOnly: Bool = false) throws(PostgresError) {
    let level =
      switch isolation {
      case .readCommitted: "READ COMMITTED"
      case .repeatableRead: "REPEATABLE READ"
      case .serializable: "SERIALIZABLE"
      }
    try execute("BEGIN ISOLATION LEVEL \(level)\(readOnly ? " READ ONLY" : "")")
  }

  /// - Throws: where the answer got lost (`isConnectionLost`), whether the commit took place is unknown.
  public func commit() throws(PostgresError) {
    // COMMIT of a transaction in which a statement failed answers success and rolls back; that must not pass for one.
    guard !isFailed else {
      rollback()
      throw PostgresError(sqlState: "25P02", message: "a statement of this transaction failed, so it was rolled back")
    }
    try execute("COMMIT")
  }

  /// Undoes the transaction. Needs no error path: on a lost connection the server has undone it already.
  public func rollback() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }

  /// Runs `body` in a transaction: committed when it returns, undone when it throws.
  @discardableResult
  public func transaction<Value>(
    _ isolation: Isolation = .readCommitted, readOnly: Bool = false, _ body: () throws(PostgresError) -> Value
  ) throws(PostgresError) -> Value {
    try begin(isolation, readOnly: readOnly)
    do {
      let value = try body()
      try commit()
      return value
    } catch {
      rollback()
      throw error
    }
  }

  public var isInTransaction: Bool {
    let status = transactionStatus
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE
  }

  private var isFailed: Bool { transactionStatus == PQTRANS_INERROR }

  private var transactionStatus: PGTransactionStatusType {
    lock.withLock { session in session.handle.map { PQtransactionStatus($0) } ?? PQTRANS_UNKNOWN }
  }
}
