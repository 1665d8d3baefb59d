import PurchasesContracts
import PurchasesCore
import PurchasesSQLite

/// The one place where records enter the file. Lives on the writer's thread and is used for one transaction after another.
///
/// Work that runs in it checks first and writes then: a ``LogFailure`` refuses that piece of work alone, an SQLite error
/// undoes the whole transaction.
final class WriteTransaction {
  let connection: SQLiteConnection
  private(set) var writes = 0
  private var number = 0
  private var targets: [String: TopicTarget] = [:]
  private var lastTarget: TopicTarget?
  private var touched: [PartitionTarget] = []
  private var nextUnkeyed: Int32 = 0

  init(connection: SQLiteConnection) { self.connection = connection }

  func begin() {
    number += 1
    writes = 0
    touched.removeAll(keepingCapacity: true)
  }

  /// Writes down what is kept per block and partition; the last step before the commit.
  func finish() throws(SQLiteError) {
    for partition in touched { try writeBlock(of: partition) }
  }

  /// Forgets what a rolled-back transaction may have created.
  func rolledBack() {
    targets.removeAll()
    lastTarget = nil
  }

  /// Reads a topic's limits again before the next record.
  func forget(topic: String) {
    targets[topic] = nil
    if lastTarget?.name == topic { lastTarget = nil }
  }

  // MARK: where a record goes

  final class TopicTarget {
    let name: String
    let maximumBytes: Int
    let partitions: [PartitionTarget]

    init(name: String, maximumBytes: Int, partitions: [PartitionTarget]) {
      self.name = name
      self.maximumBytes = maximumBytes
      self.partitions = partitions
    }
  }

  final class PartitionTarget {
    let id: Int64
    fileprivate let insert: SQLiteStatement
    fileprivate let end: SQLiteStatement
    /// The transaction for which the rest is valid: between two of ours, another process may have appended.
    fileprivate var transaction = 0
    fileprivate var next: Int64 = 0
    fileprivate var block: Int64 = -1
    fileprivate var latest: Int64 = .min

    fileprivate init(id: Int64, connection: SQLiteConnection) throws(SQLiteError) {
      self.id = id
      let table = LogSchema.recordTable(id)
      insert = try connection.prepare("INSERT INTO \(table) (\(RecordRow.columns)) VALUES (?,?,?,?,?)")
      end = try connection.prepare("SELECT coalesce(max(\"offset\") + 1, 0) FROM \(table)")
    }
  }

  /// A checked record and the partition it will be appended to.
  struct Placed {
    let target: PartitionTarget
    let partition: Int32
    let record: ProducedRecord
  }

  /// Checks a record and finds its partition, by the key where it names none. Writes nothing.
  func place(_ produced: ProducedRecord) throws -> Placed {
    let topic = try target(produced.topic)
    let size = RecordRow.size(produced.record)
    guard size <= topic.maximumBytes else {
      throw LogFailure(.refused, "record of \(size) bytes: topic \(topic.name) takes at most \(topic.maximumBytes)")
    }
    let count = Int32(topic.partitions.count)
    let partition: Int32
    if let asked = produced.partition {
      guard asked >= 0, asked < count else {
        throw LogFailure(.refused, "topic \(topic.name) has no partition \(asked)")
      }
      partition = asked
    } else if let key = produced.record.key {
      partition = Partitioner.partition(forKey: key, of: count)
    } else {
      nextUnkeyed = (nextUnkeyed &+ 1) & .max
      partition = nextUnkeyed % count
    }
    return Placed(target: topic.partitions[Int(partition)], partition: partition, record: produced)
  }

  private func target(_ name: String) throws -> TopicTarget {
    if let lastTarget, lastTarget.name == name { return lastTarget }
    if let known = targets[name] {
      lastTarget = known
      return known
    }
    guard let info = try TopicCatalogue.load(name, on: connection) else {
      throw LogFailure(.refused, "unknown topic \(name)")
    }
    var partitions: [PartitionTarget] = []
    for id in info.partitions { partitions.append(try PartitionTarget(id: id, connection: connection)) }
    let made = TopicTarget(name: name, maximumBytes: info.maximumBytes, partitions: partitions)
    targets[name] = made
    lastTarget = made
    return made
  }

  /// The offset the next record of this partition gets.
  func end(of partition: PartitionTarget) throws(SQLiteError) -> Int64 {
    if partition.transaction != number {
      _ = try partition.end.step()
      partition.next = partition.end.int64(0)
      partition.end.reset()
      partition.transaction = number
      partition.block = -1
      touched.append(partition)
    }
    return partition.next
  }

  // MARK: writing

  func append(_ placed: Placed) throws(SQLiteError) -> Coordinates {
    let partition = placed.target
    let record = placed.record.record
    let offset = try end(of: partition)
    writes += 1
    try partition.insert.bind(1, offset)
    try partition.insert.bind(2, record.timestamp.milliseconds)
    try partition.insert.run(borrowing: record.key, RecordRow.encode(record.headers), record.value, from: 3)
    partition.next = offset + 1
    let block = offset / LogSchema.timestampBlock
    if block != partition.block {
      try writeBlock(of: partition)
      partition.block = block
      partition.latest = .min
    }
    partition.latest = max(partition.latest, record.timestamp.milliseconds)
    return Coordinates(topic: placed.record.topic, partition: placed.partition, offset: offset)
  }

  private func writeBlock(of partition: PartitionTarget) throws(SQLiteError) {
    guard partition.block >= 0 else { return }
    try connection.run(
      """
      INSERT INTO timestamp_block (partition_id, block, latest) VALUES (?,?,?)
      ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)
      """, .integer(partition.id), .integer(partition.block), .integer(partition.latest))
  }

  /// Runs one statement that changes something; answers how many rows it changed.
  @discardableResult
  func write(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) -> Int {
    writes += 1
    let statement = try connection.statement(sql)
    try statement.bind(values)
    try statement.run()
    return connection.changes
  }

  func execute(_ script: String) throws(SQLiteError) {
    writes += 1
    try connection.execute(script)
  }
}
