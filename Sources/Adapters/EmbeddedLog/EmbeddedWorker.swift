import PurchasesContracts
import PurchasesCore
import PurchasesSQLite

/// A member of a consumer group on a log file.
///
/// The file holds the members with their leases, and one owner per partition. A member learns of a change from the group's
/// generation, lets go of what is no longer its share (`revoked`, then `release`), and takes what nobody owns. Only the
/// partitions that move stop; the others go on. A member that stays silent for its session time-out is removed by the
/// next member that looks; until somebody has removed it, its work is still safe and still counts.
///
/// A static member keeps its share when it closes, until its lease runs out, so that a restart finds everything in place.
final class EmbeddedWorker: LogWorker {
  struct Position {
    let id: Int64
    /// Where to read next; nil until `start`.
    var offset: Int64?
    var isPaused = false
    var isRevoked = false
  }

  let log: EmbeddedLog
  let settings: WorkerSettings
  let cursor: LogCursor
  var member: GroupMember
  var owned: [TopicPartition: Position] = [:]
  /// Set when the membership was found to be over; the next poll joins again.
  var isLost = false
  /// The generation that `owned` was last compared with.
  var comparedGeneration: Int64 = -1
  private var nextHeartbeat: MonotonicTime
  private var lastRead: TopicPartition?
  private var isClosed = false

  /// Heartbeats per session time-out, as Kafka recommends: two may be late before anybody misses the member.
  private static let heartbeatsPerSession: Int64 = 3

  init(log: EmbeddedLog, settings: WorkerSettings) throws(LogFailure) {
    guard settings.sessionTimeoutMilliseconds > 0, !settings.instance.isEmpty, !settings.group.isEmpty else {
      throw LogFailure(.refused, "a worker needs a group, an instance name and a session time-out above zero")
    }
    self.log = log
    self.settings = settings
    cursor = try LogCursor(log: log)
    let now = log.clock.now()
    member = try log.writer.perform { transaction in try GroupMember.join(settings, at: now, in: transaction) }
    nextHeartbeat = .now
    scheduleHeartbeat()
  }

  deinit { close() }

