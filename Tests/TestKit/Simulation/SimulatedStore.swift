import PurchasesContracts
import PurchasesCore

/// What all processes of a simulation share of the store, with a watch on who may write.
///
/// `@unchecked Sendable`: all use of it goes through a link, and so belongs to whoever is alone with the world.
final class SimulatedStoreServer: @unchecked Sendable {
  let world: SimulatedWorld
  var database: SimulatedDatabase
  var outageUntil: Int64 = 0
  private(set) var changes = 0
  /// Whether the log's group has given a partition to the process of a link, whatever that knows of it.
  var isOwner: (String, SimulatedLink, TopicPartition) -> Bool = { _, _, _ in true }
  /// Who claimed a partition last while it was theirs, by the store handle's number.
  private var claims: [String: (handle: Int, name: String)] = [:]
  private var handles = 0

  init(world: SimulatedWorld, bug: PlantedBug? = nil) {
    self.world = world
    database = SimulatedDatabase(bug: bug)
  }

  func checkReachable() throws(StoreFailure) {
    if outageUntil > world.now { throw StoreFailure(.unavailable, "the store does not answer") }
  }

  func newHandle() -> Int {
    handles += 1
    return handles
  }

  /// A claim of one who stood still and is a member no more takes the partition from nobody.
  func claimed(_ partitions: [TopicPartition], of stage: String, by handle: Int, _ link: SimulatedLink) {
    for partition in partitions where isOwner(stage, link, partition) {
      claims["\(stage) \(partition)"] = (handle, link.name)
    }
  }

  /// Whoever writes must be the last one who claimed, whatever the store itself tests.
  func wrote(_ partitions: [TopicPartition], of stage: String, by handle: Int, _ name: String) {
    changes += 1
    for partition in partitions.sorted() {
      guard let last = claims["\(stage) \(partition)"], last.handle != handle else { continue }
      world.violate("\(name) wrote \(partition) of \(stage) after \(last.name) had claimed it")
    }
  }
}

/// One process's handle on the simulated store.
final class SimulatedStore: Store {

  private let server: SimulatedStoreServer
  private let link: SimulatedLink

  init(_ server: SimulatedStoreServer, _ link: SimulatedLink) {
    self.server = server
    self.link = link
  }

  func migrate() throws(StoreFailure) {}

  func stage(_ name: String, group: String) throws(StoreFailure) -> any StageStore {
    try link.store(.open) { () throws(StoreFailure) in
      try server.checkReachable()
      try server.database.open(name, group: group)
      return SimulatedStageStore(server, link, stage: name)
    }
  }

  func reader() throws(StoreFailure) -> any StoreReader { SimulatedStoreReader(server, link) }
  func close() {}
}

final class SimulatedStageStore: StageStore {
  private let server: SimulatedStoreServer
  private let link: SimulatedLink
  private let stage: String
  private let handle: Int

  init(_ server: SimulatedStoreServer, _ link: SimulatedLink, stage: String) {
    self.server = server
    self.link = link
    self.stage = stage
    handle = server.newHandle()
  }

  func claim(_ partitions: [TopicPartition]) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try link.store(.claim) { () throws(StoreFailure) in
      try server.checkReachable()
      server.claimed(partitions, of: stage, by: handle, link)
      let claimed = server.database.claim(partitions, of: stage)
      server.world.note(
        link.process,
        "claimed \(claimed.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value.epoch)@\($0.value.next ?? -1)" })")
      return claimed
    }
  }

  func fetch(_ needs: Set<Need>) throws(StoreFailure) -> Fetched {
    try link.store(.fetch) { () throws(StoreFailure) in
      try server.checkReachable()
      return server.database.fetch(needs)
    }
  }

  func commit(_ transaction: StoreTransaction, published: [TopicPartition: Int64]) throws(StoreFailure) {
    try link.store(.commit) { () throws(StoreFailure) in
      try server.checkReachable()
      var database = server.database
      try database.commit(transaction, published: published, of: stage)
      if database.bug == .storeIsNotAtomic, server.world.oneIn(20) {
        server.database.writeWithoutPosition(transaction)
        throw StoreFailure(.unavailable, "the connection is lost")
      }
      server.database = database
      server.wrote(transaction.advances.map(\.partition), of: stage, by: handle, link.name)
      server.world.note(
        link.process,
        "the store has \(transaction.advances.map { "\($0.partition):\($0.epoch) \($0.from ?? -1)→\($0.next)" })")
    }
  }

  func amend(_ writes: [Write], epochs: [TopicPartition: Int64]) throws(StoreFailure) {
    try link.store(.amend) { () throws(StoreFailure) in
      try server.checkReachable()
      var database = server.database
      try database.amend(writes, epochs: epochs, of: stage)
      server.database = database
      server.wrote(Array(epochs.keys), of: stage, by: handle, link.name)
    }
  }

  func unpublished(_ partition: TopicPartition, beyond committed: Int64?) throws(StoreFailure) -> [Unpublished] {
    try link.store(.unpublished) { () throws(StoreFailure) in
      try server.checkReachable()
      return server.database.unpublished(partition, beyond: committed, of: stage)
    }
  }

  func close() {}
}

