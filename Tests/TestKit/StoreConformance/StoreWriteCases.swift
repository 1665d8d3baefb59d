import PurchasesContracts

let storeWriteCases: [StoreCase] = [
  StoreCase("values of every kind come back as they went") { database in
    let worker = try database.worker()
    var rows: [Row] = []
    for table in Table.all {
      for sample in 0..<4 { rows.append(sampleRow(table, sample)) }
    }
    try worker.commit(rows.map { .put($0) })
    let fetched = try worker.stage.fetch(Set(rows.map { .row($0.key) }))
    let reader = try worker.store.reader()
    for row in rows {
      try Conformance.expectEqual(fetched.rows[row.key], row, row.key.table.name)
      try Conformance.expectEqual(try reader.row(row.key), row, row.key.table.name)
    }
    reader.close()
  },

  StoreCase("a put replaces the whole row") { database in
    let worker = try database.worker()
    try worker.commit([.put(watch("s", ["purchased_at": .integer(5), "reported": .integer(1)]))])
    try worker.commit([.put(watch("s", ["verified_at": .integer(7)]))])
    try Conformance.expectEqual(
      try worker.row(watch("s", [:]).key), watch("s", ["verified_at": .integer(7)]))
  },

  StoreCase("a delete removes, and removing nothing is no error") { database in
    let worker = try database.worker()
    try worker.commit([.put(alias("a", "b")), .put(alias("c", "d"))])
    try worker.commit([.delete(alias("a", "").key), .delete(alias("never", "").key)])
    try Conformance.expectEqual(try worker.row(alias("a", "").key), nil)
    try Conformance.expectEqual(try worker.row(alias("c", "").key), alias("c", "d"))
  },

  StoreCase("a merge sets what it names and keeps the least where the table says so") { database in
    let worker = try database.worker()
    let key = watch("s", [:]).key
    try worker.commit([.merge(watch("s", ["purchased_at": .integer(5), "reported": .integer(1)]))])
    try worker.commit([
      .merge(watch("s", ["purchased_at": .integer(9), "reported": .integer(3), "granted_at": .integer(6)]))
    ])
    try worker.commit([.merge(watch("s", ["purchased_at": .integer(4), "look_at": .integer(8)]))])
    try worker.commit([.merge(watch("s", [:]))])
    try Conformance.expectEqual(
      try worker.row(key),
      watch(
        "s",
        [
          "purchased_at": .integer(4), "reported": .integer(3), "granted_at": .integer(6), "look_at": .integer(8),
        ]))
  },

  StoreCase("an exchange replaces what has not changed, and nothing else") { database in
    let worker = try database.worker()
    let first = watch("s", ["purchased_at": .integer(5), "look_at": .integer(9)])
    let second = watch("s", ["purchased_at": .integer(5), "reported": .integer(1)])
    let third = watch("s", ["purchased_at": .integer(3), "look_at": .integer(8)])
    try worker.commit([.put(first)])
    try worker.commit([.exchange(third, was: second.values), .exchange(watch("t", [:]), was: first.values)])
    try Conformance.expectEqual(try worker.row(first.key), first, "another row was meant:")
    try Conformance.expectEqual(try worker.row(watch("t", [:]).key), nil, "there was none:")
    try worker.stage.amend([.exchange(second, was: first.values)], epochs: [.first: worker.epoch])
    try Conformance.expectEqual(try worker.row(first.key), second)
    try worker.commit([.exchange(third, was: second.values), .exchange(first, was: third.values)])
    try Conformance.expectEqual(try worker.row(first.key), first)
  },

  StoreCase("an insert that meets a row is a conflict that names the table, and leaves nothing") { database in
    let worker = try database.worker()
    try worker.commit([.insert(chain("1", account: "a"))])
    let conflict = try failure("a second owner of a chain") {
      try worker.commit([.put(alias("x", "y")), .insert(chain("1", account: "b")), .put(alias("z", "y"))])
    }
    try Conformance.expectEqual(conflict.kind, .conflict)
    try Conformance.expect(conflict.reason.contains("chain"), "names the table: \(conflict.reason)")
    try Conformance.expectEqual(try worker.row(chain("1", account: nil).key), chain("1", account: "a"))
    try Conformance.expectEqual(try worker.row(alias("x", "y").key), nil)
    // The position did not move either: the same batch, decided again, goes in.
    try worker.commit([.put(alias("x", "y"))])
    try Conformance.expectEqual(try worker.row(alias("x", "y").key), alias("x", "y"))
  },

  StoreCase("an insert is a conflict also when another stage's transaction was first") { database in
    let one = try database.worker(.first)
    let two = try Worker(store: try database.open(), partition: .second, stage: "entitlements", group: "entitlements")
    try Conformance.expectEqual(try two.row(alias("a", "b").key), nil)
    try one.commit([.insert(alias("a", "b"))])
    try expectFailure(.conflict, "an insert decided on old facts") { try two.commit([.insert(alias("a", "c"))]) }
    try Conformance.expectEqual(try two.row(alias("a", "b").key), alias("a", "b"))
  },

  StoreCase("a failure in the middle leaves nothing") { database in
    let worker = try database.worker()
    var bad = account("b")
    bad.values[Table.account.index("waiting")] = .integer(7)
    try expectFailure(.refused, "a value that the schema forbids") {
      try worker.commit(
        [.put(account("a")), .put(bad), .put(account("c"))], outgoing: [produced("k", "v")])
    }
    try Conformance.expect(
      try worker.stage.fetch([.row(account("a").key), .row(account("c").key)]).rows.isEmpty, "rows")
    try Conformance.expectEqual(try worker.stage.unpublished(.first, beyond: nil), [])
    try Conformance.expectEqual(try worker.stage.claim([.first])[.first]?.next, nil)
  },

  StoreCase("what one store can't hold, none holds") { database in
    let worker = try database.worker()
    try expectFailure(.refused, "U+0000 in a key") { try worker.commit([.put(alias("a\0b", "c"))]) }
    try expectFailure(.refused, "U+0000 in a column") { try worker.commit([.put(alias("a", "\0"))]) }
    try expectFailure(.refused, "text in an integer column") {
      try worker.commit([.put(Row(account("a").key, [.text("0")] + account("a").values.dropFirst()))])
    }
    try expectFailure(.refused, "null where the table wants a value") {
      try worker.commit([.put(Row(alias("a", "b").key, [.null]))])
    }
    // Asked for, such a key is merely absent.
    try Conformance.expectEqual(try worker.row(alias("a\0b", "c").key), nil)
    try Conformance.expectEqual(try worker.store.reader().row(alias("a\0b", "c").key), nil)
  },

  StoreCase("changes of one transaction apply in order") { database in
    let seed = UInt64.random(in: 0...UInt64.max)
    do {
      try anyOrderOfWrites(database, seed)
    } catch {
      throw Unmet("with seed \(seed): \(error)")
    }
  },

  StoreCase("five thousand rows in one transaction") { database in
    let worker = try database.worker()
    let rows = (0..<5_000).map { account("account-\($0)", version: Int64($0 + 1), due: Int64($0)) }
    try worker.commit(rows.map { .insert($0) })
    let fetched = try worker.stage.fetch(Set(rows.map { .row($0.key) } + [.row(account("none").key)]))
    try Conformance.expectEqual(fetched.rows.count, rows.count)
    for row in rows { try Conformance.expectEqual(fetched.rows[row.key], row) }
  },

  StoreCase("writes without a position are fenced by the same epochs") { database in
    let worker = try database.worker()
    try worker.stage.amend([.put(alias("a", "b"))], epochs: [.first: worker.epoch])
    try Conformance.expectEqual(try worker.row(alias("a", "b").key), alias("a", "b"))
    try expectFailure(.fenced, "an epoch that nobody was given") {
      try worker.stage.amend([.put(alias("a", "c"))], epochs: [.first: worker.epoch + 1])
    }
    _ = try worker.stage.claim([.first])
    try expectFailure(.fenced, "an old epoch") {
      try worker.stage.amend([.put(alias("a", "c"))], epochs: [.first: worker.epoch])
    }
    // With nothing to write it is the question whether a claim still holds.
    try worker.stage.amend([], epochs: [.first: worker.epoch + 1])
    try expectFailure(.fenced, "nothing under an old epoch") {
      try worker.stage.amend([], epochs: [.first: worker.epoch])
    }
    try Conformance.expectEqual(try worker.row(alias("a", "b").key), alias("a", "b"))
    try Conformance.expectEqual(try worker.stage.claim([.first])[.first]?.next, nil)
  },
]

