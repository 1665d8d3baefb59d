import PurchasesCore

/// A value of a column. Digests and documents are bytes or text as the table says.
///
/// Texts are the same when their bytes are, as in the databases: Swift's own comparison takes "é" in its two spellings
/// for one, and two accounts would share a row.
public enum Value: Sendable, Hashable {
  case null
  case integer(Int64)
  case text(String)
  case bytes([UInt8])

  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  public var text: String? { if case .text(let value) = self { value } else { nil } }
  public var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }

  public static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.integer(let a), .integer(let b)): a == b
    case (.text(let a), .text(let b)): hasSameBytes(a, b)
    case (.bytes(let a), .bytes(let b)): a == b
    default: false
    }
  }

  private static func hasSameBytes(_ a: String, _ b: String) -> Bool {
    // What Swift takes for unlike has other bytes, which is found quickly; few are left to compare byte by byte.
    guard a == b, a.utf8.count == b.utf8.count else { return false }
    return a.utf8.elementsEqual(b.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .integer(let value): hasher.combine(value)
    case .text(var value):
      value.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      hasher.combine(0xff as UInt8)
    case .bytes(let value): hasher.combine(value)
    }
  }

  public init(_ value: Int64?) { self = value.map { .integer($0) } ?? .null }
  public init(_ value: String?) { self = value.map { .text($0) } ?? .null }
  public init(_ value: Instant?) { self = value.map { .integer($0.milliseconds) } ?? .null }
}

public struct Column: Sendable, Hashable {
  public enum Kind: Sendable, Hashable { case integer, text, bytes }

  public let name: String
  public let kind: Kind
  public let isOptional: Bool

  public init(_ name: String, _ kind: Kind, optional: Bool = false) {
    self.name = name
    self.kind = kind
    self.isOptional = optional
  }
}

/// A table of the store, as both adapters and people with `psql` or `sqlite3` see it. The key is the primary key. There is
/// one object per table and not a copy in every row's key.
public final class Table: Sendable, Hashable {
  public let name: String
  public let key: [Column]
  public let columns: [Column]

  public init(_ name: String, key: [Column], columns: [Column]) {
    self.name = name
    self.key = key
    self.columns = columns
  }

  public static func == (a: Table, b: Table) -> Bool { a === b || a.name == b.name }
  public func hash(into hasher: inout Hasher) { hasher.combine(name) }

  /// Position of a value column; naming a column that the table has not is a mistake of ours.
  public func index(_ column: String) -> Int {
    guard let index = columns.firstIndex(where: { $0.name == column }) else {
      preconditionFailure("table \(name) has no column \(column)")
    }
    return index
  }
}

public struct RowKey: Sendable, Hashable {
  public let table: Table
  public let values: [Value]
  /// Taken once: on its way from a need to the store a key is looked up half a dozen times.
  private let hash: Int

  public init(_ table: Table, _ values: [Value]) {
    precondition(values.count == table.key.count, "a key of \(table.name) has \(table.key.count) parts")
    self.table = table
    self.values = values
    var hasher = Hasher()
    hasher.combine(table)
    for value in values { hasher.combine(value) }
    hash = hasher.finalize()
  }

