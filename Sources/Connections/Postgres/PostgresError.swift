/// What went wrong, by SQLSTATE and by the names of schema objects.
///
/// The server's own sentences may quote row values (`Key (account)=(…) already exists`), so they are kept only for
/// classes of errors that speak of the statement, the server or the connection and never of data.
public struct PostgresError: Error, Sendable, Equatable {
  /// The five characters of the SQL standard; nil where the failure lies before or below SQL (no connection).
  public let sqlState: String?
  /// The violated constraint, where there is one. Triggers name theirs with `RAISE … USING CONSTRAINT = …`.
  public let constraint: String?
  public let table: String?
  /// The connection is gone: what it had not committed is undone, and whether a commit under way took place is unknown.
  public let isConnectionLost: Bool
  /// Position, in the list handed to `pipeline`, of the statement that failed.
  public let step: Int?
  /// Names what is wrong; never contains a row value, a password or a parameter.
  public let message: String

  init(
    sqlState: String? = nil, constraint: String? = nil, table: String? = nil, isConnectionLost: Bool = false,
    step: Int? = nil, message: String
  ) {
    self.sqlState = sqlState
    self.constraint = constraint
    self.table = table
    self.isConnectionLost = isConnectionLost
    self.step = step
    self.message = message
  }
}

extension PostgresError {
  /// An integrity constraint (class 23) refused the write.
  public var isConstraint: Bool { sqlState?.hasPrefix("23") ?? false }

  public func isConstraint(_ name: String) -> Bool { isConstraint && constraint == name }

  /// A unique constraint or primary key refused the write.
  public var isUniqueViolation: Bool { sqlState == "23505" }

  /// Two transactions got in each other's way; the same one may be tried again at once.
  public var isRetriable: Bool { isSerializationFailure || isDeadlock }

  public var isSerializationFailure: Bool { sqlState == "40001" }

  public var isDeadlock: Bool { sqlState == "40P01" }

  /// A statement ran longer, or waited longer for a lock, than the connection allows.
  public var isTimeout: Bool { sqlState == "57014" || sqlState == "55P03" }

  /// The server says that it is going down, is not up yet, or that the connection broke.
  static func meansConnectionLost(_ sqlState: String) -> Bool {
    sqlState.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(sqlState)
  }

  /// Classes whose sentences speak of names, syntax, resources or access, never of data: connection, authorization,
  /// unknown database, syntax and names, resources, limits, object state, operator intervention, system, configuration.
  static func mayQuoteServer(_ sqlState: String) -> Bool {
    ["08", "28", "3D", "42", "53", "54", "55", "57", "58", "F0"].contains(String(sqlState.prefix(2)))
  }
}

extension PostgresError: CustomStringConvertible {
  public var description: String { message }
}
