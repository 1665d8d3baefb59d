/// How a database file is opened. The defaults are those of a store that must not lose a commit: write-ahead log, a full
/// sync on every commit, foreign keys checked.
public struct SQLiteOptions: Hashable, Sendable {
  public enum Synchronous: String, Hashable, Sendable {
    /// Every commit is on the disk when it returns.
    case full = "FULL"
    /// A commit survives the process but not a power cut. Only for what can be made again (shadow stores, tests).
    case normal = "NORMAL"
    /// Nothing is promised.
    case off = "OFF"
  }

  public var readOnly: Bool
  /// Make the file when it is missing. Without it a missing file is an error, so that a mistyped path is noticed.
  public var create: Bool
  /// How long a statement waits for another connection's lock, in milliseconds.
  public var busyTimeout: Int32
  public var writeAheadLog: Bool
  public var synchronous: Synchronous
  public var foreignKeys: Bool
  /// Page cache, in KiB.
  public var cacheSize: Int
  /// How much of the file is read through a memory map, in bytes; 0 turns it off.
  public var memoryMap: Int64
  /// Pages of write-ahead log after which a commit moves them into the database; 0 leaves that to ``SQLiteConnection/checkpoint(_:)``.
  public var automaticCheckpoint: Int
  /// Size in bytes of the pages of a file that is being made, a power of two from 512 to 65536; an existing file keeps its
  /// own. 0 leaves SQLite's default.
  public var pageSize: Int64
  /// Whether transactions that write wait their turn with those of other connections that take turns too (see
  /// ``SQLiteConnection/transaction(_:_:)``): for files that several processes write all the time. Makes a small file
  /// beside the database.
  public var takesTurns: Bool

  public init(
    readOnly: Bool = false, create: Bool = true, busyTimeout: Int32 = 10_000, writeAheadLog: Bool = true,
    synchronous: Synchronous = .full, foreignKeys: Bool = true, cacheSize: Int = 16 * 1024,
    memoryMap: Int64 = 256 << 20,
    automaticCheckpoint: Int = 4_000, pageSize: Int64 = 0, takesTurns: Bool = false
  ) {
    self.readOnly = readOnly
    self.create = create
    self.busyTimeout = busyTimeout
    self.writeAheadLog = writeAheadLog
    self.synchronous = synchronous
    self.foreignKeys = foreignKeys
    self.cacheSize = cacheSize
    self.memoryMap = memoryMap
    self.automaticCheckpoint = automaticCheckpoint
    self.pageSize = pageSize
    self.takesTurns = takesTurns
  }
}
