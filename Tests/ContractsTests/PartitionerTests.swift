import PurchasesTestKit
import Testing

@testable import PurchasesContracts

struct PartitionerTests {
  /// What Kafka's Java client answers for these keys (the vectors of its own tests).
  @Test(arguments: [
    ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829),
    ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
  ])
  func hashesAsTheJavaClientDoes(_ key: String, _ hash: Int32) {
    #expect(Int32(bitPattern: Partitioner.murmur2(Array(key.utf8))) == hash)
  }

  @Test func anyKeyFallsIntoAPartition() {
    var random = SeededRandom.seeded("Partitioner")
    var used: Set<Int32> = []
    for _ in 0..<2000 {
      let key = random.bytes(upTo: 40)
      let partition = Partitioner.partition(forKey: key, of: 7)
      #expect((0..<7).contains(partition))
      #expect(Partitioner.partition(forKey: key, of: 7) == partition)
      used.insert(partition)
    }
    #expect(used.count == 7)
    // The sign bit is dropped, not the sign: -973932308 & 0x7fffffff = 1173551340.
    #expect(Partitioner.partition(forKey: Array("21".utf8), of: 1000) == 340)
  }
}
