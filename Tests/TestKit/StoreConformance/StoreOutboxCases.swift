import PurchasesContracts
import PurchasesCore

let storeOutboxCases: [StoreCase] = [
  StoreCase("outgoing records come back as they went, in order") { database in
    let worker = try database.worker()
    let records = [
      produced("k", "v"),
      ProducedRecord(
        topic: "purchases.entitlement-state", partition: 3,
        record: Record(
          key: nil, value: nil, headers: [Header("a", nil), Header("a", [0, 255]), Header("ü", "")],
          timestamp: Instant(milliseconds: .min))),
      ProducedRecord(
        topic: "t", record: Record(key: [], value: [], timestamp: Instant(milliseconds: .max))),
    ]
    try worker.commit([], outgoing: records)
    try worker.commit([], outgoing: [])
    try worker.commit([], outgoing: records.reversed())
    try Conformance.expectEqual(
      try worker.stage.unpublished(.first, beyond: nil),
      [
        Unpublished(partition: .first, from: nil, next: 1, outgoing: records),
        Unpublished(partition: .first, from: 1, next: 2, outgoing: []),
        Unpublished(partition: .first, from: 2, next: 3, outgoing: records.reversed()),
      ])
    try Conformance.expectEqual(try worker.stage.unpublished(.first, beyond: 2).map(\.next), [3])
    try Conformance.expectEqual(try worker.stage.unpublished(.first, beyond: 3), [])
    try Conformance.expectEqual(try worker.stage.unpublished(.second, beyond: nil), [])
  },

  StoreCase("megabytes of outgoing records in one batch") { database in
    let worker = try database.worker()
    let records = (0..<3_000).map { produced("key-\($0)", String(repeating: "\($0 % 10)", count: 1_000)) }
    try worker.commit([], outgoing: records)
    let kept = try worker.stage.unpublished(.first, beyond: nil)
    try Conformance.expectEqual(kept.count, 1)
    try Conformance.expect(kept.first?.outgoing == records, "three thousand records come back in order")
  },

  StoreCase("what is published is dropped, by partition and position") { database in
    let stage = try database.migrated().stage("ownership", group: "g")
    let epochs = try stage.claim([.first, .second]).mapValues(\.epoch)
    func commit(_ from: Int64?, _ next: Int64, published: [TopicPartition: Int64]) throws {
      try stage.commit(
        StoreTransaction(
          advances: [TopicPartition.first, .second].map {
            Advance(
              partition: $0, epoch: epochs[$0] ?? 0, from: from, next: next, outgoing: [produced("\($0)", "\(next)")])
          }, writes: []), published: published)
    }
    try commit(nil, 10, published: [:])
    try commit(10, 20, published: [:])
    try commit(20, 30, published: [.first: 20])
    try Conformance.expectEqual(try stage.unpublished(.first, beyond: nil).map(\.next), [30])
    try Conformance.expectEqual(try stage.unpublished(.second, beyond: nil).map(\.next), [10, 20, 30])
    // In the middle of a batch is not beyond it.
    try commit(30, 40, published: [.first: 39, .second: 29])
    try Conformance.expectEqual(try stage.unpublished(.first, beyond: nil).map(\.next), [40])
    try Conformance.expectEqual(try stage.unpublished(.second, beyond: nil).map(\.next), [30, 40])
    try Conformance.expectEqual(
      try stage.unpublished(.second, beyond: 30).first?.outgoing, [produced("\(TopicPartition.second)", "40")])
  },

  StoreCase("another stage's outgoing records are not ours") { database in
    let one = try database.worker(stage: "ownership")
    let two = try database.worker(stage: "entitlements")
    try one.commit([], outgoing: [produced("k", "ownership")])
    try two.commit([], outgoing: [produced("k", "entitlements")], published: [.first: 1])
    try Conformance.expectEqual(
      try one.stage.unpublished(.first, beyond: nil).first?.outgoing, [produced("k", "ownership")])
  },
]

func produced(_ key: String, _ value: String) -> ProducedRecord {
  ProducedRecord(
    topic: "purchases.entitlements",
    record: Record(
      key: Array(key.utf8), value: Array(value.utf8), headers: [Header("ce_id", key)],
      timestamp: Instant(milliseconds: 1_700_000_000_000)))
}
