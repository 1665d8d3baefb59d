import PurchasesContracts
import PurchasesPostgres

/// The half that a stage writes through: one connection, used by one thread. A lost connection is made anew at the next
/// call; what was under way when it broke is told as `unavailable`.
final class PostgresStageStore: StageStore {
  /// Two writers that merge into the same rows may lock each other out; the server lets one of them win, and the other
  /// only has to come again. After so many times it is no longer chance.
  private static let attempts = 6

  private let url: String
  private let stage: String
  private var current: PostgresConnection?
  private var isClosed = false
  private var tables: [String: TableStatements] = [:]

  init(url: String, connection: PostgresConnection, stage: String) {
    self.url = url
    self.current = connection
    self.stage = stage
  }

  func close() {
    isClosed = true
    current?.close()
    current = nil
  }

  func claim(_ partitions: [TopicPartition]) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    let partitions = Set(partitions).sorted()
    return try StoreFailure.translating {
      try positions(
        try retrying { connection throws(PostgresError) in
          try connection.query(
            """
            INSERT INTO stage_position AS p (stage, topic, "partition", epoch)
            SELECT $1, w.topic, w.number, 1 FROM unnest($2::text[], $3::bigint[]) AS w(topic, number)
            ORDER BY w.topic COLLATE "C", w.number
            ON CONFLICT (stage, topic, "partition") DO UPDATE SET epoch = p.epoch + 1
            RETURNING p.topic, p."partition", p.epoch, p.next
            """, [.text(stage)] + partitions.columns)
        })
    }
  }

  func commit(
    _ transaction: StoreTransaction, published: [TopicPartition: Int64]
  ) throws(StoreFailure) {
    let plan = try WritePlan(transaction.writes)
    var steps = [PostgresConnection.Step("BEGIN ISOLATION LEVEL READ COMMITTED")]
    if let trimming = trimming(published) { steps.append(trimming) }
    // The fence, before any write: a batch that is in already must not be told as a conflict of its own rows.
    steps.append(entering(transaction.advances.sorted { $0.partition < $1.partition }))
    if let outbox = outbox(transaction.advances) { steps.append(outbox) }
    let firstWrite = steps.count
    for group in plan.groups { steps.append(statements(group.table).step(group)) }
    steps.append(.init("COMMIT"))
    try StoreFailure.translating {
      do {
        try retrying { connection throws(PostgresError) in try connection.pipeline(steps) }
      } catch let error as PostgresError {
        if let conflict = plan.conflict(error, firstStep: firstWrite) { throw conflict }
        let failure = StoreFailure(error)
        throw failure.kind == .fenced ? try fenced(transaction.advances) ?? failure : failure
      }
    }
  }

  func amend(_ writes: [Write], epochs: [TopicPartition: Int64]) throws(StoreFailure) {
    let plan = try WritePlan(writes)
    let partitions = epochs.keys.sorted()
    let holding = partitions.columns + [.int64Array(partitions.map { epochs[$0] })]
    try StoreFailure.translating {
      do {
        try retrying { connection in
          try connection.begin()
          // Locks the partition's row until the end, so that no claim comes in between.
          let held = try connection.query(
            """
            UPDATE stage_position AS p SET epoch = w.epoch
            FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS w(topic, number, epoch)
            WHERE p.stage = $1 AND p.topic = w.topic AND p."partition" = w.number AND p.epoch = w.epoch
            """, [.text(stage)] + holding)
          guard held.affected == partitions.count else {
            throw StoreFailure(.fenced, "another epoch is in the books of stage \(stage)")
          }
          try connection.pipeline(plan.groups.map { statements($0.table).step($0) } + [.init("COMMIT")])
        }
      } catch let error as PostgresError {
        throw plan.conflict(error, firstStep: 0) ?? StoreFailure(error)
      }
    }
  }

  func unpublished(
    _ partition: TopicPartition, beyond committed: Int64?
  ) throws(StoreFailure) -> [Unpublished] {
    try StoreFailure.translating {
      // One statement, so that batches and their blocks are of one instant.
      let rows = try connection().query(
        """
        SELECT b.next, b.from_position, b.record_count, o.records
        FROM stage_batch AS b LEFT JOIN stage_outbox AS o
          ON o.stage = b.stage AND o.topic = b.topic AND o."partition" = b."partition" AND o.next = b.next
        WHERE b.stage = $1 AND b.topic = $2 AND b."partition" = $3 AND b.next > $4::bigint
        ORDER BY b.next, o.part
        """,
        [.text(stage), .text(partition.topic), .int64(Int64(partition.partition)), .int64(committed ?? -1)])
      var found: [Unpublished] = []
      var index = 0
      while index < rows.count {
        let batch = rows[index]
        let next = batch.int64(0) ?? 0
        var records: [ProducedRecord] = []
        while index < rows.count, rows[index].int64(0) == next {
          do throws(RecordCodec.Malformed) {
            if let block = rows[index].bytes(3) { try OutboxCodec.decode(block, into: &records) }
          } catch {
            throw StoreFailure.brokenOutbox(partition)
          }
          index += 1
        }
        guard batch.int64(2) == Int64(records.count) else { throw StoreFailure.brokenOutbox(partition) }
        found.append(Unpublished(partition: partition, from: batch.int64(1), next: next, outgoing: records))
      }
      return found
    }
  }

  // MARK: connection

  private func connection() throws -> PostgresConnection {
    guard !isClosed else { throw StoreFailure(.unavailable, "this stage's store is closed") }
    if let current, current.isOpen { return current }
    current?.close()
    current = nil
    let fresh = try PostgresStore.connect(url)
    current = fresh
    return fresh
  }

  /// Runs a whole transaction, again where the server undid it in favour of another. Leaves none open behind a failure.
  @discardableResult
  private func retrying<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    var attempt = 1
    while true {
      let connection = try connection()
      do {
        return try body(connection)
      } catch let error as PostgresError where error.isRetriable && attempt < Self.attempts {
        connection.rollback()
        attempt += 1
      } catch {
        connection.rollback()
        throw error
      }
    }
  }

  private func statements(_ table: Table) -> TableStatements {
    if let known = tables[table.name] { return known }
    let made = TableStatements(table)
    tables[table.name] = made
    return made
  }
}

