import PurchasesContracts
import PurchasesSQLite
import Synchronization

/// The store in one SQLite file, for one host. Write-ahead log and a full sync on each commit, so that a commit that was
/// reported survives a power cut.
public final class SQLiteStore: Store {
  /// KiB. A batch of 5,000 accounts changes some 7,000 pages; those that the cache can't hold would be written twice.
  private static let writerCache = 32 * 1024
  /// Pages. Much of what a batch writes is overwritten by the next (index pages, the outbox): moved into the file after a
  /// few batches, it is moved once.
  private static let writerCheckpoint = 16_000

  let path: String
  let options: SQLiteOptions
  /// SQLite has one writer at a time and lets the others poll; inside one process they queue here instead, without pauses.
  let writing = WriterQueue()

  /// - Parameter options: `synchronous` may be lowered for a store that can be made again, such as a replay's shadow.
  public init(path: String, options: SQLiteOptions = SQLiteOptions()) {
    self.path = path
    self.options = options
  }

  public func migrate() throws(StoreFailure) {
    try StoreFailure.translating {
      let connection = try SQLiteConnection(path: path, options: options)
      defer { connection.close() }
      try Migration.run(on: connection)
    }
  }

  public func stage(_ name: String, group: String) throws(StoreFailure) -> any StageStore {
    try StoreFailure.translating {
      var existing = options
      existing.create = false
      existing.cacheSize = max(existing.cacheSize, Self.writerCache)
      existing.automaticCheckpoint = max(existing.automaticCheckpoint, Self.writerCheckpoint)
      let connection = try SQLiteConnection(path: path, options: existing)
      do {
        try Migration.check(connection)
        try writing.withLock { try register(name, group, connection) }
        return SQLiteStageStore(connection: connection, stage: name, writing: writing)
      } catch {
        connection.close()
        throw error
      }
    }
  }

  public func reader() throws(StoreFailure) -> any StoreReader {
    let reader = SQLiteStoreReader(path: path, options: options)
    // A store that is missing or of another version is told now, not at the first question.
    try reader.check()
    return reader
  }

  /// Nothing is left open here: stages and readers close their own connections.
  public func close() {}

  /// A store belongs to one consumer group per stage: another group's offsets would not fit its positions.
  private func register(_ stage: String, _ group: String, _ connection: SQLiteConnection) throws {
    try connection.transaction(.immediate) {
      try connection.run(
        "INSERT INTO stage (name, consumer_group) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", .text(stage),
        .text(group))
      let owner = try connection.scalar("SELECT consumer_group FROM stage WHERE name = ?", .text(stage))
      guard owner == .text(group) else { throw StoreFailure.ownedByAnotherGroup(stage, group) }
    }
  }
}

/// Lets the writers of one process in one after the other.
final class WriterQueue: Sendable {
  private let gate = Mutex<Void>(())

  func withLock<Value>(_ body: () throws -> Value) throws -> Value {
    // The result leaves the lock on the same thread; the lock guards the file, not the value.
    nonisolated(unsafe) var result: Result<Value, any Error>?
    gate.withLock { _ in result = Result { try body() } }
    guard let result else { preconditionFailure("the lock ran its body") }
    return try result.get()
  }
}

extension StoreFailure {
  /// Runs a body that may fail in SQLite's way or in ours.
  static func translating<Value>(_ body: () throws -> Value) throws(StoreFailure) -> Value {
    do {
      return try body()
    } catch let failure as StoreFailure {
      throw failure
    } catch let error as SQLiteError {
      throw StoreFailure(error)
    } catch {
      throw StoreFailure(.corrupt, "unexpected: \(type(of: error))")
    }
  }

  init(_ error: SQLiteError) {
    let kind: Kind =
      if error.isCorrupt {
        .corrupt
      } else if error.isTriggerViolation, error.message.hasPrefix(Migration.fence) {
        .fenced
      } else if error.isConstraint || error.isReadOnly {
        .refused
      } else if error.isBusy || error.isDiskFull || error.isIOError || error.cannotOpen || error.isInterrupted {
        .unavailable
      } else {
        .refused
      }
    self.init(kind, "the store\(error.path.map { " \($0)" } ?? ""): \(error)")
  }
}
