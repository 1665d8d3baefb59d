import PurchasesContracts
import PurchasesCore
import PurchasesSQLite

/// One membership of one worker, and every rule about it that the file enforces. All methods run inside a write
/// transaction, so that what was checked still holds when it is acted on.
struct GroupMember: Sendable {
  let group: Int64
  let instance: String
  /// Which start under this instance name this is.
  let epoch: Int64
  let session: Int64
  /// The group's generation as of the last change of this worker's share.
  var generation: Int64

  /// What a batch carries: the start it belongs to and the generation it was read in.
  var membership: Membership {
    var token: [UInt8] = []
    RecordCodec.append(epoch, to: &token)
    RecordCodec.append(generation, to: &token)
    return Membership(token: token)
  }

  private static func read(_ membership: Membership) -> (epoch: Int64, generation: Int64)? {
    var offset = 0
    guard let epoch: Int64 = try? RecordCodec.integer(membership.token, at: &offset),
      let generation: Int64 = try? RecordCodec.integer(membership.token, at: &offset)
    else { return nil }
    return (epoch, generation)
  }

  // MARK: coming and going

  /// Takes the instance name, fencing whoever had it, and joins the group.
  static func join(
    _ settings: WorkerSettings, at now: Instant, in transaction: WriteTransaction
  ) throws -> GroupMember {
    for topic in settings.topics where try TopicCatalogue.load(topic, on: transaction.connection) == nil {
      throw LogFailure(.refused, "unknown topic \(topic)")
    }
    try transaction.write(
      "INSERT INTO instance (name, epoch) VALUES (?, 1) ON CONFLICT DO UPDATE SET epoch = epoch + 1",
      .text(settings.instance))
    let epoch = try Self.epoch(of: settings.instance, in: transaction)
    return try enter(settings, epoch: epoch, at: now, in: transaction)
  }

  /// Joins again after the lease ran out, under the same epoch: it is still the same start.
  static func rejoin(
    _ settings: WorkerSettings, epoch: Int64, at now: Instant, in transaction: WriteTransaction
  ) throws -> GroupMember {
    guard try Self.epoch(of: settings.instance, in: transaction) == epoch else {
      throw LogFailure(.fenced, "another worker started under the name \(settings.instance)")
    }
    return try enter(settings, epoch: epoch, at: now, in: transaction)
  }

  private static func enter(
    _ settings: WorkerSettings, epoch: Int64, at now: Instant, in transaction: WriteTransaction
  ) throws -> GroupMember {
    try transaction.write(
      "INSERT INTO consumer_group (name, generation) VALUES (?, 0) ON CONFLICT DO NOTHING", .text(settings.group))
    let group =
      try transaction.connection.integer("SELECT id FROM consumer_group WHERE name = ?", .text(settings.group)) ?? 0
    try removeExpired(from: group, at: now, in: transaction)
    let generation = try advance(group, in: transaction)
    let lease = now.advanced(byMilliseconds: settings.sessionTimeoutMilliseconds).milliseconds
    // The row is kept where there is one, and with it what the name owns: the share passes to the new start.
    try transaction.write(
      """
      INSERT INTO member (group_id, instance, epoch, joined, session, lease_until) VALUES (?,?,?,?,?,?)
      ON CONFLICT DO UPDATE SET epoch = excluded.epoch, joined = excluded.joined, session = excluded.session,
        lease_until = excluded.lease_until
      """, .integer(group), .text(settings.instance), .integer(epoch), .integer(generation),
      .integer(settings.sessionTimeoutMilliseconds), .integer(lease))
    try transaction.write(
      "DELETE FROM subscription WHERE group_id = ? AND instance = ?", .integer(group), .text(settings.instance))
    for topic in settings.topics {
      try transaction.write(
        """
        INSERT INTO subscription (group_id, instance, topic_id) SELECT ?, ?, id FROM topic WHERE name = ?
        ON CONFLICT DO NOTHING
        """, .integer(group), .text(settings.instance), .text(topic))
    }
    return GroupMember(
      group: group, instance: settings.instance, epoch: epoch, session: settings.sessionTimeoutMilliseconds,
      generation: generation)
  }

  func leave(in transaction: WriteTransaction) throws(SQLiteError) {
    let gone = try transaction.write(
      "DELETE FROM member WHERE group_id = ? AND instance = ? AND epoch = ?", .integer(group), .text(instance),
      .integer(epoch))
    if gone > 0 { _ = try Self.advance(group, in: transaction) }
  }

  /// Extends the lease and removes members whose lease has run out.
  func renew(at now: Instant, in transaction: WriteTransaction) throws(SQLiteError) {
    try transaction.write(
      "UPDATE member SET lease_until = ? WHERE group_id = ? AND instance = ? AND epoch = ?",
      .integer(now.advanced(byMilliseconds: session).milliseconds), .integer(group), .text(instance), .integer(epoch))
    if try Self.removeExpired(from: group, at: now, in: transaction) > 0 {
      _ = try Self.advance(group, in: transaction)
    }
  }

