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
