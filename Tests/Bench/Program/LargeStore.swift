import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesRunner
import PurchasesSQLite
import PurchasesSQLiteStore

/// A store of the size of a large deployment, in the schema that the product's own migrations make: what the real stage
/// writes, purchase by purchase, for a thousand accounts, and for all others the same rows under names of their own. To have
/// the stage write all of it would take most of an hour.
struct LargeStore {
  let path: String
  let accounts: LargeAccounts

  /// A store belongs to one consumer group.
  static let group = "bench-large"
  /// Rows that the stage makes for an account, and what in them names an account or its purchases.
  private static let tables: [(table: Table, naming: Set<String>)] = [
    (.account, ["document"]), (.permit, ["transaction"]), (.change, []), (.ledger, ["entry"]),
    (.entitlement, ["original_transaction", "document"]), (.balance, []),
  ]
  /// Accounts that are compared with what the stage makes of them, row by row.
  private static let compared = 20

  private var templates: String { path + ".templates" }

  /// Answers how many transactions it holds, and how long that took.
  func fill() throws -> Sample {
    let (began, begin) = (Gauge.now, Gauge.cpu)
    defer { File.removeDatabase(templates) }
    // Nothing of it must survive a power cut, and a journal of what was empty before is work for nothing.
    let options = SQLiteOptions(writeAheadLog: false, synchronous: .off, cacheSize: 768 * 1024, memoryMap: 0)
    let store = SQLiteStore(path: path, options: options)
    try store.migrate()
    try fillTemplates(options)
    let connection = try SQLiteConnection(path: path, options: options)
    try connection.execute(
      """
      PRAGMA journal_mode=OFF;
      ATTACH '\(templates)' AS template;
      CREATE TEMP TABLE name (
        old TEXT NOT NULL PRIMARY KEY, old_tag TEXT NOT NULL, new TEXT NOT NULL, tag TEXT NOT NULL,
        "partition" INTEGER NOT NULL) WITHOUT ROWID;
      """)
    let statements = Self.tables.map { Self.copy($0.table, $0.naming) }
    for start in stride(from: 0, to: accounts.count, by: LargeAccounts.templates) {
      try connection.transaction(.immediate) {
        try connection.execute("DELETE FROM temp.name")
        for index in start..<min(accounts.count, start + LargeAccounts.templates) {
          let account = accounts.account(index)
          try connection.run(
            "INSERT INTO temp.name VALUES (?, ?, ?, ?, ?)", .text(accounts.account(index - start).text),
            .text(accounts.tag(index - start)), .text(account.text), .text(accounts.tag(index)),
            .integer(Int64(Self.partition(account))))
        }
        for statement in statements { try connection.run(statement) }
      }
      let filled = start + LargeAccounts.templates
      if filled % 100_000 == 0 {
        File.complain("bench: \(filled) accounts filled, \(Int(Gauge.now - began)) s")
      }
    }
    connection.close()
    try compare(store)
    store.close()
    try sync()
    return Sample(
      count: accounts.count * LargeAccounts.purchases, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
  }

  private static func partition(_ account: Account) -> Int32 {
    let key = TopicKey.account(.production, account)
    return Partitioner.partition(forKey: Array(key.utf8), of: StageRun.topics.partitions)
  }

  /// The stories of the first accounts, in the order in which time brought them: no two rows of an account come one after
  /// the other, so none share a page.
  private func fillTemplates(_ options: SQLiteOptions) throws {
    let stories = try stories(Array(0..<min(accounts.count, LargeAccounts.templates)))
    let shuffled = stories.indices.sorted { LargeAccounts.mixed(UInt64($0)) < LargeAccounts.mixed(UInt64($1)) }
    var writes: [Write] = []
    for turn in 0..<LargeAccounts.purchases { for index in shuffled { writes += stories[index].turns[turn] } }
    for index in shuffled { writes += stories[index].end }
    let store = SQLiteStore(path: templates, options: options)
    try store.migrate()
    let books = try store.stage(StageName.entitlements.rawValue, group: Self.group)
    try books.commit(StoreTransaction(advances: [], writes: writes), published: [:])
    books.close()
    store.close()
  }

  private func stories(_ indices: [Int]) throws -> [Story] {
    let stage = try Day.stage(.entitlements, StageRun.topics)
    let accounts = accounts
    return Cores.map(indices, piece: 16) { Story(of: $0, accounts, stage) }
  }

  private static func copy(_ table: Table, _ naming: Set<String>) -> String {
    let columns = table.key + table.columns
    func quoted(_ name: String) -> String { "\"\(name)\"" }
    let values = columns.map { column in
      let value = "t.\(quoted(column.name))"
      if column.name == "account" { return "n.new" }
      if column.name == "partition" { return "n.\"partition\"" }
      guard naming.contains(column.name) else { return value }
      guard column.kind == .bytes else { return "replace(\(value), n.old_tag, n.tag)" }
      return "CAST(replace(replace(CAST(\(value) AS TEXT), n.old_tag, n.tag), n.old, n.new) AS BLOB)"
    }
    // The inner one of the join is the table of names: rows come as they stand in the template.
    return "INSERT INTO main.\(table.name) (\(columns.map { quoted($0.name) }.joined(separator: ", "))) SELECT "
      + values.joined(separator: ", ")
      + " FROM template.\(table.name) AS t CROSS JOIN temp.name AS n ON n.old = t.account"
  }

  /// The shortcut must not show: of some accounts each row, but for events' ids and coordinates, is what the stage writes.
  private func compare(_ store: SQLiteStore) throws {
    let indices = (0..<Self.compared).map { Int(LargeAccounts.mixed(UInt64($0) &+ 9) % UInt64(accounts.count)) }
    let reader = try store.reader()
    defer { reader.close() }
    for story in try stories(indices) {
      for write in story.turns.joined() + story.end {
        switch write {
        case .put(let row), .insert(let row):
          guard row.key.table != .change, try reader.row(row.key) != row else { continue }
          throw BenchFailure("the large store has another row of \(row.key.table.name) than the stage would write")
        default: continue
        }
      }
    }
  }

  /// What the system still holds back is on the disk before anything is measured.
  private func sync() throws {
    let file = open(path, O_RDONLY)
    guard file >= 0, fsync(file) == 0 else { throw BenchFailure("\(path) can't be synced") }
    close(file)
  }

  /// Bytes on the disk.
  static func bytes(_ path: String) -> Int64 {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : 0
  }
}

/// What the stage makes of one account's purchases, one after the other.
private struct Story: Sendable {
  /// Rows that are written once, by the turn that brought them.
  private(set) var turns: [[Write]] = []
  /// Rows that each turn writes again, as they stand in the end.
  private(set) var end: [Write] = []