final class SimulatedStoreReader: StoreReader {
  private let server: SimulatedStoreServer
  nonisolated(unsafe) private var isClosed = false
  private let link: SimulatedLink
  /// What the store held at the first question.
  nonisolated(unsafe) private var kept: SimulatedDatabase?
  private let keeps: Bool

  init(_ server: SimulatedStoreServer, _ link: SimulatedLink, keeps: Bool = false) {
    self.server = server
    self.link = link
    self.keeps = keeps
  }

  func atOneInstant<Value>(_ body: (any StoreReader) throws(StoreFailure) -> Value) throws(StoreFailure) -> Value {
    try body(keeps ? self : SimulatedStoreReader(server, link, keeps: true))
  }

  private func read<T>(_ body: (SimulatedDatabase) -> T) throws(StoreFailure) -> T {
    try link.store(.fetch) { () throws(StoreFailure) in
      try server.checkReachable()
      if isClosed { throw StoreFailure(.unavailable, "the reader is closed") }
      let database = kept ?? server.database
      if keeps { kept = database }
      return body(database)
    }
  }

  func row(_ key: RowKey) throws(StoreFailure) -> Row? { try read { $0.rows[key] } }

  func rows(_ keys: [RowKey]) throws(StoreFailure) -> [RowKey: Row] {
    try read { database in
      Dictionary(keys.compactMap { key in database.rows[key].map { (key, $0) } }, uniquingKeysWith: { a, _ in a })
    }
  }

  func rows(_ table: Table, prefix: [Value], after: [Value]?, limit: Int) throws(StoreFailure) -> [Row] {
    try read { database in
      database.table(table, limit) { row in
        row.key.values.starts(with: prefix) && after.map { SimulatedDatabase.precedes($0, row.key.values) } ?? true
      }
    }
  }

  func rows(_ table: Table, where column: String, is value: Value, limit: Int) throws(StoreFailure) -> [Row] {
    try read { $0.table(table, limit) { $0[column] == value } }
  }

  func rows(_ table: Table, where column: String, atMost value: Int64, limit: Int) throws(StoreFailure) -> [Row] {
    try read { $0.table(table, orderedBy: column, limit) { $0[column].integer.map { $0 <= value } ?? false } }
  }

  func count(_ table: Table) throws(StoreFailure) -> Int64 { try read { Int64($0.table(table).count) } }

  func count(_ table: Table, whereSet column: String) throws(StoreFailure) -> Int64 {
    try read { Int64($0.table(table).count { $0[column] != .null }) }
  }

  func positions(stage: String) throws(StoreFailure) -> [TopicPartition: StagePosition] {
    try read { $0.stages[stage]?.positions ?? [:] }
  }

  func books(stage: String) throws(StoreFailure) -> StageBooks {
    try read { database in
      guard let known = database.stages[stage] else { return StageBooks() }
      var books = StageBooks(group: known.group)
      for (partition, position) in known.positions {
        let kept = known.kept[partition] ?? []
        if kept.isEmpty { books.add(partition, position, kept: nil) }
        for batch in kept { books.add(partition, position, kept: KeptBatch(from: batch.from, next: batch.next)) }
      }
      return books
    }
  }

  func probe() throws(StoreFailure) { try read { _ in } }
  func close() { isClosed = true }
}
