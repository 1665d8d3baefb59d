import PurchasesContracts
import PurchasesPostgres
import PurchasesPostgresStore
import PurchasesTestKit
import Testing

@Suite(.enabled(if: serverURL != nil, "needs a server: PURCHASES_TEST_POSTGRES=$(Scripts/postgres start DIR)"))
struct PostgresStoreTests {
  @Test("the store suite", arguments: storeConformance)
  func conformance(_ storeCase: StoreCase) throws {
    let database = try PostgresDatabase()
    defer { database.remove() }
    try storeCase.run(database)
  }

  @Test("what was acknowledged outlives kill -9, and nothing else of a batch does")
  func kills() throws {
    let database = try PostgresDatabase()
    defer { database.remove() }
    let seed = UInt64.random(in: 0...UInt64.max)
    print("kills of the PostgreSQL store: seed \(seed)")
    try killStoreWriters(database, at: database.url, rounds: 8, seed: seed)
  }
}

/// What only a server can do to a store.
@Suite(.enabled(if: serverURL != nil, "needs a server: PURCHASES_TEST_POSTGRES=$(Scripts/postgres start DIR)"))
struct PostgresFailureTests {
  private let partition = TopicPartition("purchases.owned", 0)

  private func alias(_ account: String) -> Row {
    Row(RowKey(.alias, [.text("Production"), .text(account)]), [.text("x")])
  }

  private func kind(_ body: () throws -> Void) -> StoreFailure.Kind? {
    do {
      try body()
      return nil
    } catch {
      return (error as? StoreFailure)?.kind
    }
  }

  @Test("a backend that dies in the middle of a commit leaves nothing, and the stage goes on")
  func backendDiesInCommit() throws {
    let database = try PostgresDatabase()
    defer { database.remove() }
    let store = try database.open()
    try store.migrate()
    // The server ends the session as soon as this row comes in: the transaction is half done by then.
    try database.sql(
      """
      CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
      CREATE TRIGGER die BEFORE INSERT ON alias FOR EACH ROW WHEN (NEW.account = 'dies') EXECUTE FUNCTION die();
      """)
    let stage = try store.stage("ownership", group: "g")
    let epoch = try #require(try stage.claim([partition])[partition]?.epoch)
    func commit(_ accounts: [String]) throws {
      try stage.commit(
        StoreTransaction(
          advances: [Advance(partition: partition, epoch: epoch, from: nil, next: 5, outgoing: [])],
          writes: accounts.map { .put(alias($0)) }), published: [:])
    }
    #expect(kind { try commit(["a", "dies", "z"]) } == .unavailable)
    let reader = try store.reader()
    #expect(try reader.count(.alias) == 0)
    #expect(try reader.positions(stage: "ownership")[partition]?.next == nil)
    // The same stage store, on a connection that it makes anew.
    try commit(["a", "z"])
    #expect(try reader.count(.alias) == 2)
    #expect(try reader.positions(stage: "ownership")[partition]?.next == 5)
  }

  @Test("readers and stages come back after their connections were ended")
  func connectionsEnded() throws {
    let database = try PostgresDatabase()
    defer { database.remove() }
    let store = try database.open()
    try store.migrate()
    // Its own name, so that only its connections are ended.
    let named = PostgresStore(url: database.url + "&application_name=\(database.schema)")
    let stage = try named.stage("ownership", group: "g")
    let reader = try named.reader()
    #expect(try reader.count(.alias) == 0)
    _ = try stage.claim([partition])
    let person = try PostgresConnection(database.url)
    let ended = try person.query(
      "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = $1",
      [.text(database.schema)])
    #expect(ended[0].int64(0) == 2)
    #expect(try reader.count(.alias) == 0)
    #expect(kind { _ = try stage.claim([partition]) } == .unavailable)
    #expect(try stage.claim([partition])[partition]?.epoch == 2)
  }

  @Test("a server that can't be reached is unavailable, and its password is not told")
  func unreachable() {
    let store = PostgresStore(url: "postgres://u:hunter2@/x?host=/nowhere/at/all")
    do {
      try store.migrate()
      Issue.record("reached a server that is not there")
    } catch {
      #expect(error.kind == .unavailable)
      #expect(!error.description.contains("hunter2"))
    }
  }

  @Test("a commit is durable whatever the server's default is")
  func synchronousCommit() throws {
    let database = try PostgresDatabase()
    defer { database.remove() }
    try database.open().migrate()
    // The stage reports what its own session has, through a trigger that refuses anything else.
    try database.sql(
      """
      CREATE FUNCTION durable() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF current_setting('synchronous_commit') = 'off' THEN RAISE EXCEPTION 'not durable'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER durable BEFORE INSERT ON alias FOR EACH ROW EXECUTE FUNCTION durable();
      """)
    let store = PostgresStore(url: database.url + "%20-csynchronous_commit%3Doff")
    let stage = try store.stage("ownership", group: "g")
    let epoch = try #require(try stage.claim([partition])[partition]?.epoch)
    try stage.amend([.put(alias("a"))], epochs: [partition: epoch])
    #expect(try store.reader().count(.alias) == 1)
  }
}
