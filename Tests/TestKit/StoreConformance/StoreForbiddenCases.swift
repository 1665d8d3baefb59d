import PurchasesContracts

/// What must never happen is refused by the database itself, whoever asks: each line is tried as a person with a SQL
/// prompt would try it.
let storeForbiddenCases: [StoreCase] = [
  forbidden(
    "two owners of a chain", after: [.put(chain("1", account: "a"))],
    {
      [
        """
        INSERT INTO chain (environment, original_transaction, account, basis, document)
        VALUES ('Production', '1', 'b', 'claim', \($0.emptyDocument))
        """
      ]
    }),
  forbidden(
    "a version twice, or a changed or removed one", after: [.insert(changed(1))],
    { _ in
      [
        """
        INSERT INTO change (environment, account, version, event, type, subject, source, rule, recorded_at)
        VALUES ('Production', 'a', 1, 'e', 't', 's', 'o', 'r', 0)
        """,
        "UPDATE change SET version = 2",
        "UPDATE change SET rule = 'another'",
        "DELETE FROM change",
      ]
    }),
  forbidden(
    "an account's version going back", after: [.put(account("a", version: 7))],
    { _ in ["UPDATE account SET version = 6 WHERE account = 'a'"] }),
  forbidden(
    "a second ledger line under one key, or a changed or removed one", after: [.insert(line)],
    { _ in
      [
        """
        INSERT INTO ledger (environment, account, unit, entry, debit, credit, amount, version, recorded_at)
        VALUES ('Production', 'a', 'coins', '1:purchased', 'store', 'account', 5, 1, 0)
        """,
        "UPDATE ledger SET amount = 1000000",
        "DELETE FROM ledger",
      ]
    }),
  forbidden(
    "half a ledger line", after: [],
    { _ in
      [("store", "account", 0), ("store", "account", -5), ("account", "account", 5), ("store", "spent", 5)].map {
        """
        INSERT INTO ledger (environment, account, unit, entry, debit, credit, amount, version, recorded_at)
        VALUES ('Production', 'a', 'coins', '2', '\($0)', '\($1)', \($2), 1, 0)
        """
      }
    }),
  forbidden(
    "a second answer to one request, or a changed or removed one", after: [.insert(answer)],
    { _ in
      [
        """
        INSERT INTO answer (environment, account, request, kind, outcome, reason, source, recorded_at)
        VALUES ('Production', 'a', 'spend:1', 'spend', 'refused', 'r', 's', 0)
        """,
        "UPDATE answer SET outcome = 'refused'",
        "DELETE FROM answer",
      ]
    }),
  forbidden(
    "a position going back, an epoch going back, and writes that name another epoch or position",
    after: [],
    { _ in
      [
        "UPDATE stage_position SET next = 0",
        "UPDATE stage_position SET next = NULL",
        "UPDATE stage_position SET epoch = 1",
        "UPDATE stage_position SET epoch = epoch - 1",
        "DELETE FROM stage_position",
        batch(epoch: 1, from: "1", next: 2),
        batch(epoch: 3, from: "1", next: 2),
        batch(epoch: 2, from: "0", next: 2),
        batch(epoch: 2, from: "NULL", next: 2),
        batch(epoch: 2, from: "1", next: 1),
        batch(epoch: 2, from: "1", next: 0),
        "UPDATE stage_batch SET next = 9",
        "UPDATE stage SET consumer_group = 'another'",
      ]
    }),
  forbidden(
    "an audit tree that shrinks", after: [.put(tree(size: 5))],
    { _ in ["UPDATE audit_tree SET size = 4", "UPDATE audit_tree SET checkpointed_size = 2"] }),

  StoreCase("a stage that tries to change what is fixed is refused") { database in
    let worker = try database.worker()
    try worker.commit([.insert(line), .put(account("a", version: 7)), .put(tree(size: 5))])
    var richer = line
    richer.values[Table.ledger.index("amount")] = .integer(1_000_000)
    try expectFailure(.refused, "a changed ledger line") { try worker.commit([.put(richer)]) }
    try expectFailure(.refused, "a removed ledger line") { try worker.commit([.delete(line.key)]) }
    var half = line
    half.values[Table.ledger.index("debit")] = .text("account")
    let other = RowKey(.ledger, Array(line.key.values.dropLast()) + [.text("half")])
    try expectFailure(.refused, "half a ledger line") { try worker.commit([.insert(Row(other, half.values))]) }
    try expectFailure(.refused, "an older version") { try worker.commit([.put(account("a", version: 6))]) }
    try expectFailure(.refused, "a smaller tree") { try worker.commit([.put(tree(size: 4))]) }
    try Conformance.expectEqual(try worker.row(line.key), line)
  },

  StoreCase("failures name tables and constraints, and quote no row") { database in
    let worker = try database.worker()
    let secret = "0f8b2c1a-secret-token"
    try worker.commit([.insert(chain("1", account: secret)), .insert(alias(secret, secret))])
    var bad = account(secret)
    bad.values[Table.account.index("waiting")] = .integer(9)
    for write in [Write.insert(chain("1", account: secret)), .insert(alias(secret, secret)), .put(bad)] {
      let failure = try failure("a write that is refused") { try worker.commit([write]) }
      try Conformance.expect(!failure.description.contains(secret), "quotes a row: \(failure)")
      try Conformance.expect(failure.reason.contains(write.key.table.name), "names the table: \(failure)")
    }
  },
]

