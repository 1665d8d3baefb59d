import PurchasesContracts
import PurchasesCore
import PurchasesSQLite

extension EmbeddedLog {
  /// A partition costs a table; Kafka deployments of this pipeline stay far below.
  static let maximumPartitions: Int32 = 4_096

  public func ensure(_ topics: [TopicSpec]) throws(LogFailure) {
    for topic in topics {
      guard !topic.name.isEmpty, !topic.name.contains("\0") else {
        throw LogFailure(.refused, "a topic needs a name")
      }
      guard topic.partitions > 0, topic.partitions <= Self.maximumPartitions, topic.maximumBytes > 0 else {
        throw LogFailure(
          .refused,
          "topic \(topic.name): between 1 and \(Self.maximumPartitions) partitions, and a limit above 0 bytes")
      }
    }
    try writer.perform { transaction in
      var missing: [TopicSpec] = []
      var resized: [(TopicInfo, TopicSpec)] = []
      for topic in topics where !missing.contains(where: { $0.name == topic.name }) {
        if let known = try TopicCatalogue.load(topic.name, on: transaction.connection) {
          guard known.partitions.count == Int(topic.partitions) else {
            throw LogFailure(
              .refused, "topic \(topic.name) has \(known.partitions.count) partitions, not \(topic.partitions)")
          }
          if known.maximumBytes != topic.maximumBytes { resized.append((known, topic)) }
        } else {
          missing.append(topic)
        }
      }
      for topic in missing { try Self.create(topic, in: transaction) }
      for (known, topic) in resized {
        try transaction.write(
          "UPDATE topic SET maximum_bytes = ? WHERE id = ?", .integer(Int64(topic.maximumBytes)), .integer(known.id))
        transaction.forget(topic: topic.name)
      }
    }
  }

  private static func create(_ topic: TopicSpec, in transaction: WriteTransaction) throws(SQLiteError) {
    try transaction.write(
      "INSERT INTO topic (name, partitions, compacted, maximum_bytes) VALUES (?,?,?,?)", .text(topic.name),
      .integer(Int64(topic.partitions)), .integer(topic.isCompacted ? 1 : 0), .integer(Int64(topic.maximumBytes)))
    let id = transaction.connection.lastInsertRowID
    var partitions: [Int64] = []
    for number in 0..<topic.partitions {
      try transaction.write(
        "INSERT INTO partition (topic_id, number) VALUES (?,?)", .integer(id), .integer(Int64(number)))
      let partition = transaction.connection.lastInsertRowID
      try transaction.execute(LogSchema.partitionTables(partition))
      partitions.append(partition)
    }
    // A name that a table of ours already has gets no view: the view is only a convenience for people.
    let taken = try transaction.connection.integer(
      "SELECT count(*) FROM sqlite_schema WHERE name = ? COLLATE NOCASE", .text(topic.name))
    if taken == 0, !topic.name.lowercased().hasPrefix("sqlite_"),
      let view = LogSchema.view(topic: topic.name, partitions: partitions)
    {
      try transaction.execute(view)
    }
  }

  public func partitionCount(of topic: String) throws(LogFailure) -> Int32 {
    try query { connection in Int32(try catalogue.require(topic, on: connection).partitions.count) }
  }

  public func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    try query { connection in
      let info = try catalogue.require(topic, on: connection)
      var offsets: [Int32: Int64] = [:]
      try connection.statement(
        """
        SELECT partition.number, committed_offset.next FROM committed_offset
        JOIN consumer_group ON consumer_group.id = committed_offset.group_id
        JOIN partition ON partition.id = committed_offset.partition_id
        WHERE consumer_group.name = ? AND partition.topic_id = ?
        """
      ).eachRow(.text(group), .integer(info.id)) { row in offsets[Int32(row.int64(0))] = row.int64(1) }
      return offsets
    }
  }

  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    try query { connection in
      let info = try catalogue.require(topic, on: connection)
      return try connection.transaction(.deferred) {
        var bounds: [Int32: OffsetBounds] = [:]
        for (number, id) in info.partitions.enumerated() {
          let end = try connection.integer(
            "SELECT coalesce(max(\"offset\") + 1, 0) FROM \(LogSchema.recordTable(id))")
          bounds[Int32(number)] = OffsetBounds(start: 0, end: end ?? 0)
        }
        return bounds
      }
    }
  }

  public func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    try query { connection in
      let id = try catalogue.require(partition, on: connection)
      let milliseconds = SQLiteValue.integer(instant.milliseconds)
      // Timestamps are the producers' and may go back and forth. The first block whose latest timestamp reaches the
      // instant is the block that holds the first such record.
      guard
        let block = try connection.integer(
          "SELECT block FROM timestamp_block WHERE partition_id = ? AND latest >= ? ORDER BY block LIMIT 1",
          .integer(id), milliseconds)
      else { return nil }
      return try connection.integer(
        "SELECT \"offset\" FROM \(LogSchema.recordTable(id)) WHERE \"offset\" >= ? AND timestamp >= ? "
          + "ORDER BY \"offset\" LIMIT 1", .integer(block * LogSchema.timestampBlock), milliseconds)
    }
  }

  public func probe() throws(LogFailure) {
    try query { connection in _ = try connection.integer("SELECT count(*) FROM topic") }
  }
}