  private func scheduleHeartbeat() {
    nextHeartbeat = MonotonicTime.now.advanced(
      byMilliseconds: settings.sessionTimeoutMilliseconds / Self.heartbeatsPerSession)
  }

  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    let deadline = MonotonicTime.now.advanced(byMilliseconds: waitMilliseconds)
    return try asLogFailure {
      while true {
        if MonotonicTime.now >= nextHeartbeat { try heartbeat() }
        _ = try cursor.hasNews()
        if let change = try compareMembership() { return change }
        let records = try fetch(max: max)
        if !records.isEmpty { return .records(records, member.membership) }
        repeat {
          let now = MonotonicTime.now
          if now >= deadline { return .idle(atEnd: try partitionsAtEnd()) }
          if now >= nextHeartbeat { try heartbeat() }
          cursor.sleep(until: min(deadline, nextHeartbeat))
        } while try !cursor.hasNews()
      }
    }
  }

  private func heartbeat() throws {
    let member = member
    let now = log.clock.now()
    // A member that is gone finds that out when it compares; the renewal then changes nothing.
    try log.writer.perform { transaction in try member.renew(at: now, in: transaction) }
    scheduleHeartbeat()
  }

  /// Takes from each partition in turn, beginning after the one that was read last, so that a full one starves nobody.
  private func fetch(max: Int) throws -> [StoredRecord] {
    let readable = owned.filter { $0.value.offset != nil && !$0.value.isPaused && !$0.value.isRevoked }.keys.sorted()
    guard !readable.isEmpty, max > 0 else { return [] }
    let first = lastRead.flatMap { last in readable.firstIndex { $0 > last } } ?? 0
    var records: [StoredRecord] = []
    var bytes = 0
    for index in 0..<readable.count where records.count < max && bytes < LogCursor.maximumReadBytes {
      let partition = readable[(first + index) % readable.count]
      guard let position = owned[partition], let offset = position.offset else { continue }
      let before = records.count
      _ = try cursor.read(
        partition, id: position.id, from: offset, max: max - records.count, into: &records, bytes: &bytes)
      guard records.count > before, let last = records.last else { continue }
      owned[partition]?.offset = last.coordinates.offset + 1
      lastRead = partition
    }
    return records
  }

  private func partitionsAtEnd() throws -> Set<TopicPartition> {
    var atEnd: Set<TopicPartition> = []
    for (partition, position) in owned {
      if let offset = position.offset, !position.isRevoked, try cursor.end(of: position.id) <= offset {
        atEnd.insert(partition)
      }
    }
    return atEnd
  }

  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    var offsets: [TopicPartition: Int64?] = [:]
    for partition in partitions {
      let id = try cursor.id(of: partition)
      let next = try asLogFailure {
        try cursor.connection.integer(
          "SELECT next FROM committed_offset WHERE group_id = ? AND partition_id = ?", .integer(member.group),
          .integer(id))
      }
      offsets.updateValue(next, forKey: partition)
    }
    return offsets
  }

  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) {
    for (partition, offset) in offsets {
      guard let position = owned[partition] else {
        throw LogFailure(.stale, "\(partition) is not assigned to \(settings.instance)")
      }
      let end = try asLogFailure { try cursor.end(of: position.id) }
      guard offset >= 0, offset <= end else {
        throw LogFailure(.lost, "\(partition): offset \(offset) is not there, the log ends at \(end)")
      }
    }
    for (partition, offset) in offsets {
      owned[partition]?.offset = offset
      owned[partition]?.isPaused = false
    }
  }

  func pause(_ partitions: [TopicPartition]) throws(LogFailure) {
    for partition in partitions { owned[partition]?.isPaused = true }
  }

  func membership() throws(LogFailure) -> Membership { member.membership }

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    let member = member
    let now = log.clock.now()
    var targets: [(id: Int64, partition: TopicPartition, offset: Int64)] = []
    for (partition, offset) in offsets { targets.append((try cursor.id(of: partition), partition, offset)) }
    let moves = targets
    try log.writer.perform(
      records: records.count, bytes: records.reduce(0) { $0 + RecordRow.size($1.record) }
    ) { transaction in
      try member.check(membership, owning: moves.map { ($0.id, $0.partition) }, in: transaction)
      for move in moves { try Self.checkMove(move, group: member.group, in: transaction) }
      let placed = try records.map { try transaction.place($0) }
      for record in placed { _ = try transaction.append(record) }
      for move in moves {
        try transaction.write(
          """
          INSERT INTO committed_offset (group_id, partition_id, next) VALUES (?,?,?)
          ON CONFLICT DO UPDATE SET next = excluded.next
          """, .integer(member.group), .integer(move.id), .integer(move.offset))
      }
      try member.renew(at: now, in: transaction)
    }
    scheduleHeartbeat()
  }

  private static func checkMove(
    _ move: (id: Int64, partition: TopicPartition, offset: Int64), group: Int64, in transaction: WriteTransaction
  ) throws {
    let present = try transaction.connection.integer(
      "SELECT next FROM committed_offset WHERE group_id = ? AND partition_id = ?", .integer(group), .integer(move.id))
    if let present, move.offset < present {
      throw LogFailure(
        .refused, "\(move.partition): the committed offset would go back from \(present) to \(move.offset)")
    }
    let end = try transaction.connection.integer(
      "SELECT coalesce(max(\"offset\") + 1, 0) FROM \(LogSchema.recordTable(move.id))")
    guard move.offset >= 0, move.offset <= end ?? 0 else {
      throw LogFailure(.refused, "\(move.partition): offset \(move.offset) is beyond the end of the partition")
    }
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    if !settings.isStatic {
      let member = member
      // Leaving is a courtesy to the others: if it fails, the lease runs out.
      _ = try? log.writer.perform { transaction in try member.leave(in: transaction) }
    }
    owned.removeAll()
    cursor.close()
  }
}
