import PurchasesContracts
import PurchasesSQLite

/// The half that a stage writes through: one connection, used by one thread.
final class SQLiteStageStore: StageStore {
  let connection: SQLiteConnection
  let stage: String
  private let writing: WriterQueue
  private var tables: [String: TableStatements] = [:]

  init(connection: SQLiteConnection, stage: String, writing: WriterQueue) {
    self.connection = connection
    self.stage = stage
    self.writing = writing
  }

  deinit { connection.close() }

  func close() {
    tables = [:]
    connection.close()
  }

  func claim(_ partitions: [TopicPartition]) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try write {
      var positions: [TopicPartition: StagePosition] = [:]
      for partition in partitions {
        let raised = try connection.run(
          #"UPDATE stage_position SET epoch = epoch + 1 WHERE stage = ? AND topic = ? AND "partition" = ?"#,
          .text(stage), .text(partition.topic), .integer(Int64(partition.partition)))
        if raised == 0 {
          try connection.run(
            #"INSERT INTO stage_position (stage, topic, "partition", epoch) VALUES (?, ?, ?, 1)"#,
            .text(stage), .text(partition.topic), .integer(Int64(partition.partition)))
        }
        positions[partition] = try position(partition)
      }
      return positions
    }
  }

  func commit(
    _ transaction: StoreTransaction, published: [TopicPartition: Int64]
  ) throws(StoreFailure) {
    let plan = try WritePlan(transaction.writes)
    let blocks = transaction.advances.map { OutboxCodec.encode($0.outgoing) }
    try write {
      for advance in transaction.advances {
        try fence(advance.partition, epoch: advance.epoch, at: .some(advance.from))
      }
      for (partition, next) in published {
        try connection.run(
          #"DELETE FROM stage_batch WHERE stage = ? AND topic = ? AND "partition" = ? AND next <= ?"#,
          .text(stage), .text(partition.topic), .integer(Int64(partition.partition)), .integer(next))
      }
      for (advance, blocks) in zip(transaction.advances, blocks) { try keep(advance, blocks) }
      for group in plan.groups { try statements(group.table).apply(group) }
    }
  }

  func amend(_ writes: [Write], epochs: [TopicPartition: Int64]) throws(StoreFailure) {
    let plan = try WritePlan(writes)
    try write {
      for (partition, epoch) in epochs {
        try fence(partition, epoch: epoch, at: nil)
        // Says so to the schema as well, whose trigger refuses an epoch that is smaller.
        try connection.run(
          #"UPDATE stage_position SET epoch = ? WHERE stage = ? AND topic = ? AND "partition" = ?"#,
          .integer(epoch), .text(stage), .text(partition.topic), .integer(Int64(partition.partition)))
      }
      for group in plan.groups { try statements(group.table).apply(group) }
    }
  }

  func unpublished(
    _ partition: TopicPartition, beyond committed: Int64?
  ) throws(StoreFailure) -> [Unpublished] {
    try StoreFailure.translating {
      var found: [Unpublished] = []
      // One statement, so that batches and their blocks are of one instant.
      let statement = try connection.statement(
        """
        SELECT b.next, b.from_position, b.record_count, o.records
        FROM stage_batch AS b LEFT JOIN stage_outbox AS o
          ON o.stage = b.stage AND o.topic = b.topic AND o."partition" = b."partition" AND o.next = b.next
        WHERE b.stage = ?1 AND b.topic = ?2 AND b."partition" = ?3 AND b.next > coalesce(?4, -1)
        ORDER BY b.next, o.part
        """)
      defer { statement.reset() }
      try statement.bind([
        .text(stage), .text(partition.topic), .integer(Int64(partition.partition)), SQLiteValue(committed),
      ])
      var batch: (next: Int64, from: Int64?, count: Int64)?
      var records: [ProducedRecord] = []
      func finish() throws {
        guard let batch else { return }
        guard batch.count == records.count else { throw StoreFailure.brokenOutbox(partition) }
        found.append(Unpublished(partition: partition, from: batch.from, next: batch.next, outgoing: records))
        records = []
      }
      while try statement.step() {
        let next = statement.int64(0)
        if batch?.next != next {
          try finish()
          batch = (next, statement.optionalInt64(1), statement.int64(2))
        }
        guard let block = statement.optionalBytes(3) else { continue }
        do throws(RecordCodec.Malformed) {
          try OutboxCodec.decode(block, into: &records)
        } catch {
          throw StoreFailure.brokenOutbox(partition)
        }
      }
      try finish()
      return found
    }
  }

  // MARK: parts of a transaction

  private func write<Value>(_ body: () throws -> Value) throws(StoreFailure) -> Value {
    try StoreFailure.translating {
      try writing.withLock {
        guard !connection.hasMoved else { throw StoreFailure.fileGone(connection.path) }
        return try connection.transaction(.immediate, body)
      }
    }
  }

  private func position(_ partition: TopicPartition) throws -> StagePosition? {
    let statement = try connection.statement(
      #"SELECT epoch, next FROM stage_position WHERE stage = ? AND topic = ? AND "partition" = ?"#)
    defer { statement.reset() }
    try statement.bind([.text(stage), .text(partition.topic), .integer(Int64(partition.partition))])
    guard try statement.step() else { return nil }
    return StagePosition(epoch: statement.int64(0), next: statement.optionalInt64(1))
  }

  /// The schema's triggers test the same; asked here, the answer can say what is in the books.
  private func fence(_ partition: TopicPartition, epoch: Int64, at expected: Int64??) throws {
    guard let found = try position(partition) else {
      throw StoreFailure(.fenced, "\(partition) was never claimed for stage \(stage)")
    }
    guard found.epoch == epoch else {
      throw StoreFailure(.fenced, "\(partition) is under epoch \(found.epoch), not \(epoch)")
    }
    if let expected, found.next != expected {
      throw StoreFailure(
        .fenced,
        "\(partition) stands at \(found.next.map(String.init) ?? "no position"), not at \(expected.map(String.init) ?? "none")"
      )
    }
  }

  private func keep(_ advance: Advance, _ blocks: [[UInt8]]) throws {
    let partition = advance.partition
    try connection.run(
      """
      INSERT INTO stage_batch (stage, topic, "partition", next, epoch, from_position, record_count)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """,
      .text(stage), .text(partition.topic), .integer(Int64(partition.partition)), .integer(advance.next),
      .integer(advance.epoch), SQLiteValue(advance.from), .integer(Int64(advance.outgoing.count)))
    for (part, block) in blocks.enumerated() {
      try connection.run(
        #"INSERT INTO stage_outbox (stage, topic, "partition", next, part, records) VALUES (?, ?, ?, ?, ?, ?)"#,
        .text(stage), .text(partition.topic), .integer(Int64(partition.partition)), .integer(advance.next),
        .integer(Int64(part)), .blob(block))
    }
  }

  private func statements(_ table: Table) -> TableStatements {
    if let known = tables[table.name] { return known }
    let made = TableStatements(table, connection)
    tables[table.name] = made
    return made
  }
}