  public static func == (a: RowKey, b: RowKey) -> Bool {
    a.hash == b.hash && a.table == b.table && a.values == b.values
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

public struct Row: Sendable, Hashable {
  public let key: RowKey
  /// In the order of the table's columns.
  public var values: [Value]

  public init(_ key: RowKey, _ values: [Value]) {
    precondition(values.count == key.table.columns.count, "a row of \(key.table.name) has all its columns")
    self.key = key
    self.values = values
  }

  public subscript(_ column: String) -> Value { values[key.table.index(column)] }
}

/// What a stage must know to decide a record.
public enum Need: Sendable, Hashable {
  case row(RowKey)
  /// Accounts of this input partition whose `due_at` is set and not after the instant, in order of (`due_at`,
  /// `environment`, `account`), at most `limit`; all of the table `account`'s rows so named.
  case due(partition: Int32, upTo: Instant, limit: Int)
  /// Accounts of this input partition that this version of the catalogue decided last (`catalogue_version`), in order of
  /// (`environment`, `account`), at most `limit`.
  case outdated(partition: Int32, version: String, limit: Int)
  /// Rows of `audit_watch` whose `look_at` is set and not after the instant, in order of (`look_at`, `environment`,
  /// `subject`), at most `limit`.
  case watch(upTo: Instant, limit: Int)
}

/// One change of one row. Changes of one transaction apply in order.
public enum Write: Sendable, Hashable {
  /// Inserts or replaces.
  case put(Row)
  /// Inserts; a row that is there already is a `conflict` failure, so that two can't both be first.
  case insert(Row)
  /// Inserts, or sets those columns of an existing row that are not null here. Of an integer column named in `Table.keepsLeast`
  /// the smaller value stays. Commutes, so that several partitions may write one row.
  case merge(Row)
  case delete(RowKey)
  /// Replaces a row that still holds just these values; one that has changed since it was fetched, or is gone, stays as
  /// it is and is no failure. For rows that other partitions merge into at any time.
  case exchange(Row, was: [Value])
}

/// Where a stage stands on a partition, in the store's own books.
public struct StagePosition: Sendable, Hashable {
  /// Raised by each assignment. Whoever writes under a smaller one is refused.
  public let epoch: Int64
  /// The next record to be worked on; nil when the store has never worked on this partition.
  public let next: Int64?

  public init(epoch: Int64, next: Int64?) {
    self.epoch = epoch
    self.next = next
  }
}

/// One partition's part of a store transaction: it moves from the position that it must have to the next one.
public struct Advance: Sendable, Hashable {
  public let partition: TopicPartition
  public let epoch: Int64
  /// nil: the store must never have worked on the partition.
  public let from: Int64?
  public let next: Int64
  /// What must be published before the group's offset may pass `next`.
  public let outgoing: [ProducedRecord]

  public init(partition: TopicPartition, epoch: Int64, from: Int64?, next: Int64, outgoing: [ProducedRecord]) {
    self.partition = partition
    self.epoch = epoch
    self.from = from
    self.next = next
    self.outgoing = outgoing
  }
}

public struct StoreTransaction: Sendable {
  public var advances: [Advance]
  public var writes: [Write]

  public init(advances: [Advance], writes: [Write]) {
    self.advances = advances
    self.writes = writes
  }
}

/// What a stage's store holds beyond the log's committed offset: the outgoing records of one batch of one partition.
public struct Unpublished: Sendable, Hashable {
  public let partition: TopicPartition
  public let from: Int64?
  public let next: Int64
  public let outgoing: [ProducedRecord]

  public init(partition: TopicPartition, from: Int64?, next: Int64, outgoing: [ProducedRecord]) {
    self.partition = partition
    self.from = from
    self.next = next
    self.outgoing = outgoing
  }
}

public struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable, Hashable {
    /// A newer epoch or another position is in the books: somebody else owns the partition, or the batch is in already.
    case fenced
    /// An insert met a row that is there: fetch again, decide again.
    case conflict
    /// The store can't be reached, is busy or out of space; nothing was written, or (connection lost in commit) it can't
    /// be told: compare positions before going on.
    case unavailable
    /// Refused by a rule of the schema that no retry will satisfy, or a store of another group or a newer version.
    case refused
    case corrupt
  }

  public let kind: Kind
  public let reason: String

  public init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  public var description: String { "\(kind.rawValue): \(reason)" }
}

/// State, positions and outgoing records of the stages, in one database.
public protocol Store: Sendable {
  /// Brings the schema to this program's version. Newer than that is `refused`.
  func migrate() throws(StoreFailure)
  /// The half that a stage writes through; its own connection, used by one thread. The store remembers the group that
  /// a stage belongs to and refuses another.
  func stage(_ name: String, group: String) throws(StoreFailure) -> any StageStore
  /// The half that everybody else reads through; safe to share between threads, never blocks a writer.
  func reader() throws(StoreFailure) -> any StoreReader
  func close()
}

public protocol StageStore: AnyObject {
  /// Raises the epoch of these partitions and answers where they stand.
  func claim(_ partitions: [TopicPartition]) throws(StoreFailure) -> [TopicPartition: StagePosition]
  /// The rows that exist among those needed. Rows by key in `rows`, queries in `queries`, in their order.
  func fetch(_ needs: Set<Need>) throws(StoreFailure) -> Fetched
  /// Tests every advance, applies the writes, keeps the outgoing records and moves the positions: all or nothing.
  /// Deletes kept records up to `published` positions on the way.
  func commit(_ transaction: StoreTransaction, published: [TopicPartition: Int64]) throws(StoreFailure)
  /// Writes without a position (work that the clock, and not a record, brings); fenced by the same epochs.
  func amend(_ writes: [Write], epochs: [TopicPartition: Int64]) throws(StoreFailure)
  /// What is kept of a partition beyond the log's committed offset, in order.
  func unpublished(_ partition: TopicPartition, beyond committed: Int64?) throws(StoreFailure) -> [Unpublished]
  func close()
}

public struct Fetched: Sendable {
  public var rows: [RowKey: Row]
  public var queries: [Need: [Row]]

  public init(rows: [RowKey: Row] = [:], queries: [Need: [Row]] = [:]) {
    self.rows = rows
    self.queries = queries
  }
}

/// What rows are read from one by one.
public protocol RowReader {
  func row(_ key: RowKey) throws(StoreFailure) -> Row?
}

public protocol StoreReader: RowReader, Sendable {
  /// Several questions about one instant: the reader that the body gets sees no commit that comes after its first question,
  /// holds up no writer, and is not to be kept. The body may be run once more, where a connection turned out to be dead.
  func atOneInstant<Value>(_ body: (any StoreReader) throws(StoreFailure) -> Value) throws(StoreFailure) -> Value
  /// Those of these rows that exist: for who asks for many, one round and not one for each.
  func rows(_ keys: [RowKey]) throws(StoreFailure) -> [RowKey: Row]
  /// Rows whose key begins with these values, in key order, beginning after `after` (a whole key), at most `limit`.
  func rows(_ table: Table, prefix: [Value], after: [Value]?, limit: Int) throws(StoreFailure) -> [Row]
  /// Rows whose column has this value, in key order: for the few columns that have an index (`Table.indexed`).
  func rows(_ table: Table, where column: String, is value: Value, limit: Int) throws(StoreFailure) -> [Row]
  /// Rows of an indexed integer column that is set and not after the limit, in order of that column.
  func rows(_ table: Table, where column: String, atMost value: Int64, limit: Int) throws(StoreFailure) -> [Row]
  func count(_ table: Table) throws(StoreFailure) -> Int64
  /// Rows of which an indexed column is set.
  func count(_ table: Table, whereSet column: String) throws(StoreFailure) -> Int64
  /// Where each stage stands on each partition.
  func positions(stage: String) throws(StoreFailure) -> [TopicPartition: StagePosition]
  /// All that the books say of a stage, of one instant.
  func books(stage: String) throws(StoreFailure) -> StageBooks
  func probe() throws(StoreFailure)
  func close()
}
