import PurchasesContracts
import PurchasesSQLite

/// A connection of its own for reading, and the waiting for what others append.
final class LogCursor {
  /// Bytes after which a read stops early, so that a thousand large records are not held at once. At least one record is
  /// always read.
  static let maximumReadBytes = 32 << 20
  /// How often a waiting reader looks for what other processes appended. Asking costs a few microseconds; those in this
  /// process wake it at once.
  static let pollMilliseconds: Int64 = 25

  let connection: SQLiteConnection
  private let signal: Monitor<UInt64>
  private let catalogue: TopicCatalogue
  private var statements: [Int64: SQLiteStatement] = [:]
  private var seenSignal: UInt64 = .max
  private var seenVersion: Int64 = -1

  init(log: EmbeddedLog) throws(LogFailure) {
    connection = try log.openReadConnection()
    signal = log.signal
    catalogue = log.catalogue
  }

  func id(of partition: TopicPartition) throws(LogFailure) -> Int64 {
    try asLogFailure { try catalogue.require(partition, on: connection) }
  }

  /// Appends up to `max` records to `out`; answers whether everything from the offset on was read.
  func read(
    _ partition: TopicPartition, id: Int64, from offset: Int64, max: Int, into out: inout [StoredRecord],
    bytes: inout Int
  ) throws -> Bool {
    try connection.requireInPlace()
    let statement: SQLiteStatement
    if let known = statements[id] {
      statement = known
    } else {
      statement = try connection.prepare(
        "SELECT \(RecordRow.columns) FROM \(LogSchema.recordTable(id)) WHERE \"offset\" >= ? ORDER BY \"offset\" LIMIT ?"
      )
      statements[id] = statement
    }
    defer { statement.reset() }
    try statement.bind(1, offset)
    try statement.bind(2, Int64(max))
    var count = 0
    while try statement.step() {
      let record = try RecordRow.read(statement, of: partition)
      out.append(record)
      count += 1
      bytes += RecordRow.size(record.record)
      if bytes >= Self.maximumReadBytes { return false }
    }
    return count < max
  }

  func end(of id: Int64) throws(SQLiteError) -> Int64 {
    try connection.integer("SELECT coalesce(max(\"offset\") + 1, 0) FROM \(LogSchema.recordTable(id))") ?? 0
  }

  /// Whether anything was committed since the last call. Must be asked before looking, so that nothing slips between.
  func hasNews() throws -> Bool {
    try connection.requireInPlace()
    let signalled = signal.read { $0 }
    let version = try connection.integer("PRAGMA data_version") ?? 0
    defer {
      seenSignal = signalled
      seenVersion = version
    }
    return signalled != seenSignal || version != seenVersion
  }

  /// Sleeps until somebody in this process commits, or it is time to ask the file, or the deadline.
  func sleep(until deadline: MonotonicTime) {
    let seen = seenSignal
    let next = min(deadline, MonotonicTime.now.advanced(byMilliseconds: Self.pollMilliseconds))
    _ = signal.wait(until: next) { $0 != seen ? true : nil }
  }

  func close() {
    statements.removeAll()
    connection.close()
  }
}

/// Reads partitions by offset, outside any group.
final class EmbeddedReader: LogReader {
  private let log: EmbeddedLog
  private let cursor: LogCursor

  init(log: EmbeddedLog) throws(LogFailure) {
    self.log = log
    cursor = try LogCursor(log: log)
  }

  func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord] {
    let id = try cursor.id(of: partition)
    return try asLogFailure {
      var records: [StoredRecord] = []
      var bytes = 0
      _ = try cursor.read(partition, id: id, from: offset, max: max, into: &records, bytes: &bytes)
      return records
    }
  }

  func wait(_ partition: TopicPartition, beyond offset: Int64, milliseconds: Int64) throws(LogFailure) -> Bool {
    let id = try cursor.id(of: partition)
    let deadline = MonotonicTime.now.advanced(byMilliseconds: milliseconds)
    return try asLogFailure {
      _ = try cursor.hasNews()
      while try cursor.end(of: id) <= offset {
        repeat {
          if MonotonicTime.now >= deadline { return false }
          cursor.sleep(until: deadline)
        } while try !cursor.hasNews()
      }
      return true
    }
  }

  func close() { cursor.close() }
}
