import PurchasesContracts
import Synchronization

/// A store's reading end in memory: rows that a test puts in, and a failure that it can switch on.
public final class InMemoryStoreReader: StoreReader {
  private struct State {
    var rows: [RowKey: Row] = [:]
    var failure: StoreFailure?
    var reads = 0
    var looked: Set<RowKey> = []
  }

  private let state = Mutex(State())

  public init() {}

  public func put(_ row: Row) { state.withLock { $0.rows[row.key] = row } }
  public func fail(_ failure: StoreFailure?) { state.withLock { $0.failure = failure } }
  /// How many times something was asked.
  public var reads: Int { state.withLock { $0.reads } }

  /// The rows that were asked for together last.
  public var looked: Set<RowKey> { state.withLock { $0.looked } }

  private func read<Result>(_ body: ([RowKey: Row]) -> Result) throws(StoreFailure) -> Result {
    let (rows, failure) = state.withLock { state in
      state.reads += 1
      return (state.rows, state.failure)
    }
    if let failure { throw failure }
    return body(rows)
  }

  public func atOneInstant<Value>(
    _ body: (any StoreReader) throws(StoreFailure) -> Value
  ) throws(StoreFailure) -> Value {
    let copy = InMemoryStoreReader()
    let now = state.withLock { state in
      state.reads += 1
      return state
    }
    copy.state.withLock { $0 = now }
    return try body(copy)
  }

  public func row(_ key: RowKey) throws(StoreFailure) -> Row? {
    try read { $0[key] }
  }

  public func rows(_ keys: [RowKey]) throws(StoreFailure) -> [RowKey: Row] {
    state.withLock { $0.looked = Set(keys) }
    return try read { rows in rows.filter { keys.contains($0.key) } }
  }

  public func rows(
    _ table: Table, prefix: [Value], after: [Value]?, limit: Int
  ) throws(StoreFailure) -> [Row] {
    try read { rows in
      Array(
        Self.sorted(rows.values.filter { $0.key.table == table && $0.key.values.starts(with: prefix) })
          .drop { row in after.map { !Self.precedes($0, row.key.values) } ?? false }.prefix(limit))
    }
  }

  public func rows(
    _ table: Table, where column: String, is value: Value, limit: Int
  ) throws(StoreFailure) -> [Row] {
    try read { rows in
      Array(Self.sorted(rows.values.filter { $0.key.table == table && $0[column] == value }).prefix(limit))
    }
  }

  public func rows(
    _ table: Table, where column: String, atMost value: Int64, limit: Int
  ) throws(StoreFailure) -> [Row] {
    try read { rows in
      let due = rows.values.filter { row in
        row.key.table == table && (row[column].integer.map { $0 <= value } ?? false)
      }
      return Array(due.sorted { ($0[column].integer ?? 0) < ($1[column].integer ?? 0) }.prefix(limit))
    }
  }

  public func count(_ table: Table) throws(StoreFailure) -> Int64 {
    try read { rows in Int64(rows.keys.count { $0.table == table }) }
  }

  public func count(_ table: Table, whereSet column: String) throws(StoreFailure) -> Int64 {
    try read { rows in Int64(rows.values.count { $0.key.table == table && $0[column] != .null }) }
  }

  public func positions(stage: String) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try read { _ in [:] }
  }

  public func books(stage: String) throws(StoreFailure) -> StageBooks {
    try read { _ in StageBooks() }
  }

  public func probe() throws(StoreFailure) {
    try read { _ in }
  }

  public func close() {}

  private static func sorted(_ rows: [Row]) -> [Row] {
    rows.sorted { precedes($0.key.values, $1.key.values) }
  }

  private static func precedes(_ a: [Value], _ b: [Value]) -> Bool {
    a.lexicographicallyPrecedes(b) { x, y in
      switch (x, y) {
      case (.integer(let x), .integer(let y)): x < y
      case (.text(let x), .text(let y)): x.utf8.lexicographicallyPrecedes(y.utf8)
      case (.bytes(let x), .bytes(let y)): x.lexicographicallyPrecedes(y)
      default: false
      }
    }
  }
}
