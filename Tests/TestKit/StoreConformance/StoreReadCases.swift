import PurchasesContracts
import PurchasesCore

let storeReadCases: [StoreCase] = [
  StoreCase("what is due comes in order, of its own partition, up to the instant and the limit") { database in
    let worker = try database.worker()
    try worker.commit(
      [
        account("late", due: 201), account("b", due: 200), account("B", due: 200), account("ä", due: 200),
        account("z", due: 100), account("never", due: nil), account("elsewhere", partition: 1, due: 50),
        account("first", due: -5),
      ].map { .put($0) })
    func due(_ limit: Int) throws -> [String] {
      let need = Need.due(partition: 0, upTo: Instant(milliseconds: 200), limit: limit)
      let rows = try Conformance.require(try worker.stage.fetch([need]).queries[need], "an answer")
      return rows.map { $0.key.values[1].text ?? "" }
    }
    // By bytes: upper case before lower, and both before what is beyond ASCII.
    try Conformance.expectEqual(try due(100), ["first", "z", "B", "b", "ä"])
    try Conformance.expectEqual(try due(2), ["first", "z"])
    let need = Need.due(partition: 7, upTo: .distantFuture, limit: 5)
    try Conformance.expectEqual(try worker.stage.fetch([need]).queries[need], [])
  },

  StoreCase("a reader of one instant sees no later commit and holds up no writer") { database in
    let worker = try database.worker()
    try worker.commit([.put(account("a", version: 1)), .put(account("b", version: 1))])
    let reader = try database.open().reader()
    defer { reader.close() }
    func versions(_ reader: any StoreReader) throws(StoreFailure) -> [Int64?] {
      let a = try reader.row(account("a").key)
      let b = try reader.row(account("b").key)
      return [a?["version"].integer, b?["version"].integer]
    }
    var failure: (any Error)?
    let seen = try reader.atOneInstant { reader throws(StoreFailure) in
      let first = try reader.row(account("a").key)?["version"].integer
      let position = try reader.positions(stage: "entitlements")
      do { try worker.commit([.put(account("a", version: 2)), .put(account("b", version: 2))]) } catch {
        failure = error
      }
      let same = try reader.positions(stage: "entitlements") == position
      // One inside the other is the same instant.
      let inner = try reader.atOneInstant { inner throws(StoreFailure) in try versions(inner) }
      return (first, try versions(reader), inner, same)
    }
    if let failure { throw failure }
    try Conformance.expectEqual(seen.0, 1)
    try Conformance.expectEqual(seen.1, [1, 1])
    try Conformance.expectEqual(seen.2, [1, 1])
    try Conformance.expect(seen.3, "the position is of the same instant")
    try Conformance.expectEqual(try versions(reader), [2, 2])
    // A body that fails leaves a reader that goes on.
    var failed: StoreFailure?
    do throws(StoreFailure) {
      _ = try reader.atOneInstant { _ throws(StoreFailure) -> Int in throw StoreFailure(.corrupt, "on purpose") }
    } catch { failed = error }
    try Conformance.expectEqual(failed?.kind, .corrupt)
    try Conformance.expectEqual(try versions(reader), [2, 2])
  },

  StoreCase("rows that are asked for together, of several tables: those that exist, each under its key") { database in
    let worker = try database.worker()
    func alias(_ name: String, _ into: String) -> Row {
      Row(RowKey(.alias, [.text("Production"), .text(name)]), [.text(into)])
    }
    let there = [account("a", version: 1), account("ä", version: 2), alias("a", "b"), alias("x", "y")]
    try worker.commit(there.map { .put($0) })
    let reader = try database.open().reader()
    defer { reader.close() }
    // One that isn't there, one that can't be, and one that is asked for twice.
    let keys = there.map(\.key) + [account("none").key, alias("nobody", "").key, alias("n\0", "").key, there[0].key]
    let expected = Dictionary(uniqueKeysWithValues: there.map { ($0.key, $0) })
    try Conformance.expectEqual(try reader.rows(keys), expected)
    try Conformance.expectEqual(try reader.rows([]), [:])
    try Conformance.expectEqual(try reader.rows([alias("n\0", "").key]), [:])
    var failure: (any Error)?
    let seen = try reader.atOneInstant { reader throws(StoreFailure) in
      let first = try reader.rows(keys)
      do { try worker.commit([.put(alias("a", "c")), .delete(there[3].key)]) } catch { failure = error }
      return (first, try reader.rows(keys))
    }
    if let failure { throw failure }
    try Conformance.expectEqual(seen.0, expected)
    try Conformance.expectEqual(seen.1, expected, "of one instant")
    let now = try reader.rows(keys)
    try Conformance.expectEqual(now[there[2].key], alias("a", "c"))
    try Conformance.expect(now[there[3].key] == nil, "what was deleted is gone")
    try Conformance.expectEqual(now.count, 3)
  },

  StoreCase("whom a version of the catalogue decided last") { database in
    let worker = try database.worker()
    try worker.commit(
      [
        account("c", waiting: true, catalogue: "1"), account("a", waiting: true, catalogue: "2"),
        account("b", waiting: true, catalogue: "1"), account("d", waiting: false, catalogue: "1"),
        account("B", catalogue: "1"), account("e", partition: 1, waiting: true, catalogue: "1"),
        account("f", catalogue: "10"),
      ].map { .put($0) })
    func outdated(_ version: String, _ limit: Int) throws -> [String] {
      let need = Need.outdated(partition: 0, version: version, limit: limit)
      return try (worker.stage.fetch([need]).queries[need] ?? []).map { $0.key.values[1].text ?? "" }
    }
    try Conformance.expectEqual(try outdated("1", 10), ["B", "b", "c", "d"])
    try Conformance.expectEqual(try outdated("1", 2), ["B", "b"])
    try Conformance.expectEqual(try outdated("2", 10), ["a"])
    try Conformance.expectEqual(try outdated("3", 10), [])
  },

  StoreCase("what audit must look at comes in order, up to the instant and the limit") { database in
    let worker = try database.worker()
    try worker.commit(
      [("b", 5), ("B", 5), ("a", 7), ("z", 3), ("later", 8)].map { subject, instant in
        .put(watch(subject, ["look_at": .integer(instant)]))
      } + [.put(watch("closed", [:]))])
    func due(_ limit: Int) throws -> [String] {
      let need = Need.watch(upTo: Instant(milliseconds: 7), limit: limit)
      return try (worker.stage.fetch([need]).queries[need] ?? []).map { $0.key.values[1].text ?? "" }
    }
    try Conformance.expectEqual(try due(9), ["z", "B", "b", "a"])
    try Conformance.expectEqual(try due(1), ["z"])
  },

  StoreCase("rows and queries in one fetch, and absent rows are absent") { database in
    let worker = try database.worker()
    try worker.commit([.put(account("a", due: 1)), .put(alias("x", "y")), .put(chain("1", account: "a"))])
    let due = Need.due(partition: 0, upTo: Instant(milliseconds: 9), limit: 9)
    let fetched = try worker.stage.fetch([
      due, .row(account("a").key), .row(account("none").key), .row(alias("x", "").key),
      .row(chain("1", account: nil).key),
    ])
    try Conformance.expectEqual(fetched.queries, [due: [account("a", due: 1)]])
    try Conformance.expectEqual(
      fetched.rows,
      Dictionary(
        uniqueKeysWithValues: [account("a", due: 1), alias("x", "y"), chain("1", account: "a")].map { ($0.key, $0) }))
    try Conformance.expect(try worker.stage.fetch([]).rows.isEmpty, "nothing asked, nothing answered")
  },

  StoreCase("a reader sees what is committed, and only that") { database in
    let worker = try database.worker()
    let reader = try worker.store.reader()
    let held = try database.hold(
      "INSERT INTO alias (environment, account, into_account) VALUES ('Production', 'a', 'b')")
    try Conformance.expectEqual(try reader.row(alias("a", "b").key), nil)
    try Conformance.expectEqual(try reader.count(.alias), 0)
    try held.commit()
    try Conformance.expectEqual(try reader.row(alias("a", "b").key), alias("a", "b"))
    try Conformance.expectEqual(try reader.count(.alias), 1)
  },

  StoreCase("a reader in the middle of reading does not hold up the writer") { database in
    let worker = try database.worker()
    try worker.commit([.put(alias("a", "1"))])
    let held = try database.hold("SELECT * FROM alias")
    try worker.commit([.put(alias("a", "2"))])
    held.drop()
    try Conformance.expectEqual(try worker.store.reader().row(alias("a", "").key), alias("a", "2"))
  },

  StoreCase("a reader is shared between threads") { database in
    let worker = try database.worker()
    try worker.commit((0..<50).map { .put(alias("a\($0)", "b\($0)")) })
    let reader = try worker.store.reader()
    try Conformance.atOnce(8) { index in
      for row in 0..<50 {
        let wanted = alias("a\((row + index) % 50)", "b\((row + index) % 50)")
        try Conformance.expectEqual(try reader.row(wanted.key), wanted)
      }
    }
    reader.close()
    try expectFailure(.unavailable, "a closed reader") { _ = try reader.row(alias("a1", "").key) }
  },

  StoreCase("a range is read page by page in the order of bytes") { database in
    let worker = try database.worker()
    let names = ["a", "B", "b", "ä", "Z", "ab", "a b", "a-b", "🛒", "", "é", "e\u{301}"]
    func line(_ account: String, _ entry: String) -> Row {
      Row(
        RowKey(.ledger, [.text("Production"), .text(account), .text("coins"), .text(entry)]),
        [.text("store"), .text("account"), .integer(1), .integer(1), .integer(1)])
    }
    try worker.commit(names.map { .insert(line("me", $0)) } + [.insert(line("you", "x")), .insert(line("m", "x"))])
    let reader = try worker.store.reader()
    var seen: [String] = []
    var after: [Value]?
    while true {
      let page = try reader.rows(.ledger, prefix: [.text("Production"), .text("me")], after: after, limit: 5)
      seen += page.compactMap { $0.key.values[3].text }
      guard let last = page.last else { break }
      after = last.key.values
    }
    let byBytes = names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    try Conformance.expectEqual(seen.map { Array($0.utf8) }, byBytes.map { Array($0.utf8) })
    try Conformance.expectEqual(try reader.rows(.ledger, prefix: [], after: nil, limit: 100).count, names.count + 2)
    try Conformance.expectEqual(try reader.rows(.ledger, prefix: [], after: nil, limit: 0), [])
  },

  StoreCase("rows by an indexed column") { database in
    let worker = try database.worker()
    try worker.commit([
      .put(chain("3", account: "me")), .put(chain("1", account: "me")), .put(chain("2", account: "you")),
      .put(chain("4", account: nil)), .put(watch("x", ["look_at": .integer(5)])),
      .put(watch("y", ["look_at": .integer(3)])), .put(watch("z", ["look_at": .integer(6)])), .put(watch("w", [:])),
    ])
    let reader = try worker.store.reader()
    let mine = try reader.rows(.chain, where: "account", is: .text("me"), limit: 10)
    try Conformance.expectEqual(mine, [chain("1", account: "me"), chain("3", account: "me")])
    try Conformance.expectEqual(
      try reader.rows(.chain, where: "account", is: .text("me"), limit: 1), [chain("1", account: "me")])
    let due = try reader.rows(.auditWatch, where: "look_at", atMost: 5, limit: 10)
    try Conformance.expectEqual(due.map { $0.key.values[1].text }, ["y", "x"])
    try Conformance.expectEqual(
      try reader.rows(.chain, where: "unowned_since", atMost: .max, limit: 10), [chain("4", account: nil)])
    try Conformance.expectEqual(try reader.count(.chain, whereSet: "unowned_since"), 1)
    try Conformance.expectEqual(try reader.count(.chain, whereSet: "account"), 3)
    try Conformance.expectEqual(try reader.count(.auditWatch, whereSet: "look_at"), 3)
    for table in Table.all {
      for column in table.indexed {
        // Every index that the contract names is there to be asked.
        let kind = table.columns[table.index(column)].kind
        if kind == .integer { _ = try reader.rows(table, where: column, atMost: 0, limit: 1) }
        _ = try reader.rows(table, where: column, is: kind == .integer ? .integer(0) : .text(""), limit: 1)
      }
    }
  },

  StoreCase("people find documents as text and instants as times") { database in
    let worker = try database.worker()
    try worker.commit([.put(account("a", due: 1_700_000_000_000)), .put(chain("1", account: "a"))])
    for view in ["readable_account", "readable_chain"] {
      try Conformance.expectEqual(try database.text("SELECT document FROM \(view)"), "{}", view)
    }
    let due = try database.text("SELECT CAST(due_at AS text) FROM readable_account")
    try Conformance.expect(due.hasPrefix("2023-11-14 22:13:20"), "the instant as a time: \(due)")
  },

  StoreCase("the books of a stage: its group, positions and kept batches") { database in
    let store = try database.migrated()
    let reader = try store.reader()
    try Conformance.expectEqual(try reader.books(stage: "ownership"), StageBooks())
    let stage = try store.stage("ownership", group: "g")
    try Conformance.expectEqual(try reader.books(stage: "ownership"), StageBooks(group: "g"))
    _ = try stage.claim([.second])
    _ = try stage.claim([.first, .second])
    func commit(_ from: Int64?, _ next: Int64, published: [TopicPartition: Int64]) throws {
      let advance = Advance(
        partition: .first, epoch: 1, from: from, next: next, outgoing: from == nil ? [] : [produced("k", "v")])
      try stage.commit(StoreTransaction(advances: [advance], writes: []), published: published)
    }
    try commit(nil, 3, published: [:])
    try commit(3, 5, published: [:])
    var books = StageBooks(group: "g")
    books.add(.first, StagePosition(epoch: 1, next: 5), kept: KeptBatch(from: nil, next: 3))
    books.add(.first, StagePosition(epoch: 1, next: 5), kept: KeptBatch(from: 3, next: 5))
    books.add(.second, StagePosition(epoch: 2, next: nil), kept: nil)
    try Conformance.expectEqual(try reader.books(stage: "ownership"), books)
    try commit(5, 9, published: [.first: 5])
    try Conformance.expectEqual(
      try reader.books(stage: "ownership").kept, [.first: [KeptBatch(from: 5, next: 9)]])
    try Conformance.expectEqual(try reader.books(stage: "auditing"), StageBooks())
  },

  StoreCase("a probe answers") { database in
    let reader = try database.migrated().reader()
    try reader.probe()
  },
]
