import PurchasesCryptography
import PurchasesTestKit
import Testing

@Suite struct HashingTests {
  @Test func knownDigests() {
    // FIPS 180-2 examples.
    #expect(SHA256.digest([]).hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(SHA256.digest("abc").hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      SHA256.digest([UInt8](repeating: 0x61, count: 1_000_000)).hex
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  @Test func piecesAgreeWithTheWhole() {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    let hasher = SHA256.Hasher()
    for _ in 0..<50 {
      let bytes = source.bytes(Int.random(in: 0..<300, using: &source))
      var rest = bytes[...]
      while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 1...70, using: &source))
        hasher.update(piece)
        rest = rest.dropFirst(piece.count)
      }
      #expect(hasher.finish() == SHA256.digest(bytes), "seed \(seed)")
    }
    hasher.update(bigEndian: UInt32(0x0102_0304))
    hasher.update(bigEndian: UInt64(5))
    hasher.update(SHA256.digest("abc"))
    hasher.update("é")
    let whole = [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5] + SHA256.digest("abc").bytes + [0xC3, 0xA9]
    #expect(hasher.finish() == SHA256.digest(whole))
  }

  @Test func hashValueRoundTripsAndOrders() {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for _ in 0..<200 {
      let left = source.bytes(32)
      var right = source.bytes(32)
      let shared = Int.random(in: 0...32, using: &source)
      right.replaceSubrange(..<shared, with: left[..<shared])
      guard let a = Hash256(bytes: left), let b = Hash256(bytes: right) else {
        Issue.record("32 bytes refused")
        return
      }
      #expect(a.bytes == left)
      #expect(Hash256(hex: a.hex) == a)
      #expect((a < b) == left.lexicographicallyPrecedes(right), "seed \(seed)")
      #expect((a == b) == (left == right), "seed \(seed)")
    }
    #expect(Hash256(bytes: [UInt8](repeating: 0, count: 31)) == nil)
    #expect(Hash256(hex: "00") == nil)
    #expect(Hash256(hex: String(repeating: "g", count: 64)) == nil)
  }

  @Test func hmacAndDerivationVectors() {
    // RFC 4231, cases 2 and 6.
    #expect(
      HMACSHA256.authenticate(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8)).hex
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      HMACSHA256.authenticate(
        Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8), key: [UInt8](repeating: 0xAA, count: 131)
      ).hex == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    let info = String(decoding: [0x66, 0x6F, 0x6F] as [UInt8], as: UTF8.self)
    let long = HMACSHA256.derive(from: [UInt8](repeating: 0x0B, count: 22), salt: [1], info: info, count: 82)
    #expect(long.count == 82)
    #expect(
      HMACSHA256.derive(from: [UInt8](repeating: 0x0B, count: 22), salt: [1], info: info, count: 42)
        == Array(long.prefix(42)))
    // RFC 5869, case 3: no salt, no info.
    #expect(
      Hex.encode(HMACSHA256.derive(from: [UInt8](repeating: 0x0B, count: 22), info: "", count: 42))
        == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
  }

  @Test func constantTimeComparison() {
    #expect(ConstantTime.areEqual([], []))
    #expect(ConstantTime.areEqual([1, 2, 3], [1, 2, 3]))
    #expect(!ConstantTime.areEqual([1, 2, 3], [1, 2, 4]))
    #expect(!ConstantTime.areEqual([1, 2, 3], [1, 2]))
  }

  /// At every length around the hash's blocks, and from many threads at once.
  @Test func aSharedBeginningIsHashedAsTheWhole() async {
    let bytes = (0..<400).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    await withTaskGroup(of: Void.self) { group in
      for cut in [0, 1, 63, 64, 65, 128, 200] {
        let beginning = SHA256.Beginning(bytes[..<cut])
        for _ in 0..<4 {
          group.addTask {
            for middle in [cut, cut + 1, cut + 64, cut + 150] {
              let (first, whole) = beginning.digests(bytes[cut..<middle], bytes[middle...])
              #expect(first == SHA256.digest(bytes[..<middle]))
              #expect(whole == SHA256.digest(bytes))
            }
          }
        }
      }
    }
  }
}