// MARK: parts of a transaction

extension PostgresStageStore {
  private func entering(_ advances: [Advance]) -> PostgresConnection.Step {
    .init(
      """
      INSERT INTO stage_batch (stage, topic, "partition", next, epoch, from_position, record_count)
      SELECT $1, w.topic, w.number, w.next, w.epoch, w.from_position, w.record_count
      FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS w(topic, number, next, epoch, from_position, record_count)
      """,
      [.text(stage)] + advances.map(\.partition).columns + [
        .int64Array(advances.map(\.next)), .int64Array(advances.map(\.epoch)), .int64Array(advances.map(\.from)),
        .int64Array(advances.map { Int64($0.outgoing.count) }),
      ])
  }

  private func outbox(_ advances: [Advance]) -> PostgresConnection.Step? {
    var partitions: [TopicPartition] = []
    var nexts: [Int64?] = []
    var parts: [Int64?] = []
    var blocks: [[UInt8]?] = []
    for advance in advances {
      for (part, block) in OutboxCodec.encode(advance.outgoing).enumerated() {
        partitions.append(advance.partition)
        nexts.append(advance.next)
        parts.append(Int64(part))
        blocks.append(block)
      }
    }
    guard !blocks.isEmpty else { return nil }
    return .init(
      """
      INSERT INTO stage_outbox (stage, topic, "partition", next, part, records)
      SELECT $1, w.topic, w.number, w.next, w.part, w.records
      FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
        AS w(topic, number, next, part, records)
      """, [.text(stage)] + partitions.columns + [.int64Array(nexts), .int64Array(parts), .bytesArray(blocks)])
  }

  private func trimming(_ published: [TopicPartition: Int64]) -> PostgresConnection.Step? {
    guard !published.isEmpty else { return nil }
    let partitions = published.keys.sorted()
    return .init(
      """
      DELETE FROM stage_batch AS b USING unnest($2::text[], $3::bigint[], $4::bigint[]) AS w(topic, number, next)
      WHERE b.stage = $1 AND b.topic = w.topic AND b."partition" = w.number AND b.next <= w.next
      """, [.text(stage)] + partitions.columns + [.int64Array(partitions.map { published[$0] })])
  }

  /// The schema has refused the batch; this says what is in the books. Nil where it fits by now.
  private func fenced(_ advances: [Advance]) throws -> StoreFailure? {
    let rows = try connection().query(
      """
      SELECT p.topic, p."partition", p.epoch, p.next
      FROM unnest($2::text[], $3::bigint[]) AS w(topic, number)
      JOIN stage_position AS p ON p.stage = $1 AND p.topic = w.topic AND p."partition" = w.number
      """, [.text(stage)] + advances.map(\.partition).columns)
    let found = try positions(rows)
    for advance in advances {
      guard let position = found[advance.partition] else {
        return StoreFailure(.fenced, "\(advance.partition) was never claimed for stage \(stage)")
      }
      if position.epoch != advance.epoch {
        return StoreFailure(.fenced, "\(advance.partition) is under epoch \(position.epoch), not \(advance.epoch)")
      }
      if position.next != advance.from {
        func text(_ position: Int64?) -> String { position.map(String.init) ?? "no position" }
        return StoreFailure(
          .fenced, "\(advance.partition) stands at \(text(position.next)), not at \(text(advance.from))")
      }
    }
    return nil
  }
}

