import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesSQLite
import Synchronization

/// The log in one SQLite file, for one host: partitions, consumer groups and atomic append-and-commit without a broker.
///
/// Any number of processes may open the same file, and one process may open it more than once. Each handle has one thread
/// that writes; records are on the disk (WAL and a full sync) before anybody hears that they are. The topics' records stay
/// for ever; compacted topics are not compacted here: a reader sees every record, and the last one per key is the state, as
/// it is in Kafka between two runs of its cleaner.
///
/// The file must lie on a local disk (SQLite's locks and shared memory do not work over a network), and a process that
/// has it open must not open or copy it by other means than SQLite's.
public final class EmbeddedLog: EventLog {
  public struct Options: Sendable {
    /// The clock that membership leases are measured by; all processes on one file must agree on it.
    public var clock: any Clock
    /// Largest size of the file in bytes, rounded up to whole pages; nil leaves only SQLite's own limit. Beyond it,
    /// publishing fails as on a full disk: typed, and with nothing half written.
    public var maximumSize: Int64?

    public init(clock: any Clock = WallClock(), maximumSize: Int64? = nil) {
      self.clock = clock
      self.maximumSize = maximumSize
    }
  }

  public struct WallClock: Clock {
    public init() {}
    public func now() -> Instant {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return Instant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
  }

  /// How long a statement waits for another process's transaction. Transactions are bounded and take well under a second
  /// on a slow disk, so a longer wait means that something is broken.
  static let busyTimeout: Int32 = 30_000
  /// Records are a few kilobytes (a signed transaction has 3.3 KB): on pages of SQLite's usual 4 KiB, a quarter of the
  /// file would be gaps.
  static let pageSize: Int64 = 16 * 1024
  /// Pages of write-ahead log before they are moved into the file: 32 MiB. Fewer moves cost less; the file beside the
  /// log stays small enough to be read again quickly after a crash.
  static let checkpointPages = 2_048
  static let readCacheKiB = 2 * 1024
  static let writeCacheKiB = 32 * 1024

  public let path: String
  let clock: any Clock
  let catalogue = TopicCatalogue()
  /// Counts this handle's commits; waiting readers sleep on it.
  let signal = Monitor<UInt64>(0)
  let writer: LogWriter
  private let queries: Mutex<SQLiteConnection?>

  /// Opens the log, making the file when it is missing (its folder must exist).
  /// - Throws: `refused` for a file that is something else or newer than this program, `corrupt` for a damaged one,
  ///   `unavailable` for one that can't be opened.
  public init(path: String, options: Options = Options()) throws(LogFailure) {
    self.path = path
    clock = options.clock
    let connection = try asLogFailure {
      let connection = try SQLiteConnection(
        path: path,
        options: SQLiteOptions(
          busyTimeout: Self.busyTimeout, cacheSize: Self.writeCacheKiB, memoryMap: 0,
          automaticCheckpoint: Self.checkpointPages, pageSize: Self.pageSize, takesTurns: true))
      try LogSchema.prepare(connection)
      if let limit = options.maximumSize {
        let size = try connection.integer("PRAGMA page_size") ?? Self.pageSize
        try connection.execute("PRAGMA max_page_count=\(max(1, (limit + size - 1) / size))")
      }
      return connection
    }
    let reading = try asLogFailure { try Self.openReading(path) }
    queries = Mutex(reading)
    writer = try LogWriter(connection: connection, signal: signal)
  }

  deinit { close() }

  public func close() {
    writer.close()
    queries.withLock { connection in
      connection?.close()
      connection = nil
    }
  }

  private static func openReading(_ path: String) throws(SQLiteError) -> SQLiteConnection {
    // Read-only by habit and not by mode: a read-only handle could not recover the write-ahead log of a crashed process.
    let connection = try SQLiteConnection(
      path: path,
      options: SQLiteOptions(create: false, busyTimeout: busyTimeout, cacheSize: readCacheKiB, automaticCheckpoint: 0))
    try connection.execute("PRAGMA query_only=ON")
    return connection
  }

  func openReadConnection() throws(LogFailure) -> SQLiteConnection {
    // A file that is gone can't be opened either; asked here, that does not look like one that is away for a while.
    try query { _ in }
    return try asLogFailure { try Self.openReading(path) }
  }

  /// Runs a query on the handle's own connection, one caller at a time.
  func query<T>(_ body: (SQLiteConnection) throws -> T) throws(LogFailure) -> T {
    let result: Result<T, LogFailure> = queries.withLock { connection in
      guard let connection else { return .failure(LogFailure(.unavailable, "the log is closed")) }
      do {
        try connection.requireInPlace()
        return .success(try body(connection))
      } catch {
        return .failure(LogFailure(sorting: error))
      }
    }
    return try result.get()
  }

  public func producer() throws(LogFailure) -> any LogProducer { EmbeddedProducer(log: self) }

  public func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    try EmbeddedWorker(log: self, settings: settings)
  }

  public func reader() throws(LogFailure) -> any LogReader { try EmbeddedReader(log: self) }
}
