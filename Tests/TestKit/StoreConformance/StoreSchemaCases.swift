import PurchasesContracts

let storeSchemaCases: [StoreCase] = [
  StoreCase("migrating again changes nothing") { database in
    let store = try database.migrated()
    let worker = try Worker(store: store, partition: .first, stage: "ownership", group: "g")
    try worker.commit([.put(alias("a", "b"))])
    try store.migrate()
    try database.open().migrate()
    try Conformance.expectEqual(try worker.row(alias("a", "b").key), alias("a", "b"))
  },

  StoreCase("programs that start together migrate once") { database in
    try Conformance.atOnce(4) { _ in try database.open().migrate() }
    try Conformance.expectEqual(try database.migrated().reader().count(.chain), 0)
  },

  StoreCase("migrations are numbered, and a newer schema is refused") { database in
    let store = try database.migrated()
    try database.sql("INSERT INTO schema_migration (version, name) VALUES (9999, 'later')")
    try expectFailure(.refused, "migrating a newer schema") { try store.migrate() }
    try expectFailure(.refused, "a stage on a newer schema") { _ = try store.stage("ownership", group: "g") }
    try expectFailure(.refused, "a reader on a newer schema") { _ = try store.reader() }
  },

  StoreCase("a store that was never migrated is refused, with the way out") { database in
    let store = try database.migrated()
    try database.sql("DELETE FROM schema_migration")
    for body in [{ _ = try store.stage("ownership", group: "g") }, { _ = try store.reader() }] as [() throws -> Void] {
      let failure = try failure("a store without a schema", body)
      try Conformance.expectEqual(failure.kind, .refused)
      try Conformance.expect(failure.reason.contains("migrate"), "says what to do: \(failure.reason)")
    }
  },

  StoreCase("tables have the columns that the contract names") { database in
    _ = try database.migrated()
    for table in Table.all {
      let wanted =
        table.key.enumerated().map { index, column in
          ColumnDescription(name: column.name, kind: column.kind, isOptional: false, keyPlace: index + 1)
        }
        + table.columns.map {
          ColumnDescription(name: $0.name, kind: $0.kind, isOptional: $0.isOptional, keyPlace: 0)
        }
      try Conformance.expectEqual(try database.columns(of: table.name), wanted, table.name)
    }
  },

  StoreCase("a store of version 1 keeps what it holds, and its answers to spends") { database in
    try database.migrate(upTo: 1)
    let store = try database.open()
    try expectFailure(.refused, "a stage on an older schema") { _ = try store.stage("entitlements", group: "g") }
    func line(_ entry: String, _ unit: String, _ amount: Int64, _ version: Int) -> String {
      "('Production', 'a', '\(unit)', '\(entry)', 'account', 'spent', \(amount), \(version), \(version * 10))"
    }
    func permit(_ proof: String, _ status: String, _ at: Int) -> String {
      "('Production', 'a', '\(proof)', '\(status)', 'none', 'insufficient-funds', \(at))"
    }
    try database.sql(
      """
      INSERT INTO stage (name, consumer_group) VALUES ('entitlements', 'g');
      INSERT INTO catalogue (version, kept_at, document) VALUES ('1', 5, \(database.emptyDocument));
      INSERT INTO ledger (environment, account, unit, entry, debit, credit, amount, version, recorded_at)
      VALUES \(line("spend:both", "gems", 7, 4)), \(line("spend:both", "coins", 8, 2)), \(line("spend:done", "coins", 9, 3)),
        \(line("2000/1", "coins", 1, 1));
      INSERT INTO permit (environment, account, proof, status, content, reason, decided_at)
      VALUES \(permit("spend:coins:a:b", "refused", 60)), \(permit("spend:gems:done", "refused", 70)),
        \(permit("attempt:spend:", "finishable", 80));
      """)
    try store.migrate()
    let reader = try store.reader()
    func answer(
      _ request: String, _ outcome: String, _ reason: String, _ asked: String?, _ version: Int64?, _ at: Int64
    ) -> Row {
      Row(
        RowKey(.answer, [.text("Production"), .text("a"), .text(request)]),
        [
          .text("spend"), .text(outcome), .text(reason), Value(asked), Value(version), .text("before version 2"),
          .integer(at),
        ])
    }
    try Conformance.expectEqual(
      try reader.rows(.answer, prefix: [], after: nil, limit: 10),
      [
        answer("spend:a:b", "refused", "insufficient-funds", nil, nil, 60),
        answer("spend:both", "done", "spent", "coins 8", 2, 20),
        answer("spend:done", "done", "spent", "coins 9", 3, 30),
      ])
    try Conformance.expectEqual(
      try reader.rows(.permit, prefix: [], after: nil, limit: 10).map { $0.key.values[2].text }, ["attempt:spend:"])
    try Conformance.expectEqual(
      try reader.row(RowKey(.catalogue, [.text("1")])),
      Row(RowKey(.catalogue, [.text("1")]), [.integer(5), .bytes(Array("{}".utf8)), .null]))
    try Conformance.expectEqual(try reader.rows(.ledger, prefix: [], after: nil, limit: 10).count, 4)
    try store.stage("entitlements", group: "g").close()
  },

  StoreCase("a stage belongs to one consumer group") { database in
    let store = try database.migrated()
    closing(try store.stage("ownership", group: "one"))
    closing(try store.stage("ownership", group: "one"))
    try expectFailure(.refused, "another group") { _ = try store.stage("ownership", group: "two") }
    try expectFailure(.refused, "another group through another handle") {
      _ = try database.open().stage("ownership", group: "two")
    }
    // Another stage of the same store has a group of its own.
    closing(try store.stage("entitlements", group: "two"))
  },
]

/// Closes what was only opened to see that it can be.
private func closing(_ stage: any StageStore) { stage.close() }
