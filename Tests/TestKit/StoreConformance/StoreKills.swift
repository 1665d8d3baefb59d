import PurchasesContracts

/// Kills processes in the middle of their commits and holds what they leave to what they said: for every store, but apart
/// from the suite, since it needs the program `PurchasesStoreWriter` beside the test.
public func killStoreWriters(_ database: any StoreDatabase, at place: String, rounds: Int, seed: UInt64) throws {
  var random = SeededRandom(seed: seed)
  let store = try database.migrated()
  let partition = TopicPartition("purchases.owned", 0)
  let stage = try store.stage("entitlements", group: "killed")
  let reader = try store.reader()
  var epoch: Int64 = 0
  for round in 0..<rounds {
    let program = try Program("PurchasesStoreWriter", [place])
    var last = try reader.positions(stage: "entitlements")[partition]?.next ?? 0
    for _ in 0..<Int.random(in: 1...40, using: &random) {
      let line = try Conformance.require(program.line(), "the program goes on")
      last = try Conformance.require(Int64(line), "a number, not \(line)")
    }
    for line in program.killed() { last = try Conformance.require(Int64(line), "a number, not \(line)") }

    // The claim settles it: whatever the dead program still had on its way is in by now, or will be refused.
    let position = try Conformance.require(try stage.claim([partition])[partition], "a position")
    let what = "round \(round), acknowledged \(last), position \(position)"
    try Conformance.expectEqual(position.epoch, epoch + 2, what)
    epoch = position.epoch
    let next = try Conformance.require(position.next, what)
    // What was acknowledged is there; of what was not, at most the one batch under way.
    try Conformance.expect(next == last || next == last + 1, what)
    let rows = try reader.rows(.alias, prefix: [.text("Production")], after: nil, limit: 100)
    try Conformance.expectEqual(rows.count, 20, what)
    try Conformance.expect(rows.allSatisfy { $0["into_account"] == .text("\(next)") }, "rows of one batch: \(what)")
    try Conformance.expectEqual(try reader.count(.notification), next, "a row for each batch: \(what)")
    let kept = try stage.unpublished(partition, beyond: next - 1)
    try Conformance.expectEqual(kept.map(\.next), [next], what)
    try Conformance.expectEqual(
      kept.flatMap(\.outgoing).compactMap { $0.record.value }, (0..<3).map { Array("\(next)-\($0)".utf8) }, what)
  }
}
