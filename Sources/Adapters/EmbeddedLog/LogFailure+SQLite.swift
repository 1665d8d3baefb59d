import PurchasesContracts
import PurchasesSQLite

extension LogFailure {
  /// What a failure of the file means to a caller of the log.
  /// - Parameter committing: whether it came from the commit itself. A failed write or sync there may or may not be found
  ///   again after a crash, so nothing can be promised.
  init(_ error: SQLiteError, committing: Bool = false) {
    let kind: Kind =
      if error.isCorrupt {
        .corrupt
      } else if error.isIOError, committing {
        .indefinite
      } else if error.isConstraint || error.isReadOnly {
        .refused
      } else {
        .unavailable
      }
    let place = "the log\(error.path.map { " \($0)" } ?? "")"
    self.init(
      kind, error.isDiskFull ? "\(place): the disk or the log's size limit is full (\(error))" : "\(place): \(error)")
  }

  /// Sorts an error of untyped origin.
  init(sorting error: any Error) {
    switch error {
    case let failure as LogFailure: self = failure
    case let error as SQLiteError: self.init(error)
    default: self.init(.unavailable, "\(error)")
    }
  }
}

extension SQLiteConnection {
  /// An open file lives on without a name: writers would go on for nobody, and readers never see what is new.
  func requireInPlace() throws(LogFailure) {
    guard !hasMoved else {
      throw LogFailure(
        .refused,
        "the log \(path) was deleted, moved or replaced while it was open: nothing more is written to it or read from it. "
          + "Put it back and start again.")
    }
  }
}

/// Runs a body whose errors are this adapter's two kinds and gives them the port's type.
func asLogFailure<T>(_ body: () throws -> T) throws(LogFailure) -> T {
  do {
    return try body()
  } catch {
    throw LogFailure(sorting: error)
  }
}
