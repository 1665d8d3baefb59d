import PurchasesContracts

/// The simulated log and store as the conformance suites of the real ones want them, and the cases that don't apply to
/// them, by name and with the reason. Without processes: each call is done at once, and who waits turns time.
public enum SimulatedConformance {
  public static func log() -> EventLogHarness {
    let world = SimulatedWorld(seed: 1)
    let broker = SimulatedBroker(world: world)
    return EventLogHarness(prefix: "suite-") { SimulatedLog(broker, SimulatedLink(world)) }
  }

  /// The same with members that keep what they have while the group comes together.
  public static func cooperativeLog() -> EventLogHarness {
    let world = SimulatedWorld(seed: 1)
    let broker = SimulatedBroker(world: world, isCooperative: true)
    return EventLogHarness(prefix: "suite-") { SimulatedLog(broker, SimulatedLink(world)) }
  }

  public static func store() -> any StoreDatabase { SimulatedStoreDatabase() }

  public static let notForTheLog = [
    "a waiting reader hears of records from another handle": "it waits in real time for a thread of its own"
  ]

  public static let logCases = eventLogConformance.filter { notForTheLog[$0.name] == nil }
  public static let storeCases = storeConformance.filter { notForTheStore[$0.name] == nil }

  private static let sql = "it asks in SQL"

  public static let notForTheStore = [
    "migrations are numbered, and a newer schema is refused": sql,
    "a store that was never migrated is refused, with the way out": sql,
    "tables have the columns that the contract names": sql,
    "a process that dies in a transaction leaves nothing and holds up nobody": sql,
    "a reader sees what is committed, and only that": sql,
    "a reader in the middle of reading does not hold up the writer": sql,
    "people find documents as text and instants as times": sql,
    "the database refuses two owners of a chain": sql,
    "the database refuses a version twice, or a changed or removed one": sql,
    "the database refuses an account's version going back": sql,
    "the database refuses a second ledger line under one key, or a changed or removed one": sql,
    "the database refuses a position going back, an epoch going back, and writes that name another epoch or position":
      sql,
    "the database refuses an audit tree that shrinks": sql,
    "the database refuses half a ledger line": sql,
    "the database refuses a second answer to one request, or a changed or removed one": sql,
    "a store of version 1 keeps what it holds, and its answers to spends": sql,
  ]
}

private final class SimulatedStoreDatabase: StoreDatabase {
  private let world = SimulatedWorld(seed: 1)
  private let server: SimulatedStoreServer

  init() { server = SimulatedStoreServer(world: world) }

  func open() throws -> any Store { SimulatedStore(server, SimulatedLink(world)) }
  func migrate(upTo version: Int64) throws { throw Unmet("there is no SQL here") }
  func sql(_ script: String) throws { throw Unmet("there is no SQL here") }
  func text(_ query: String) throws -> String { throw Unmet("there is no SQL here") }
  func hold(_ script: String) throws -> any HeldTransaction { throw Unmet("there is no SQL here") }
  func columns(of table: String) throws -> [ColumnDescription] { throw Unmet("there is no SQL here") }
  var emptyDocument: String { "" }
  func remove() {}
}
