import PurchasesContracts
import Synchronization

let storeFenceCases: [StoreCase] = [
  StoreCase("a claim raises the epoch and tells the position") { database in
    let stage = try database.migrated().stage("ownership", group: "g")
    try Conformance.expectEqual(try stage.claim([.first])[.first], StagePosition(epoch: 1, next: nil))
    try stage.commit(
      StoreTransaction(
        advances: [Advance(partition: .first, epoch: 1, from: nil, next: 42, outgoing: [])], writes: []),
      published: [:])
    let again = try database.open().stage("ownership", group: "g")
    let claimed = try again.claim([.first, .second])
    try Conformance.expectEqual(
      claimed, [.first: StagePosition(epoch: 2, next: 42), .second: StagePosition(epoch: 1, next: nil)])
    // Stages don't share positions.
    let other = try database.open().stage("entitlements", group: "g")
    try Conformance.expectEqual(try other.claim([.first])[.first], StagePosition(epoch: 1, next: nil))
    let reader = try database.open().reader()
    try Conformance.expectEqual(try reader.positions(stage: "ownership"), claimed)
  },

  StoreCase("claims at once get epochs of their own") { database in
    let store = try database.migrated()
    let epochs = Collected<Int64>()
    try Conformance.atOnce(4) { _ in
      let stage = try store.stage("ownership", group: "g")
      for _ in 0..<5 {
        let claimed = try stage.claim([.second, .first])
        epochs.append(try Conformance.require(claimed[.first]?.epoch, "an epoch"))
      }
    }
    try Conformance.expectEqual(epochs.all.sorted(), Array(1...20))
  },

  StoreCase("an old epoch writes nothing") { database in
    let old = try database.worker()
    try old.commit([.put(alias("a", "1"))])
    let new = try Worker(store: try database.open(), partition: .first, stage: "entitlements", group: "entitlements")
    try expectFailure(.fenced, "a commit under an old epoch") { try old.commit([.put(alias("a", "2"))]) }
    try Conformance.expectEqual(try new.row(alias("a", "").key), alias("a", "1"))
    try new.commit([.put(alias("a", "3"))])
    try expectFailure(.fenced, "a commit under an old epoch") { try old.commit([.put(alias("a", "2"))]) }
    try Conformance.expectEqual(try new.row(alias("a", "").key), alias("a", "3"))
  },

  StoreCase("a batch goes in at its own position only") { database in
    let worker = try database.worker()
    func commit(from: Int64?, next: Int64) throws {
      try worker.stage.commit(
        StoreTransaction(
          advances: [
            Advance(partition: .first, epoch: worker.epoch, from: from, next: next, outgoing: [])
          ],
          writes: [.put(alias("a", "\(next)"))]), published: [:])
    }
    try expectFailure(.fenced, "a position before there is one") { try commit(from: 3, next: 5) }
    try commit(from: nil, next: 10)
    try expectFailure(.fenced, "a first batch where there was one") { try commit(from: nil, next: 12) }
    try expectFailure(.fenced, "a gap") { try commit(from: 11, next: 12) }
    try expectFailure(.fenced, "an overlap") { try commit(from: 9, next: 12) }
    try Conformance.expectEqual(try worker.row(alias("a", "").key), alias("a", "10"))
    try commit(from: 10, next: 12)
    try Conformance.expectEqual(try worker.row(alias("a", "").key), alias("a", "12"))
  },

  StoreCase("a position never moves back, whatever the writer asks for") { database in
    let worker = try database.worker()
    try worker.commit([])
    for next in [Int64(0), 1] {
      let failure = try failure("a batch that ends at \(next) from 1") {
        try worker.stage.commit(
          StoreTransaction(
            advances: [Advance(partition: .first, epoch: worker.epoch, from: 1, next: next, outgoing: [])],
            writes: []), published: [:])
      }
      try Conformance.expect([.refused, .fenced].contains(failure.kind), "\(failure)")
    }
    try Conformance.expectEqual(try worker.stage.claim([.first])[.first]?.next, 1)
  },

  StoreCase("a partition that was never claimed takes nothing") { database in
    let worker = try database.worker()
    try expectFailure(.fenced, "a partition without an epoch") {
      try worker.stage.commit(
        StoreTransaction(
          advances: [Advance(partition: .second, epoch: 1, from: nil, next: 1, outgoing: [])], writes: []),
        published: [:])
    }
  },

  StoreCase("one fenced partition holds back the whole batch") { database in
    let stage = try database.migrated().stage("ownership", group: "g")
    let claimed = try stage.claim([.first, .second])
    let taken = try database.open().stage("ownership", group: "g")
    _ = try taken.claim([.second])
    try expectFailure(.fenced, "a batch of two partitions, one of them taken") {
      try stage.commit(
        StoreTransaction(
          advances: [TopicPartition.first, .second].map {
            Advance(partition: $0, epoch: claimed[$0]?.epoch ?? 0, from: nil, next: 5, outgoing: [produced("k", "v")])
          }, writes: [.put(alias("a", "b"))]), published: [:])
    }
    let positions = try database.open().reader().positions(stage: "ownership")
    try Conformance.expectEqual(positions.mapValues(\.next), [.first: nil, .second: nil])
    try Conformance.expectEqual(try stage.unpublished(.first, beyond: nil), [])
  },

  StoreCase("a commit tried again after an unknown outcome is told by the position") { database in
    let worker = try database.worker()
    let transaction = StoreTransaction(
      advances: [worker.advance(by: 7, outgoing: [produced("k", "v")])], writes: [.insert(alias("a", "b"))])
    try worker.stage.commit(transaction, published: [:])
    // As if the answer had been lost: the same batch must not go in twice, nor pass for a conflict of its own rows.
    try expectFailure(.fenced, "the same batch again") { try worker.stage.commit(transaction, published: [:]) }
    let again = try Worker(store: try database.open(), partition: .first, stage: "entitlements", group: "entitlements")
    try Conformance.expectEqual(again.next, 7)
    try Conformance.expectEqual(
      try again.stage.unpublished(.first, beyond: nil),
      [Unpublished(partition: .first, from: nil, next: 7, outgoing: [produced("k", "v")])])
  },

  StoreCase("workers with partitions of their own work at once") { database in
    let store = try database.migrated()
    let partitions = (0..<4).map { TopicPartition("purchases.verified", Int32($0)) }
    let batches = 15
    try Conformance.atOnce(partitions.count) { index in
      let worker = try Worker(store: store, partition: partitions[index], stage: "auditing", group: "g")
      for batch in 0..<batches {
        // Rows of their own, and rows that all of them merge into, in different orders.
        var shared = (0..<20).map {
          Write.merge(watch("shared-\($0)", ["purchased_at": .integer(Int64(100 * index + batch))]))
        }
        if index % 2 == 1 { shared.reverse() }
        try worker.commit(
          shared + [.insert(watch("own-\(index)-\(batch)", [:]))], outgoing: [produced("\(index)", "\(batch)")])
      }
    }
    let reader = try store.reader()
    try Conformance.expectEqual(try reader.count(.auditWatch), Int64(20 + partitions.count * batches))
    for row in 0..<20 {
      try Conformance.expectEqual(
        try reader.row(watch("shared-\(row)", [:]).key), watch("shared-\(row)", ["purchased_at": .integer(0)]))
    }
    try Conformance.expectEqual(
      try reader.positions(stage: "auditing"),
      Dictionary(uniqueKeysWithValues: partitions.map { ($0, StagePosition(epoch: 1, next: Int64(batches))) }))
  },

  StoreCase("a process that dies in a transaction leaves nothing and holds up nobody") { database in
    let worker = try database.worker()
    let held = try database.hold(
      "INSERT INTO alias (environment, account, into_account) VALUES ('Production', 'a', 'half')")
    held.drop()
    try worker.commit([.insert(alias("a", "whole"))])
    try Conformance.expectEqual(try worker.row(alias("a", "").key), alias("a", "whole"))
  },
]

/// Values gathered from several threads.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])

  func append(_ element: Element) { elements.withLock { $0.append(element) } }
  var all: [Element] { elements.withLock { $0 } }
}