// MARK: reading

extension SQLiteStageStore {
  func fetch(_ needs: Set<Need>) throws(StoreFailure) -> Fetched {
    guard !needs.isEmpty else { return Fetched() }
    return try StoreFailure.translating {
      // One transaction around all: one instant, and the file is locked once and not once per row.
      try connection.transaction(.deferred) {
        var fetched = Fetched()
        fetched.rows.reserveCapacity(needs.count)
        for need in needs {
          switch need {
          case .row(let key):
            if let row = try statements(key.table).row(key) { fetched.rows[key] = row }
          case .watch(let instant, let limit):
            fetched.queries[need] = try connection.rows(
              of: .auditWatch, "look_at <= ? ORDER BY look_at, environment, subject LIMIT ?",
              [.integer(instant.milliseconds), .integer(Int64(limit))])
          case .due(let partition, let instant, let limit):
            fetched.queries[need] = try accounts(
              #""partition" = ? AND due_at <= ? ORDER BY due_at, environment, account LIMIT ?"#,
              .integer(Int64(partition)), .integer(instant.milliseconds), .integer(Int64(limit)))
          case .outdated(let partition, let version, let limit):
            fetched.queries[need] = try accounts(
              #"catalogue_version = ? AND "partition" = ? ORDER BY environment, account LIMIT ?"#,
              .text(version), .integer(Int64(partition)), .integer(Int64(limit)))
          }
        }
        return fetched
      }
    }
  }

  private func accounts(_ condition: String, _ values: SQLiteValue...) throws -> [Row] {
    try connection.rows(of: .account, condition, values)
  }
}

extension SQLiteConnection {
  /// Whole rows, by a condition that may go on with an order and a limit.
  func rows(of table: Table, _ condition: String, _ values: [SQLiteValue]) throws -> [Row] {
    let columns = (table.key + table.columns).map { quoted($0.name) }.joined(separator: ", ")
    let statement = try statement("SELECT \(columns) FROM \(quoted(table.name)) WHERE \(condition)")
    defer { statement.reset() }
    try statement.bind(values)
    var rows: [Row] = []
    while try statement.step() {
      let key = RowKey(table, statement.values(table.key, from: 0))
      rows.append(Row(key, statement.values(table.columns, from: table.key.count)))
    }
    return rows
  }
}

extension StoreFailure {
  static func brokenOutbox(_ partition: TopicPartition) -> StoreFailure {
    StoreFailure(.corrupt, "the outgoing records kept for \(partition) can't be read")
  }
}

extension StoreFailure {
  static func fileGone(_ path: String) -> StoreFailure {
    StoreFailure(
      .refused,
      "the store \(path) was deleted, moved or replaced while it was open: nothing more is written to it. Put it back, or "
        + "rebuild it with `purchases replay`, and start again.")
  }
}
