import PurchasesContracts

/// One empty database that a case of the suite has for itself, with the ways into it that are not the store's.
public protocol StoreDatabase: AnyObject, Sendable {
  /// A handle of its own, as another process would have.
  func open() throws -> any Store
  /// Makes the tables as an older version of the program left them.
  func migrate(upTo version: Int64) throws
  /// Runs SQL as a person with `sqlite3` or `psql` would, on a connection of its own. Throws when it is refused.
  func sql(_ script: String) throws
  /// The first column of the first row, which is text.
  func text(_ query: String) throws -> String
  /// Begins a transaction on a connection of its own, runs the SQL in it and leaves it open.
  func hold(_ script: String) throws -> any HeldTransaction
  /// The columns of a table as the database describes them, in their order.
  func columns(of table: String) throws -> [ColumnDescription]
  /// How this dialect writes the bytes of `{}`.
  var emptyDocument: String { get }
  /// Removes the database.
  func remove()
}

public protocol HeldTransaction: AnyObject {
  func commit() throws
  /// Lets the connection go without a word, as the death of its process does.
  func drop()
}

public struct ColumnDescription: Sendable, Hashable {
  public let name: String
  /// `integer`, `text` or `bytes`.
  public let kind: Column.Kind
  public let isOptional: Bool
  /// Place in the primary key, from 1; 0 for a column outside it.
  public let keyPlace: Int

  public init(name: String, kind: Column.Kind, isOptional: Bool, keyPlace: Int) {
    self.name = name
    self.kind = kind
    self.isOptional = isOptional
    self.keyPlace = keyPlace
  }
}

/// One case of the suite.
public struct StoreCase: Sendable, CustomStringConvertible {
  public let name: String
  public let run: @Sendable (any StoreDatabase) throws -> Void

  public init(_ name: String, _ run: @escaping @Sendable (any StoreDatabase) throws -> Void) {
    self.name = name
    self.run = run
  }

  public var description: String { name }
}

/// What every `Store` must do, whatever database is under it.
public let storeConformance: [StoreCase] =
  storeSchemaCases + storeWriteCases + storeFenceCases + storeOutboxCases + storeReadCases + storeReadingCases
  + storeForbiddenCases

// MARK: what the cases are written with

extension StoreDatabase {
  func migrated() throws -> any Store {
    let store = try open()
    try store.migrate()
    return store
  }

  /// A store with one stage that has claimed one partition.
  func worker(
    _ partition: TopicPartition = .first, stage: String = "entitlements", group: String = "entitlements"
  ) throws -> Worker {
    try Worker(store: try migrated(), partition: partition, stage: stage, group: group)
  }
}

extension TopicPartition {
  static let first = TopicPartition("purchases.owned", 0)
  static let second = TopicPartition("purchases.owned", 1)
}

/// A stage's store with one partition, that knows where it stands.
final class Worker {
  let store: any Store
  let stage: any StageStore
  let partition: TopicPartition
  private(set) var epoch: Int64
  private(set) var next: Int64?

  init(store: any Store, partition: TopicPartition, stage: String, group: String) throws {
    self.store = store
    self.partition = partition
    self.stage = try store.stage(stage, group: group)
    let position = try Conformance.require(try self.stage.claim([partition])[partition], "a claim answers a position")
    epoch = position.epoch
    next = position.next
  }

  func advance(by count: Int64 = 1, outgoing: [ProducedRecord] = []) -> Advance {
    Advance(partition: partition, epoch: epoch, from: next, next: (next ?? 0) + count, outgoing: outgoing)
  }

  /// Commits the writes as the batch of the next record.
  func commit(
    _ writes: [Write], outgoing: [ProducedRecord] = [], published: [TopicPartition: Int64] = [:]
  ) throws {
    let advance = advance(outgoing: outgoing)
    try stage.commit(StoreTransaction(advances: [advance], writes: writes), published: published)
    next = advance.next
  }

  func row(_ key: RowKey) throws -> Row? {
    try stage.fetch([.row(key)]).rows[key]
  }
}

/// Runs the body and answers the failure's kind; a body that succeeds is unmet.
func failure(_ what: String, line: UInt = #line, _ body: () throws -> Void) throws -> StoreFailure {
  do {
    try body()
  } catch let failure as StoreFailure {
    return failure
  }
  throw Unmet("\(what) was let through", line: line)
}

func expectFailure(
  _ kind: StoreFailure.Kind, _ what: String, line: UInt = #line, _ body: () throws -> Void
) throws {
  let failure = try failure(what, line: line, body)
  try Conformance.expectEqual(failure.kind, kind, "\(what) (\(failure.reason))", line: line)
}

func alias(_ account: String, _ into: String, _ environment: String = "Production") -> Row {
  Row(RowKey(.alias, [.text(environment), .text(account)]), [.text(into)])
}

func chain(_ transaction: String, account: String?, document: [UInt8] = Array("{}".utf8)) -> Row {
  Row(
    RowKey(.chain, [.text("Production"), .text(transaction)]),
    [Value(account), .text("token"), account == nil ? .integer(1) : .null, .bytes(document)])
}

func account(
  _ account: String, partition: Int64 = 0, version: Int64 = 1, due: Int64? = nil, waiting: Bool = false,
  catalogue: String = "1"
) -> Row {
  Row(
    RowKey(.account, [.text("Production"), .text(account)]),
    [
      .integer(partition), .integer(version), Value(due), .integer(waiting ? 1 : 0), .text(catalogue),
      .bytes(Array("{}".utf8)),
    ])
}

func watch(_ subject: String, _ columns: [String: Value]) -> Row {
  Row(
    RowKey(.auditWatch, [.text("Production"), .text(subject)]),
    Table.auditWatch.columns.map { columns[$0.name] ?? .null })
}

// Only tests print rows: in a log line they could hold what nobody should read there.
extension Table: CustomStringConvertible { public var description: String { name } }
extension RowKey: CustomStringConvertible { public var description: String { "\(table)\(values)" } }
extension Row: CustomStringConvertible { public var description: String { "\(key)=\(values)" } }
extension Value: CustomStringConvertible {
  public var description: String {
    switch self {
    case .null: "null"
    case .integer(let value): "\(value)"
    case .text(let value): "\"\(value)\""
    case .bytes(let value): value.count > 32 ? "\(value.count) bytes" : "\(value)"
    }
  }
}
