import PurchasesContracts
import PurchasesPostgres
import Synchronization

/// The half that everybody but the stages reads through: connections of its own, made as they are needed and kept for the
/// next question. Readers and writers of PostgreSQL never wait for each other.
final class PostgresStoreReader: StoreReader {
  /// Connections kept when nobody asks anything; more may be open for a while under load.
  private static let keptConnections = 4

  private let url: String
  private let idle = Mutex<[PostgresConnection]?>([])
  private let made = Mutex<[String: TableStatements]>([:])
  /// The connection, with a transaction open on it, of a reader that asks of one instant; one thread has it.
  private let pinned: PostgresConnection?

  init(url: String, pinned: PostgresConnection? = nil) {
    self.url = url
    self.pinned = pinned
  }

  func atOneInstant<Value>(_ body: (any StoreReader) throws(StoreFailure) -> Value) throws(StoreFailure) -> Value {
    guard pinned == nil else { return try body(self) }
    return try reading { connection in
      let reader = PostgresStoreReader(url: url, pinned: connection)
      var outcome: Result<Value, StoreFailure>?
      do throws(PostgresError) {
        try connection.transaction(.repeatableRead, readOnly: true) { () throws(PostgresError) in
          do throws(StoreFailure) { outcome = .success(try body(reader)) } catch { outcome = .failure(error) }
        }
      } catch {
        // A question that failed has ended the transaction, too: what failed is told, and not that.
        if case .failure(let failure)? = outcome { throw failure }
        throw error
      }
      guard let outcome else { preconditionFailure("the transaction ran its body") }
      return try outcome.get()
    }
  }

  func check() throws(StoreFailure) {
    try reading { connection in try Migration.check(connection) }
  }

  func row(_ key: RowKey) throws(StoreFailure) -> Row? {
    guard key.isStorable else { return nil }
    return try rows(key.table, prefix: key.values, after: nil, limit: 1).first
  }

  func rows(_ keys: [RowKey]) throws(StoreFailure) -> [RowKey: Row] {
    // No row has such a key, and the server would refuse the question.
    let lists = Dictionary(grouping: keys.filter(\.isStorable), by: \.table)
    guard !lists.isEmpty else { return [:] }
    let steps = lists.map { statements($0.key).step(selecting: $0.value) }
    return try reading { connection in
      var found: [RowKey: Row] = [:]
      for (keys, result) in try zip(lists.values, connection.pipeline(steps)) {
        for row in result {
          guard let place = row.int64(0) else { continue }
          let key = keys[Int(place) - 1]
          found[key] = Row(key, row.values(key.table.columns, from: 1))
        }
      }
      return found
    }
  }

  /// Made once for each table: their texts are long.
  private func statements(_ table: Table) -> TableStatements {
    made.withLock { made in
      if let known = made[table.name] { return known }
      let new = TableStatements(table)
      made[table.name] = new
      return new
    }
  }