private func forbidden(
  _ name: String, after writes: [Write],
  _ attempts: @escaping @Sendable (any StoreDatabase) -> [String]
) -> StoreCase {
  StoreCase("the database refuses \(name)") { database in
    // Epoch 2, position 1.
    _ = try database.worker()
    let worker = try database.worker()
    try worker.commit(writes)
    let reader = try worker.store.reader()
    let positions = try reader.positions(stage: "entitlements")
    try Conformance.expectEqual(positions, [.first: StagePosition(epoch: 2, next: 1)])
    for attempt in attempts(database) {
      do {
        try database.sql(attempt)
      } catch {
        continue
      }
      throw Unmet("let through: \(attempt)")
    }
    for write in writes {
      let wanted: Row? =
        switch write {
        case .put(let row), .insert(let row), .merge(let row), .exchange(let row, _): row
        case .delete: nil
        }
      try Conformance.expectEqual(try reader.row(write.key), wanted)
    }
    try Conformance.expectEqual(try reader.positions(stage: "entitlements"), positions)
    // And the stage goes on.
    try worker.commit([.put(alias("x", "y"))])
  }
}

private func batch(epoch: Int, from: String, next: Int) -> String {
  """
  INSERT INTO stage_batch (stage, topic, "partition", next, epoch, from_position, record_count)
  VALUES ('entitlements', 'purchases.owned', 0, \(next), \(epoch), \(from), 0)
  """
}

private let line = Row(
  RowKey(.ledger, [.text("Production"), .text("a"), .text("coins"), .text("1:purchased")]),
  [.text("store"), .text("account"), .integer(100), .integer(1), .integer(1)])

private let answer = Row(
  RowKey(.answer, [.text("Production"), .text("a"), .text("spend:1")]),
  [
    .text("spend"), .text("done"), .text("spent"), .text("coins 5"), .integer(1), .text("purchases.owned/0/1"),
    .integer(1),
  ]
)

private func changed(_ version: Int64) -> Row {
  Row(
    RowKey(.change, [.text("Production"), .text("a"), .integer(version)]),
    [.text("e"), .text("t"), .text("s"), .text("o"), .text("r"), .integer(0)])
}

private func tree(size: Int64) -> Row {
  Row(
    RowKey(.auditTree, [.text("purchases.owned"), .integer(0)]),
    [.integer(size), .bytes([1]), .text("root"), .integer(0), .integer(3), .integer(0), .null, .null])
}