  /// A lease that ends further away than any could is left over from a clock that has since been set back.
  @discardableResult
  private static func removeExpired(
    from group: Int64, at now: Instant, in transaction: WriteTransaction
  ) throws(SQLiteError) -> Int {
    try transaction.write(
      "DELETE FROM member WHERE group_id = ?1 AND (lease_until < ?2 OR lease_until > ?2 + 2 * session)",
      .integer(group), .integer(now.milliseconds))
  }

  private static func epoch(of instance: String, in transaction: WriteTransaction) throws(SQLiteError) -> Int64 {
    try transaction.connection.integer("SELECT epoch FROM instance WHERE name = ?", .text(instance)) ?? 0
  }

  private static func advance(_ group: Int64, in transaction: WriteTransaction) throws(SQLiteError) -> Int64 {
    try transaction.write("UPDATE consumer_group SET generation = generation + 1 WHERE id = ?", .integer(group))
    return try transaction.connection.integer("SELECT generation FROM consumer_group WHERE id = ?", .integer(group))
      ?? 0
  }

  // MARK: owning partitions

  /// Takes partitions that nobody else owns; nil when the group has changed since `seen`.
  func claim(_ partitions: [Int64], seen: Int64, in transaction: WriteTransaction) throws -> Int64? {
    try checkEpoch(in: transaction)
    let present = try transaction.connection.integer(
      "SELECT generation FROM consumer_group WHERE id = ?", .integer(group))
    guard present == seen else { return nil }
    let generation = try Self.advance(group, in: transaction)
    for partition in partitions {
      try transaction.write(
        """
        INSERT INTO owner (group_id, partition_id, instance, since) VALUES (?,?,?,?)
        ON CONFLICT DO UPDATE SET since = excluded.since WHERE instance = excluded.instance
        """, .integer(group), .integer(partition), .text(instance), .integer(generation))
    }
    return generation
  }

  func release(_ partitions: [Int64], in transaction: WriteTransaction) throws {
    try checkEpoch(in: transaction)
    for partition in partitions {
      try transaction.write(
        "DELETE FROM owner WHERE group_id = ? AND partition_id = ? AND instance = ?", .integer(group),
        .integer(partition), .text(instance))
    }
    _ = try Self.advance(group, in: transaction)
  }

  // MARK: committing

  private func checkEpoch(in transaction: WriteTransaction) throws {
    guard try Self.epoch(of: instance, in: transaction) == epoch else {
      throw LogFailure(.fenced, "another worker started under the name \(instance)")
    }
  }

  /// Refuses a commit whose batch belongs to a membership that is over, or that moves partitions which this worker did
  /// not hold all the time since the batch was read.
  func check(
    _ membership: Membership, owning partitions: [(id: Int64, partition: TopicPartition)],
    in transaction: WriteTransaction
  ) throws {
    try checkEpoch(in: transaction)
    guard let token = Self.read(membership), token.epoch == epoch else {
      throw LogFailure(.stale, "the membership is not one of this worker's")
    }
    let joined = try transaction.connection.integer(
      "SELECT joined FROM member WHERE group_id = ? AND instance = ? AND epoch = ?", .integer(group), .text(instance),
      .integer(epoch))
    guard let joined, joined <= token.generation else {
      throw LogFailure(.stale, "\(instance) stayed silent for longer than its session and was removed from the group")
    }
    for (id, partition) in partitions {
      let since = try transaction.connection.integer(
        "SELECT since FROM owner WHERE group_id = ? AND partition_id = ? AND instance = ?", .integer(group),
        .integer(id), .text(instance))
      guard let since, since <= token.generation else {
        throw LogFailure(.stale, "\(partition) has been assigned anew since the batch was read")
      }
    }
  }
}

/// What the file says about a group, read in one snapshot.
struct GroupView {
  var generation: Int64 = -1
  /// The newest start under the worker's instance name.
  var epoch: Int64 = 0
  var isMember = false
  var members: [(instance: String, topics: Set<Int64>)] = []
  /// Owner of each owned partition, by row id.
  var owners: [Int64: String] = [:]

  static func load(of member: GroupMember, on connection: SQLiteConnection) throws -> GroupView {
    try connection.transaction(.deferred) {
      var view = GroupView()
      let group = SQLiteValue.integer(member.group)
      view.generation =
        try connection.integer("SELECT generation FROM consumer_group WHERE id = ?", group) ?? view.generation
      view.epoch = try connection.integer("SELECT epoch FROM instance WHERE name = ?", .text(member.instance)) ?? 0
      try connection.statement("SELECT instance, joined FROM member WHERE group_id = ? ORDER BY instance")
        .eachRow(group) { row in
          view.members.append((row.string(0), []))
          // A row of another join under the same name is a newer membership than the one asked about.
          if row.string(0) == member.instance, row.int64(1) <= member.generation { view.isMember = true }
        }
      try connection.statement("SELECT instance, topic_id FROM subscription WHERE group_id = ?").eachRow(group) { row in
        if let index = view.members.firstIndex(where: { $0.instance == row.string(0) }) {
          view.members[index].topics.insert(row.int64(1))
        }
      }
      try connection.statement("SELECT partition_id, instance FROM owner WHERE group_id = ?").eachRow(group) { row in
        view.owners[row.int64(0)] = row.string(1)
      }
      return view
    }
  }
}