  init(of index: Int, _ accounts: LargeAccounts, _ stage: any Stage) {
    let facts = Told()
    var rewritten: [RowKey: PurchasesContracts.Row] = [:]
    for turn in 0..<LargeAccounts.purchases {
      let record = accounts.record(index, turn: turn, .report)
      let partition = Partitioner.partition(forKey: record.key ?? [], of: StageRun.topics.partitions)
      let place = Coordinates(
        topic: StageRun.topics.name(.owned), partition: partition, offset: Int64(1_000_000 + turn))
      let envelope: Result<Envelope, EnvelopeFailure>
      do throws(EnvelopeFailure) { envelope = .success(try Envelope(reading: record)) } catch {
        envelope = .failure(error)
      }
      let incoming = Incoming(
        stored: StoredRecord(coordinates: place, record: record), topic: .owned, envelope: envelope
      ).read(by: stage)
      var writes: [Write] = []
      for action in stage.decide(incoming, facts, Moment(now: record.timestamp)) {
        guard case .write(let write) = action else { continue }
        switch write {
        case .put(let row) where row.key.table != .permit: rewritten[row.key] = row
        default: writes.append(write)
        }
        facts.apply(write)
      }
      precondition(!writes.isEmpty, "a purchase without a permit")
      turns.append(writes)
    }
    end = rewritten.values.map { .put($0) }
  }
}

/// What was written so far.
private final class Told: Facts {
  private var rows: [RowKey: PurchasesContracts.Row] = [:]

  func row(_ key: RowKey) -> PurchasesContracts.Row? { rows[key] }
  func rows(_ need: Need) -> [PurchasesContracts.Row] { [] }
  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }

  func apply(_ write: Write) {
    switch write {
    case .put(let row), .insert(let row): rows[row.key] = row
    case .delete(let key): rows[key] = nil
    case .merge, .exchange: preconditionFailure("the stage writes none of its own rows so")
    }
  }
}
