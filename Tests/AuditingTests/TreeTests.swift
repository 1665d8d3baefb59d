import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct TreeTests {
  /// MTH of RFC 6962, 2.1, word for word: by recursion over the leaves' data.
  private static func definition(_ leaves: ArraySlice<[UInt8]>) -> Hash256 {
    if leaves.isEmpty { return SHA256.digest([UInt8]()) }
    if leaves.count == 1 { return SHA256.digest([0] + leaves[leaves.startIndex]) }
    var split = 1
    while split * 2 < leaves.count { split *= 2 }
    let middle = leaves.startIndex + split
    return SHA256.digest(
      [1] + definition(leaves[..<middle]).bytes + definition(leaves[middle...]).bytes)
  }

  private static func randomRecord(_ random: inout SeededRandom) -> Record {
    func bytes() -> [UInt8]? {
      Bool.random(using: &random)
        ? (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) } : nil
    }
    return Record(
      key: bytes(), value: bytes(),
      headers: (0..<Int.random(in: 0...3, using: &random)).map { Header("h\($0)", bytes()) },
      timestamp: Instant(milliseconds: Int64.random(in: -5...5_000_000, using: &random)))
  }

  @Test func rootIsTheOneOfTheRFCOverRandomRecords() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let settings = try Fixture.settings(partitions: 1)
    for size in [1, 2, 3, 7, 8, 9, 255, 256, 257, 511, 512, 513, 700] {
      let log = MemoryLog(settings.topics)
      let records = (0..<size).map { _ in Self.randomRecord(&random) }
      for record in records { log.append(record, to: .received) }
      let harness = StageHarness(AuditingStage(settings), log)
      harness.workAll(&random, longest: 300)
      let partition = TopicPartition("purchases.received", 0)
      let row = try #require(harness.rows[TreeState.key(partition)])
      let expected = Self.definition(records.map { RecordCodec.encode($0) }[...])
      #expect(row["root"] == .text(expected.hex), "seed \(seed), size \(size)")
      #expect(row["size"] == .integer(Int64(size)))
      // Tiles hold every leaf and every offset, in order.
      var leaf = 0
      for tile in 0...(size - 1) / 256 {
        let row = try #require(harness.rows[LeafTile.key(partition, index: Int64(tile))])
        let count = min(256, size - tile * 256)
        let read = try #require(LeafTile(row, partition, index: Int64(tile), count: Int64(count)))
        for place in 0..<count {
          #expect(read.hash(place) == MerkleTree.leafHash(RecordCodec.encode(records[leaf])), "seed \(seed)")
          #expect(read.offset(place) == log.records[partition]?[leaf].coordinates.offset)
          leaf += 1
        }
      }
    }
  }

  @Test func howRecordsAreBatchedShowsInNothing() throws {
    let settings = try Fixture.settings(limits: Fixture.fewLeaves)
    var seen: Set<[String]> = []
    var events: Set<[String]> = []
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for longest in [1, 2, 3, 10, 100, 1000] {
      let pipeline = SmallPipeline(settings.topics, payments: 120)
      let harness = StageHarness(AuditingStage(settings), pipeline.log)
      harness.workAll(&random, longest: longest)
      seen.insert(harness.rows.values.map { "\($0)" }.sorted())
      events.insert(harness.emitted.map { "\($0.id) \($0.event)" }.sorted())
    }
    #expect(seen.count == 1, "seed \(seed)")
    #expect(events.count == 1, "seed \(seed)")
  }

  @Test func aDamagedRowStopsTheStage() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = SmallPipeline(settings.topics, payments: 5).log
    let partition = TopicPartition("purchases.received", 0)
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(partition, 3)
    var row = try #require(harness.rows[TreeState.key(partition)])
    row.values[row.key.table.index("root")] = .text(String(repeating: "0", count: 64))
    harness.apply(.put(row))
    struct OneRow: Facts {
      func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
      let rows: [RowKey: Row]
      func row(_ key: RowKey) -> Row? { rows[key] }
      func rows(_ need: Need) -> [Row] { [] }
    }
    let run = Run(topic: .received, partition: partition, records: Array(log.records[partition]?.suffix(1) ?? []))
    let decided = AuditingStage(settings).decide(
      run: run, OneRow(rows: harness.rows), Moment(now: Instant(milliseconds: 0)))
    guard case .stop? = decided.first?.actions.first else {
      Issue.record("a damaged tree must not be grown")
      return
    }
  }
}