// MARK: reading

extension PostgresStageStore {
  func fetch(_ needs: Set<Need>) throws(StoreFailure) -> Fetched {
    guard !needs.isEmpty else { return Fetched() }
    var keys: [String: [RowKey]] = [:]
    var queries: [Need] = []
    for need in needs {
      if case .row(let key) = need {
        // No row has such a key, and the server would refuse the question.
        if key.isStorable { keys[key.table.name, default: []].append(key) }
      } else {
        queries.append(need)
      }
    }
    let lists = Array(keys.values)
    let steps = lists.map { statements($0[0].table).step(selecting: $0) } + queries.compactMap(query)
    return try StoreFailure.translating {
      let results = try retrying { connection in try connection.pipeline(steps) }
      var fetched = Fetched()
      fetched.rows.reserveCapacity(needs.count)
      for (keys, result) in zip(lists, results) {
        for row in result {
          guard let place = row.int64(0) else { continue }
          let key = keys[Int(place) - 1]
          fetched.rows[key] = Row(key, row.values(key.table.columns, from: 1))
        }
      }
      for (need, result) in zip(queries, results.dropFirst(lists.count)) {
        let table = need.isOfWatch ? Table.auditWatch : Table.account
        fetched.queries[need] = result.map { $0.row(of: table) }
      }
      return fetched
    }
  }

  private func query(_ need: Need) -> PostgresConnection.Step? {
    switch need {
    case .row: nil
    case .due(let partition, let instant, let limit):
      .init(
        Table.account.selection
          + #"WHERE "partition" = $1 AND due_at <= $2 ORDER BY due_at, environment, account LIMIT $3"#,
        [.int64(Int64(partition)), .int64(instant.milliseconds), .int64(Int64(limit))])
    case .outdated(let partition, let version, let limit):
      .init(
        Table.account.selection
          + #"WHERE catalogue_version = $1 AND "partition" = $2 ORDER BY environment, account LIMIT $3"#,
        [.text(version), .int64(Int64(partition)), .int64(Int64(limit))])
    case .watch(let instant, let limit):
      .init(
        Table.auditWatch.selection + "WHERE look_at <= $1 ORDER BY look_at, environment, subject LIMIT $2",
        [.int64(instant.milliseconds), .int64(Int64(limit))])
    }
  }

  private func positions(_ rows: PostgresResult) throws -> [TopicPartition: StagePosition] {
    try rows.positions()
  }
}

extension Need {
  fileprivate var isOfWatch: Bool { if case .watch = self { true } else { false } }
}

extension RowKey {
  var isStorable: Bool { !values.contains { $0.text?.utf8.contains(0) ?? false } }
}

extension Table {
  /// `SELECT`, whole rows, `FROM`.
  var selection: String {
    "SELECT \((key + columns).map { quoted($0.name) }.joined(separator: ", ")) FROM \(quoted(name)) "
  }
}

extension PostgresRow {
  func row(of table: Table) -> Row {
    Row(RowKey(table, values(table.key, from: 0)), values(table.columns, from: table.key.count))
  }
}

extension PostgresResult {
  /// Rows of topic, partition, epoch and next.
  func positions() throws(StoreFailure) -> [TopicPartition: StagePosition] {
    var positions: [TopicPartition: StagePosition] = [:]
    for row in self {
      guard let topic = row.text(0), let partition = row.int64(1).flatMap({ Int32(exactly: $0) }),
        let epoch = row.int64(2)
      else { throw StoreFailure(.corrupt, "stage_position names a partition beyond 32 bits") }
      positions[TopicPartition(topic, partition)] = StagePosition(epoch: epoch, next: row.int64(3))
    }
    return positions
  }
}

extension [TopicPartition] {
  /// Two arrays for `unnest`: topics and partition numbers.
  fileprivate var columns: [PostgresValue] {
    [.textArray(map(\.topic)), .int64Array(map { Int64($0.partition) })]
  }
}

extension WritePlan {
  /// A conflict, where the failed step was an insert that met a row.
  fileprivate func conflict(_ error: PostgresError, firstStep: Int) -> StoreFailure? {
    guard error.isUniqueViolation, let step = error.step, groups.indices.contains(step - firstStep) else { return nil }
    let group = groups[step - firstStep]
    return group.kind == .insert ? StoreFailure.conflict(group.table) : nil
  }
}

extension StoreFailure {
  static func brokenOutbox(_ partition: TopicPartition) -> StoreFailure {
    StoreFailure(.corrupt, "the outgoing records kept for \(partition) can't be read")
  }
}
