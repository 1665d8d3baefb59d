import PurchasesContracts
import PurchasesCore
import Testing

@Suite struct OutboxCodecTests {
  private let records: [ProducedRecord] = (0..<5).map { (index: Int) -> ProducedRecord in
    let record = Record(
      key: index == 0 ? nil : [UInt8(index)], value: [1, 2, 3], headers: [Header("h", nil), Header("i", "v")],
      timestamp: Instant(milliseconds: Int64(index)))
    return ProducedRecord(topic: "topic-\(index)", partition: index % 2 == 0 ? nil : Int32(index), record: record)
  }

  @Test func comesBackAsItWent() throws {
    var back: [ProducedRecord] = []
    for block in OutboxCodec.encode(records) { try OutboxCodec.decode(block, into: &back) }
    #expect(back == records)
    #expect(OutboxCodec.encode([]).isEmpty)
  }

  @Test func largeBatchesAreSeveralBlocks() throws {
    let large = ProducedRecord(
      topic: "t",
      record: Record(key: nil, value: Array(repeating: 7, count: 400_000), timestamp: Instant(milliseconds: 0)))
    let blocks = OutboxCodec.encode(Array(repeating: large, count: 7))
    #expect(blocks.count == 3)
    var back: [ProducedRecord] = []
    for block in blocks { try OutboxCodec.decode(block, into: &back) }
    #expect(back.count == 7)
  }

  @Test func aBlockCutAnywhereIsRefusedOrEndsAtARecord() {
    let block = OutboxCodec.encode(records)[0]
    var ends: Set<Int> = [0]
    for count in 1...records.count {
      ends.insert(OutboxCodec.encode(Array(records.prefix(count))).reduce(0) { $0 + $1.count })
    }
    for length in 0..<block.count {
      var back: [ProducedRecord] = []
      do {
        try OutboxCodec.decode(Array(block.prefix(length)), into: &back)
        #expect(ends.contains(length))
      } catch {
        #expect(!ends.contains(length))
      }
    }
  }
}
