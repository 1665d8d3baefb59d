import PurchasesContracts
import PurchasesPostgres

/// The store in a PostgreSQL database, for any number of hosts. Tables are made in the schema that the URL's `search_path`
/// names first (`public` where it names none).
public final class PostgresStore: Store {
  let url: String

  /// - Parameter url: `postgres://USER@HOST/DATABASE`, with whatever parameters libpq takes.
  public init(url: String) {
    self.url = url
  }

  public func migrate() throws(StoreFailure) {
    try StoreFailure.translating {
      let connection = try Self.connect(url)
      defer { connection.close() }
      try Migration.run(on: connection)
    }
  }

  public func stage(_ name: String, group: String) throws(StoreFailure) -> any StageStore {
    try StoreFailure.translating {
      let connection = try Self.connect(url)
      try Migration.check(connection)
      try register(name, group, connection)
      return PostgresStageStore(url: url, connection: connection, stage: name)
    }
  }

  public func reader() throws(StoreFailure) -> any StoreReader {
    let reader = PostgresStoreReader(url: url)
    // A store that is missing or of another version is told now, not at the first question.
    try reader.check()
    return reader
  }

  /// Nothing is left open here: stages and readers close their own connections.
  public func close() {}

  /// A store belongs to one consumer group per stage: another group's offsets would not fit its positions.
  private func register(_ stage: String, _ group: String, _ connection: PostgresConnection) throws {
    try connection.query(
      "INSERT INTO stage (name, consumer_group) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
      [.text(stage), .text(group)])
    let owner = try connection.query("SELECT consumer_group FROM stage WHERE name = $1", [.text(stage)])
    guard owner.count == 1, owner[0].text(0) == group else { throw StoreFailure.ownedByAnotherGroup(stage, group) }
  }

  static func connect(_ url: String) throws(PostgresError) -> PostgresConnection {
    let connection = try PostgresConnection(
      url,
      options: PostgresConnection.Options(settings: [
        // Every statement of a store finds its rows by an index, by thousands of keys or by a range. Left to guess, the
        // planner may settle on reading the whole table while it is small and stay with it when it has grown.
        ("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
        ("enable_bitmapscan", "off"),
        // So there is one plan per statement, and no use in compiling it.
        ("plan_cache_mode", "force_generic_plan"), ("jit", "off"),
      ]))
    // A commit that was reported must survive a crash of the server, whatever the server's default is.
    try connection.query(
      "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
    return connection
  }
}

extension StoreFailure {
  /// Runs a body that may fail in PostgreSQL's way or in ours.
  static func translating<Value>(_ body: () throws -> Value) throws(StoreFailure) -> Value {
    do {
      return try body()
    } catch let failure as StoreFailure {
      throw failure
    } catch let error as PostgresError {
      throw StoreFailure(error)
    } catch {
      throw StoreFailure(.corrupt, "unexpected: \(type(of: error))")
    }
  }

  init(_ error: PostgresError) {
    let kind: Kind =
      if error.isConnectionLost || error.isTimeout || error.isRetriable {
        .unavailable
      } else if error.isConstraint, Migration.fences.contains(error.constraint ?? "") {
        .fenced
      } else if let state = error.sqlState {
        switch String(state.prefix(2)) {
        // Out of disk, memory or connections; an object in use; operator's intervention; the system's own failures.
        case "53", "55", "57", "58": .unavailable
        // A server that became a standby: the next connection may find the new primary.
        case "25" where state == "25006": .unavailable
        case "XX": .corrupt
        default: .refused
        }
      } else {
        .refused
      }
    self.init(kind, error.message)
  }
}
