import Glibc
import PurchasesContracts
import PurchasesCore
import Synchronization

let storeReadingCases: [StoreCase] = [
  StoreCase("ten thousand accounts are answered while the stage writes: none torn, and the stage goes on") { database in
    // One thread writes.
    nonisolated(unsafe) let worker = try database.worker()
    let accounts: Int64 = 10_000
    let blocks: Int64 = 100
    // Batch n changes every hundredth account, so that an answer's position alone tells all that is in it.
    @Sendable func writes(_ batch: Int64) throws -> [Write] {
      var writes: [Write] = []
      for number in stride(from: batch % blocks, to: accounts, by: Int(blocks)) {
        let row = AccountRow(
          environment: .production, account: try Conformance.require(Account("a\(number)"), "a name"), partition: 0,
          version: batch, catalogueVersion: "1", isWaiting: false, state: AccountState())
        let permit = Row(
          PermitRow.key(.production, row.account, proof: "p"),
          [
            .text("finishable"), .text("granted"), .text("granted"), .null, .null, .text("e\(batch)"), .integer(batch),
          ])
        writes += [.put(row.row), .put(permit)]
      }
      return writes
    }
    let history = CatalogueHistory(try Catalogue(parsing: Array(#"{"version":"1","products":[]}"#.utf8)))
    let question = AccountQuestion(now: Instant(milliseconds: 1), history: history)
    // The record at offset n is batch n.
    for batch in 0..<blocks { try worker.commit(writes(batch)) }
    let written = Atomic<Int64>(blocks)
    let readers = 4
    let reading = Atomic<Int>(readers)
    let hasEnded = Atomic<Bool>(false)
    let reader = try worker.store.reader()
    try Conformance.atOnce(readers + 1) { index in
      if index == readers {
        defer { hasEnded.store(true, ordering: .releasing) }
        while reading.load(ordering: .acquiring) > 0 {
          let batch = written.load(ordering: .relaxed)
          try worker.commit(writes(batch))
          written.store(batch + 1, ordering: .releasing)
        }
        return
      }
      defer { reading.subtract(1, ordering: .releasing) }
      for number in stride(from: Int64(index), to: accounts, by: readers) {
        let account = try Conformance.require(Account("a\(number)"), "a name")
        let before = written.load(ordering: .acquiring)
        let view = try reader.answer(.production, account, question)
        let next = try Conformance.require(view.position?.offset, "a position")
        // The newest batch before the position that changed this account.
        let batch = next - 1 - (next - 1 - number % blocks) % blocks
        try Conformance.expect(next >= before, "an answer older than what was committed before the question")
        try Conformance.expectEqual(view.version, batch, "the version of a\(number) at \(next)")
        try Conformance.expectEqual(view.permits.map(\.decidedAt.milliseconds), [batch], "a\(number) at \(next)")
        guard number % 1_000 == Int64(index) else { continue }
        // With an instant held open the stage commits on: this would wait for ever where it couldn't.
        let held = try reader.atOneInstant { reader throws(StoreFailure) in
          let first = try reader.positions(stage: "entitlements")
          let batches = written.load(ordering: .acquiring)
          while written.load(ordering: .acquiring) < batches + 2, !hasEnded.load(ordering: .acquiring) { sched_yield() }
          return try reader.positions(stage: "entitlements") == first
        }
        try Conformance.expect(held, "one instant has one position")
      }
    }
    try Conformance.expect(written.load(ordering: .acquiring) > blocks, "the stage went on")
  }
]
