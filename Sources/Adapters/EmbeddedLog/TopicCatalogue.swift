import PurchasesContracts
import PurchasesSQLite
import Synchronization

/// What the file says about a topic. Topics are never removed and never get another number of partitions, so what was read
/// once stays true.
struct TopicInfo: Sendable {
  let id: Int64
  let name: String
  /// Row ids of its partitions, by number.
  let partitions: [Int64]
  let maximumBytes: Int
}

/// Remembers topics across connections.
final class TopicCatalogue: Sendable {
  private let known = Mutex<[String: TopicInfo]>([:])

  func find(_ name: String, on connection: SQLiteConnection) throws -> TopicInfo? {
    if let info = known.withLock({ $0[name] }) { return info }
    guard let info = try Self.load(name, on: connection) else { return nil }
    // Within a transaction that may still be rolled back, what was just created must not be remembered.
    if !connection.isInTransaction { known.withLock { $0[name] = info } }
    return info
  }

  /// The topic, or the port's failure for a topic that isn't there.
  func require(_ name: String, on connection: SQLiteConnection) throws -> TopicInfo {
    guard let info = try find(name, on: connection) else { throw LogFailure(.refused, "unknown topic \(name)") }
    return info
  }

  func require(_ partition: TopicPartition, on connection: SQLiteConnection) throws -> Int64 {
    let info = try require(partition.topic, on: connection)
    guard partition.partition >= 0, Int(partition.partition) < info.partitions.count else {
      throw LogFailure(.refused, "topic \(partition.topic) has no partition \(partition.partition)")
    }
    return info.partitions[Int(partition.partition)]
  }

  static func load(_ name: String, on connection: SQLiteConnection) throws -> TopicInfo? {
    var head: (id: Int64, maximumBytes: Int64)?
    try connection.statement("SELECT id, maximum_bytes FROM topic WHERE name = ?").eachRow(.text(name)) { row in
      head = (row.int64(0), row.int64(1))
    }
    guard let head else { return nil }
    var partitions: [Int64] = []
    try connection.statement("SELECT id FROM partition WHERE topic_id = ? ORDER BY number")
      .eachRow(.integer(head.id)) { row in partitions.append(row.int64(0)) }
    return TopicInfo(id: head.id, name: name, partitions: partitions, maximumBytes: Int(head.maximumBytes))
  }
}
