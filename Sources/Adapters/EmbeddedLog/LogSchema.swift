import PurchasesContracts
import PurchasesSQLite

/// The tables of a log file. What must never happen is refused here and not only in code: a record changed or removed, a
/// committed offset or a generation that goes back.
///
/// Each partition has a table of its own, named after its row in `partition`, so that appending always happens at the
/// right edge of a tree and pages fill up. The offset is the row id. Each topic has a view of its own name for people who
/// look with `sqlite3`.
enum LogSchema {
  /// "PLog" in ASCII; tells a log file from any other database.
  static let applicationID: Int64 = 0x504c_6f67
  static let version: Int64 = 1
  /// Offsets per row of `timestamp_block`: small enough that a scan of one block is nothing, large enough that the table
  /// stays a thousandth of the log.
  static let timestampBlock: Int64 = 1024
  /// SQLite's own limit on the terms of one compound SELECT.
  private static let maximumViewTerms: Int32 = 500

  static let tables = """
    CREATE TABLE topic (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      partitions INTEGER NOT NULL CHECK (partitions > 0),
      compacted INTEGER NOT NULL CHECK (compacted IN (0, 1)),
      maximum_bytes INTEGER NOT NULL CHECK (maximum_bytes > 0)
    ) STRICT;
    CREATE TABLE partition (
      id INTEGER PRIMARY KEY,
      topic_id INTEGER NOT NULL REFERENCES topic (id),
      number INTEGER NOT NULL CHECK (number >= 0),
      UNIQUE (topic_id, number)
    ) STRICT;
    -- The latest timestamp within each block of offsets: finds the first record at or after an instant.
    CREATE TABLE timestamp_block (
      partition_id INTEGER NOT NULL REFERENCES partition (id),
      block INTEGER NOT NULL,
      latest INTEGER NOT NULL,
      PRIMARY KEY (partition_id, block)
    ) STRICT, WITHOUT ROWID;
    -- Raised each time a worker starts under the name: an older worker of that name is fenced.
    CREATE TABLE instance (
      name TEXT PRIMARY KEY,
      epoch INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- The generation counts every change of members or owners.
    CREATE TABLE consumer_group (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      generation INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE member (
      group_id INTEGER NOT NULL REFERENCES consumer_group (id),
      instance TEXT NOT NULL REFERENCES instance (name),
      epoch INTEGER NOT NULL,
      joined INTEGER NOT NULL,
      session INTEGER NOT NULL CHECK (session > 0),
      lease_until INTEGER NOT NULL,
      PRIMARY KEY (group_id, instance)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE subscription (
      group_id INTEGER NOT NULL,
      instance TEXT NOT NULL,
      topic_id INTEGER NOT NULL REFERENCES topic (id),
      PRIMARY KEY (group_id, instance, topic_id),
      FOREIGN KEY (group_id, instance) REFERENCES member (group_id, instance) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    -- One owner per partition and group; the row goes with the member.
    CREATE TABLE owner (
      group_id INTEGER NOT NULL,
      partition_id INTEGER NOT NULL REFERENCES partition (id),
      instance TEXT NOT NULL,
      since INTEGER NOT NULL,
      PRIMARY KEY (group_id, partition_id),
      FOREIGN KEY (group_id, instance) REFERENCES member (group_id, instance) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE committed_offset (
      group_id INTEGER NOT NULL REFERENCES consumer_group (id),
      partition_id INTEGER NOT NULL REFERENCES partition (id),
      next INTEGER NOT NULL CHECK (next >= 0),
      PRIMARY KEY (group_id, partition_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER offset_forward BEFORE UPDATE ON committed_offset WHEN new.next < old.next
      BEGIN SELECT RAISE(ABORT, 'a committed offset would go back'); END;
    CREATE TRIGGER offset_kept BEFORE DELETE ON committed_offset
      BEGIN SELECT RAISE(ABORT, 'a committed offset would be forgotten'); END;
    CREATE TRIGGER generation_forward BEFORE UPDATE ON consumer_group WHEN new.generation <= old.generation
      BEGIN SELECT RAISE(ABORT, 'a generation would go back'); END;
    CREATE TRIGGER epoch_forward BEFORE UPDATE ON instance WHEN new.epoch <= old.epoch
      BEGIN SELECT RAISE(ABORT, 'an instance epoch would go back'); END;
    """

  static func recordTable(_ partition: Int64) -> String { "record_\(partition)" }

  static func partitionTables(_ partition: Int64) -> String {
    let table = recordTable(partition)
    return """
      CREATE TABLE \(table) (
        "offset" INTEGER PRIMARY KEY CHECK ("offset" >= 0),
        timestamp INTEGER NOT NULL,
        key BLOB,
        headers BLOB NOT NULL,
        value BLOB
      ) STRICT;
      CREATE TRIGGER \(table)_unchanged BEFORE UPDATE ON \(table)
        BEGIN SELECT RAISE(ABORT, 'a record would be changed'); END;
      CREATE TRIGGER \(table)_kept BEFORE DELETE ON \(table)
        BEGIN SELECT RAISE(ABORT, 'a record would be removed'); END;
      """
  }

  /// The view that shows a topic as one table; nil where it would have more terms than SQLite takes.
  static func view(topic: String, partitions: [Int64]) -> String? {
    guard partitions.count <= maximumViewTerms else { return nil }
    let quoted = "\"" + topic.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    let terms = partitions.enumerated().map { number, id in
      "SELECT \(number) AS partition, \"offset\", timestamp, key, headers, value FROM \(recordTable(id))"
    }
    return "CREATE VIEW \(quoted) AS " + terms.joined(separator: " UNION ALL ")
  }

  /// Makes the tables in a new file; refuses a file that is something else or is newer than this program.
  static func prepare(_ connection: SQLiteConnection) throws {
    try connection.transaction(.immediate) {
      let application = try connection.integer("PRAGMA application_id") ?? 0
      let version = try connection.integer("PRAGMA user_version") ?? 0
      if application == 0, version == 0 {
        guard try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 else {
          throw LogFailure(.refused, "\(connection.path) is a database, but not a log")
        }
        try connection.execute(tables)
        try connection.execute("PRAGMA application_id=\(applicationID); PRAGMA user_version=\(self.version);")
      } else if application != applicationID {
        throw LogFailure(.refused, "\(connection.path) is a database, but not a log")
      } else if version != self.version {
        throw LogFailure(
          .refused, "\(connection.path) has log format \(version), this program knows \(self.version)")
      }
    }
  }
}
