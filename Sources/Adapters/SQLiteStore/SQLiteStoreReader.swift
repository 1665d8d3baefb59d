import Dispatch
import PurchasesContracts
import PurchasesSQLite
import Synchronization

/// The half that everybody but the stages reads through. Connections of its own, opened read-only as they are needed and
/// kept for the next question: in write-ahead mode a reader and the writer never wait for each other.
final class SQLiteStoreReader: StoreReader {
  /// Questions that are read at a time, each on a connection of its own; one more waits its turn. An answer takes some tens of
  /// microseconds and a connection a hundred times as long to open: hundreds who wait for their permits must not open and
  /// close one for each look.
  private static let connections = 16

  private let path: String
  private let options: SQLiteOptions
  private let idle = Mutex<[SQLiteConnection]?>([])
  private let places = DispatchSemaphore(value: SQLiteStoreReader.connections)
  /// The connection, with a transaction open on it, of a reader that asks of one instant; one thread has it.
  private let pinned: SQLiteConnection?

  init(path: String, options: SQLiteOptions, pinned: SQLiteConnection? = nil) {
    self.path = path
    self.pinned = pinned
    var options = options
    options.readOnly = true
    options.create = false
    self.options = options
  }

  func check() throws(StoreFailure) {
    try reading { connection in try Migration.check(connection) }
  }

  func atOneInstant<Value>(_ body: (any StoreReader) throws(StoreFailure) -> Value) throws(StoreFailure) -> Value {
    guard pinned == nil else { return try body(self) }
    return try reading { connection in
      try connection.transaction(.deferred) {
        try body(SQLiteStoreReader(path: path, options: options, pinned: connection))
      }
    }
  }

  func row(_ key: RowKey) throws(StoreFailure) -> Row? {
    try rows(key.table, prefix: key.values, after: nil, limit: 1).first
  }

  func rows(_ keys: [RowKey]) throws(StoreFailure) -> [RowKey: Row] {
    guard !keys.isEmpty else { return [:] }
    return try reading { connection in try connection.rows(keys) }
  }

  func rows(
    _ table: Table, prefix: [Value], after: [Value]?, limit: Int
  ) throws(StoreFailure) -> [Row] {
    precondition(prefix.count <= table.key.count, "a key of \(table.name) has \(table.key.count) parts")
    let key = table.key.map { quoted($0.name) }
    var conditions = key.prefix(prefix.count).map { "\($0) = ?" }
    var values = prefix
    if let after {
      precondition(after.count == table.key.count, "`after` is a whole key")
      let places = Array(repeating: "?", count: after.count).joined(separator: ", ")
      conditions.append("(\(key.joined(separator: ", "))) > (\(places))")
      values += after
    }
    let condition = conditions.isEmpty ? "true" : conditions.joined(separator: " AND ")
    return try select(table, "\(condition) ORDER BY \(key.joined(separator: ", "))", values, limit)
  }

  func rows(
    _ table: Table, where column: String, is value: Value, limit: Int
  ) throws(StoreFailure) -> [Row] {
    precondition(table.indexed.contains(column), "column \(column) of \(table.name) has no index")
    let key = table.key.map { quoted($0.name) }.joined(separator: ", ")
    return try select(table, "\(quoted(column)) = ? ORDER BY \(key)", [value], limit)
  }

  func rows(
    _ table: Table, where column: String, atMost value: Int64, limit: Int
  ) throws(StoreFailure) -> [Row] {
    precondition(table.indexed.contains(column), "column \(column) of \(table.name) has no index")
    let order = ([column] + table.key.map(\.name)).map(quoted).joined(separator: ", ")
    return try select(table, "\(quoted(column)) <= ? ORDER BY \(order)", [.integer(value)], limit)
  }

  func count(_ table: Table) throws(StoreFailure) -> Int64 {
    try reading { connection in try connection.integer("SELECT count(*) FROM \(quoted(table.name))") ?? 0 }
  }