/// Texts and bytes that stores have stumbled over.
private let texts = [
  "", "ümläut 🛒 \u{1F469}\u{200D}\u{1F4BB}", "it's \"quoted\" \\ {a,b}, NULL", "\u{1}\n\t\u{7f}\u{FFFD}",
]
private let blobs: [[UInt8]] = [[], [0], Array(0...255), Array(repeating: 0xab, count: 70_000)]
private let integers: [Int64] = [0, .max, 1 << 53 + 1, 77]

private func sampleRow(_ table: Table, _ sample: Int) -> Row {
  func value(_ column: Column, _ place: Int) -> Value {
    if table == .ledger {
      // Only whole lines are taken.
      switch column.name {
      case "debit": return .text(sample % 2 == 0 ? "account" : texts[sample])
      case "credit": return .text(sample % 2 == 0 ? texts[sample] : "account")
      case "amount": return .integer(max(1, integers[sample]))
      default: break
      }
    }
    return switch column.kind {
    case .bytes: .bytes(blobs[(sample + place) % blobs.count])
    case .text: .text(texts[(sample + place) % texts.count])
    case .integer:
      switch column.name {
      case "active", "waiting": .integer(Int64(sample % 2))
      // Signs where the schema has nothing against them.
      case "amount", "due_at", "recorded_at": .integer(sample == 0 ? .min : integers[sample])
      default: .integer(max(1, integers[sample]))
      }
    }
  }
  let key = table.key.enumerated().map { index, column in
    // Distinct in every sample, whatever the table.
    index == 0 ? Value.text("\(sample)-\(texts[sample])") : value(column, index)
  }
  let columns = table.columns.enumerated().map { index, column in
    column.isOptional && sample == 3 ? Value.null : value(column, index + table.key.count)
  }
  return Row(RowKey(table, key), columns)
}