  func rows(
    _ table: Table, prefix: [Value], after: [Value]?, limit: Int
  ) throws(StoreFailure) -> [Row] {
    precondition(prefix.count <= table.key.count, "a key of \(table.name) has \(table.key.count) parts")
    let key = table.key.map { quoted($0.name) }
    var conditions: [String] = []
    for (index, column) in table.key.prefix(prefix.count).enumerated() {
      conditions.append("\(quoted(column.name)) = $\(index + 1)::\(column.type)")
    }
    var values = prefix
    if let after {
      precondition(after.count == table.key.count, "`after` is a whole key")
      let places = table.key.enumerated().map { "$\(prefix.count + $0 + 1)::\($1.type)" }
      conditions.append("(\(key.joined(separator: ", "))) > (\(places.joined(separator: ", ")))")
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
    let type = table.columns[table.index(column)].type
    return try select(table, "\(quoted(column)) = $1::\(type) ORDER BY \(key)", [value], limit)
  }

  func rows(
    _ table: Table, where column: String, atMost value: Int64, limit: Int
  ) throws(StoreFailure) -> [Row] {
    precondition(table.indexed.contains(column), "column \(column) of \(table.name) has no index")
    let order = ([column] + table.key.map(\.name)).map(quoted).joined(separator: ", ")
    return try select(table, "\(quoted(column)) <= $1::bigint ORDER BY \(order)", [.integer(value)], limit)
  }

  func count(_ table: Table) throws(StoreFailure) -> Int64 {
    try reading { connection in
      try connection.query("SELECT count(*) FROM \(quoted(table.name))")[0].int64(0) ?? 0
    }
  }

  func count(_ table: Table, whereSet column: String) throws(StoreFailure) -> Int64 {
    precondition(table.indexed.contains(column), "column \(column) of \(table.name) has no index")
    return try reading { connection in
      let rows = try connection.query(
        "SELECT count(*) FROM \(quoted(table.name)) WHERE \(quoted(column)) IS NOT NULL")
      return rows[0].int64(0) ?? 0
    }
  }

  func positions(stage: String) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try reading { connection in
      try connection.query(
        #"SELECT topic, "partition", epoch, next FROM stage_position WHERE stage = $1"#, [.text(stage)]
      ).positions()
    }
  }

  func books(stage: String) throws(StoreFailure) -> StageBooks {
    try reading { connection in
      // One statement, so that all of it is of one instant.
      let rows = try connection.query(
        """
        SELECT s.consumer_group, p.topic, p."partition", p.epoch, p.next, b.from_position, b.next
        FROM stage AS s LEFT JOIN stage_position AS p ON p.stage = s.name
          LEFT JOIN stage_batch AS b ON b.stage = p.stage AND b.topic = p.topic AND b."partition" = p."partition"
        WHERE s.name = $1 ORDER BY p.topic, p."partition", b.next
        """, [.text(stage)])
      var books = StageBooks()
      for row in rows {
        if books.group == nil { books = StageBooks(group: row.text(0)) }
        guard let topic = row.text(1), let number = row.int64(2), let epoch = row.int64(3) else { continue }
        guard let partition = Int32(exactly: number) else {
          throw StoreFailure(.corrupt, "stage_position names a partition beyond 32 bits")
        }
        books.add(
          TopicPartition(topic, partition), StagePosition(epoch: epoch, next: row.int64(4)),
          kept: row.int64(6).map { KeptBatch(from: row.int64(5), next: $0) })
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
    guard !values.contains(where: { $0.text?.utf8.contains(0) ?? false }) else { return [] }
    return try reading { connection in
      try connection.query(
        table.selection + "WHERE \(condition) LIMIT $\(values.count + 1)",
        values.map(PostgresValue.init) + [.int64(Int64(max(0, limit)))]
      ).map { $0.row(of: table) }
    }
  }

  /// A connection that lay idle may have been ended by the server or the network in the meantime: then, and only then, the
  /// question is asked once more on a fresh one. Reading twice does no harm.
  private func reading<Value>(_ body: (PostgresConnection) throws -> Value) throws(StoreFailure) -> Value {
    try StoreFailure.translating {
      if let pinned { return try body(pinned) }
      while true {
        let (connection, wasIdle) = try take()
        do {
          let value = try body(connection)
          giveBack(connection)
          return value
        } catch {
          connection.close()
          guard wasIdle, let lost = error as? PostgresError, lost.isConnectionLost else { throw error }
        }
      }
    }
  }

  private func take() throws -> (PostgresConnection, wasIdle: Bool) {
    let kept = try idle.withLock { idle throws(StoreFailure) in
      guard idle != nil else { throw StoreFailure(.unavailable, "this reader of the store is closed") }
      return idle?.popLast()
    }
    if let kept { return (kept, true) }
    return (try PostgresStore.connect(url), false)
  }

  private func giveBack(_ connection: PostgresConnection) {
    let isKept = idle.withLock { idle in
      guard let count = idle?.count, count < Self.keptConnections else { return false }
      idle?.append(connection)
      return true
    }
    if !isKept { connection.close() }
  }
}