  func count(_ table: Table, whereSet column: String) throws(StoreFailure) -> Int64 {
    precondition(table.indexed.contains(column), "column \(column) of \(table.name) has no index")
    return try reading { connection in
      try connection.integer(
        "SELECT count(*) FROM \(quoted(table.name)) WHERE \(quoted(column)) IS NOT NULL") ?? 0
    }
  }

  func positions(stage: String) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try reading { connection in
      var positions: [TopicPartition: StagePosition] = [:]
      let statement = try connection.statement(
        #"SELECT topic, "partition", epoch, next FROM stage_position WHERE stage = ?"#)
      try statement.eachRow(.text(stage)) { row in
        guard let partition = Int32(exactly: row.int64(1)) else {
          throw StoreFailure(.corrupt, "stage_position names a partition beyond 32 bits")
        }
        positions[TopicPartition(row.string(0), partition)] = StagePosition(
          epoch: row.int64(2), next: row.optionalInt64(3))
      }
      return positions
    }
  }

  func books(stage: String) throws(StoreFailure) -> StageBooks {
    try reading { connection in
      var books = StageBooks()
      // One statement, so that all of it is of one instant.
      let statement = try connection.statement(
        """
        SELECT s.consumer_group, p.topic, p."partition", p.epoch, p.next, b.from_position, b.next
        FROM stage AS s LEFT JOIN stage_position AS p ON p.stage = s.name
          LEFT JOIN stage_batch AS b ON b.stage = p.stage AND b.topic = p.topic AND b."partition" = p."partition"
        WHERE s.name = ? ORDER BY p.topic, p."partition", b.next
        """)
      try statement.eachRow(.text(stage)) { row in
        if books.group == nil { books = StageBooks(group: row.string(0)) }
        guard let number = row.optionalInt64(2) else { return }
        guard let partition = Int32(exactly: number) else {
          throw StoreFailure(.corrupt, "stage_position names a partition beyond 32 bits")
        }
        books.add(
          TopicPartition(row.string(1), partition), StagePosition(epoch: row.int64(3), next: row.optionalInt64(4)),
          kept: row.optionalInt64(6).map { KeptBatch(from: row.optionalInt64(5), next: $0) })
      }
      return books
    }
  }

  func probe() throws(StoreFailure) {
    try check()
  }

  func close() {
    let open = idle.withLock { idle in
      defer { idle = nil }
      return idle ?? []
    }
    for connection in open { connection.close() }
  }

  private func select(
    _ table: Table, _ condition: String, _ values: [Value], _ limit: Int
  ) throws(StoreFailure) -> [Row] {
    try reading { connection in
      try connection.rows(
        of: table, condition + " LIMIT ?", values.map(SQLiteValue.init) + [.integer(Int64(max(0, limit)))])
    }
  }

  private func reading<Value>(_ body: (SQLiteConnection) throws -> Value) throws(StoreFailure) -> Value {
    if let pinned { return try StoreFailure.translating { try body(pinned) } }
    places.wait()
    defer { places.signal() }
    return try StoreFailure.translating {
      let connection = try take()
      do {
        // A reader that was kept open must not answer from a file that nobody else sees any more.
        guard !connection.hasMoved else { throw StoreFailure.fileGone(path) }
        let value = try body(connection)
        giveBack(connection)
        return value
      } catch {
        // Whatever state it is in, the next question gets a fresh one.
        connection.close()
        throw error
      }
    }
  }

  private func take() throws -> SQLiteConnection {
    let kept = try idle.withLock { idle throws(StoreFailure) in
      guard idle != nil else { throw StoreFailure(.unavailable, "this reader of the store is closed") }
      return idle?.popLast()
    }
    return try kept ?? SQLiteConnection(path: path, options: options)
  }

  private func giveBack(_ connection: SQLiteConnection) {
    let isKept = idle.withLock { idle in
      idle?.append(connection)
      return idle != nil
    }
    if !isKept { connection.close() }
  }
}

extension SQLiteValue {
  init(_ value: Value) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .text(let value): self = .text(value)
    case .bytes(let value): self = .blob(value)
    }
  }
}
