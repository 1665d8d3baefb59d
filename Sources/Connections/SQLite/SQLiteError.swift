import CPurchasesSQLite

/// What SQLite answered when it refused. The message is SQLite's own; it names tables, columns and constraints and, since
/// values only travel as bound parameters, never the content of a row.
public struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Primary result code (`SQLITE_BUSY` is 5, and so on).
  public let code: Int32
  /// Extended result code: the primary one in the low byte, the detail above it.
  public let extendedCode: Int32
  public let message: String
  /// The file that it happened with; nil where it is none of a connection's.
  public let path: String?

  public init(extendedCode: Int32, message: String, path: String? = nil) {
    self.code = extendedCode & 0xff
    self.extendedCode = extendedCode
    self.message = message
    self.path = path
  }

  /// Another connection holds the lock that was asked for, and held it longer than the busy timeout.
  public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
  public var isConstraint: Bool { code == SQLITE_CONSTRAINT }
  /// A UNIQUE or PRIMARY KEY constraint refused a second row.
  public var isUniqueViolation: Bool {
    isConstraint && [6, 8, 10].contains(extendedCode >> 8)  // PRIMARYKEY, UNIQUE, ROWID
  }
  public var isForeignKeyViolation: Bool { isConstraint && extendedCode >> 8 == 3 }
  public var isCheckViolation: Bool { isConstraint && extendedCode >> 8 == 1 }
  /// A trigger raised; ``message`` is the text that the trigger gave.
  public var isTriggerViolation: Bool { isConstraint && extendedCode >> 8 == 7 }
  public var isDiskFull: Bool { code == SQLITE_FULL }
  /// The operating system failed to read, write or sync the file.
  public var isIOError: Bool { code == SQLITE_IOERR }
  public var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
  public var isReadOnly: Bool { code == SQLITE_READONLY }
  public var cannotOpen: Bool { code == SQLITE_CANTOPEN }
  public var isInterrupted: Bool { code == SQLITE_INTERRUPT }

  public var description: String { "SQLite \(extendedCode): \(message)" }
}