/// Random writes to few rows, in transactions of several, against a model that applies them one by one.
private func anyOrderOfWrites(_ database: any StoreDatabase, _ seed: UInt64) throws {
  var random = SeededRandom(seed: seed)
  let worker = try database.worker()
  var model: [RowKey: Row] = [:]
  func randomRow() -> Row {
    func maybe() -> Value { Bool.random(using: &random) ? .null : .integer(.random(in: 0...9, using: &random)) }
    return watch(
      "s\(Int.random(in: 0..<4, using: &random))",
      [
        "purchased_at": maybe(), "verified_at": maybe(), "reported": maybe(), "look_at": maybe(),
      ])
  }
  for round in 0..<120 {
    var after = model
    var isConflict = false
    let writes = (0..<Int.random(in: 1...6, using: &random)).map { _ -> Write in
      let row = randomRow()
      let write: Write =
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: .put(row)
        case 2: .insert(row)
        case 3, 4: .merge(row)
        case 5:
          // Half of them name what the row holds at that moment.
          .exchange(row, was: (Bool.random(using: &random) ? after[row.key] : nil)?.values ?? randomRow().values)
        default: .delete(row.key)
        }
      isConflict = apply(write, to: &after) || isConflict
      return write
    }
    if isConflict {
      try expectFailure(.conflict, "round \(round): \(writes)") { try worker.commit(writes) }
    } else {
      try worker.commit(writes)
      model = after
    }
    let keys = (0..<4).map { watch("s\($0)", [:]).key }
    try Conformance.expectEqual(
      try worker.stage.fetch(Set(keys.map { .row($0) })).rows, model, "round \(round) after \(writes):")
  }
}

/// The contract of `Write`, said once more in the plainest way. True when an insert met a row.
private func apply(_ write: Write, to rows: inout [RowKey: Row]) -> Bool {
  switch write {
  case .put(let row): rows[row.key] = row
  case .delete(let key): rows[key] = nil
  case .insert(let row):
    if rows[row.key] != nil { return true }
    rows[row.key] = row
  case .exchange(let row, let was):
    if rows[row.key]?.values == was { rows[row.key] = row }
  case .merge(let row):
    guard var old = rows[row.key] else {
      rows[row.key] = row
      return false
    }
    for (index, column) in row.key.table.columns.enumerated() where row.values[index] != .null {
      if row.key.table.keepsLeast.contains(column.name), let mine = old.values[index].integer,
        let theirs = row.values[index].integer
      {
        old.values[index] = .integer(min(mine, theirs))
      } else {
        old.values[index] = row.values[index]
      }
    }
    rows[row.key] = old
  }
  return false
}
