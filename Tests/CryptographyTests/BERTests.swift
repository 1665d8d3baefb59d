import PurchasesTestKit
import Testing

@testable import PurchasesCryptography

struct BERTests {
  private func failure(_ bytes: [UInt8]) -> BERFailure.Kind? {
    do throws(BERFailure) {
      _ = try BERValue(parsing: bytes)
      return nil
    } catch { return error.kind }
  }

  @Test func openLengthsNestAndEnd() throws {
    let value = try BERValue(parsing: [0x30, 0x80, 0x30, 0x80, 0x02, 0x01, 0x07, 0, 0, 0, 0])
    #expect(value.children.count == 1 && value.children[0].children[0].unsigned == 7)
    #expect(value.content.count == 7 && value.encoding.count == 11)
    #expect(value.definite == [0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x07])
    #expect(failure([0x30, 0x80, 0x30, 0x80]) == .truncated)
    #expect(failure([0x30, 0x80, 0x30, 0x80, 0, 0]) == .truncated)
    #expect(failure([0x30, 0x80, 0, 0, 0]) == .trailingBytes)
    #expect(failure([0x30, 0x80, 0, 1, 0]) == .malformedLength)
  }

  @Test(
    arguments: [
      ([], .empty), ([0x30], .truncated), ([0x30, 0x84, 0x7F, 0xFF, 0xFF], .truncated),
      ([0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF], .truncated), ([0x30, 0x85, 0, 0, 0, 0, 0], .malformedLength),
      ([0x30, 0xFF, 0], .malformedLength), ([0x04, 0x80, 0, 0], .indefinitePrimitive),
      ([0x30, 0x01, 0x02], .truncated),
      ([0x30, 0x02, 0, 0], .strayEndOfContents), ([0, 0], .strayEndOfContents), ([0x1F, 0x81, 0, 0], .longTag),
      ([0x30, 0x00, 0x05, 0x00], .trailingBytes), ([0x30, 0x02, 0x04, 0x05, 1, 1, 1, 1, 1], .overrun),
      ([0x30, 0x03, 0x30, 0x80, 0x05, 0x00, 0, 0], .truncated),
    ] as [([UInt8], BERFailure.Kind)])
  func malformedBytesHaveAName(_ bytes: [UInt8], _ kind: BERFailure.Kind) { #expect(failure(bytes) == kind) }

  /// Whatever asks for much is refused for its size, before any of it is held.
  @Test func limitsHold() {
    #expect(failure(Array(repeating: [0x30, 0x80], count: 10_000).flatMap(\.self)) == .tooDeep)
    #expect(failure(nested(BERTree.maximumDepth + 1)) == .tooDeep)
    #expect(failure(nested(BERTree.maximumDepth)) == nil)
    #expect(failure([UInt8](repeating: 0x30, count: BERTree.maximumByteCount + 1)) == .tooLarge)
    let many = Array(repeating: [0x05, 0x00] as [UInt8], count: BERTree.maximumValueCount).flatMap(\.self)
    #expect(failure(BERValue.encode(BERValue.Tag.sequence, many[...])) == .tooMany)
  }

  /// So many sequences in one another, each with its exact length.
  private func nested(_ depth: Int) -> [UInt8] {
    var value: [UInt8] = []
    for _ in 0..<depth { value = BERValue.encode(BERValue.Tag.sequence, value[...]) }
    return value
  }

  @Test func integersOfSixtyFourBits() throws {
    func number(_ content: [UInt8]) throws -> UInt64? {
      try BERValue(parsing: BERValue.encode(BERValue.Tag.integer, content[...])).unsigned
    }
    #expect(try number([0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == .max)
    #expect(try number([0x01, 0, 0, 0, 0, 0, 0, 0, 0]) == nil)
    #expect(try number([0xFF]) == nil)
    #expect(try number([]) == nil)
    #expect(try number([0]) == 0)
    #expect(try number([0x06, 0xA6]) == 1702)
  }

  @Test func octetStringsInPieces() throws {
    let pieces = try BERValue(parsing: [
      0x24, 0x80, 0x04, 0x02, 1, 2, 0x24, 0x80, 0x04, 0x01, 3, 0, 0, 0x04, 0x00, 0, 0,
    ])
    #expect(pieces.octets == [1, 2, 3])
    #expect(pieces.definite == [0x04, 0x03, 1, 2, 3])
    #expect(try BERValue(parsing: [0x24, 0x80, 0x02, 0x01, 1, 0, 0]).octets == nil)
    #expect(try BERValue(parsing: [0x04, 0x00]).octets == [])
    #expect(try BERValue(parsing: [0x0C, 0x02, 0xC3, 0x28]).text == nil)
    #expect(try BERValue(parsing: [0x16, 0x00]).text == "")
  }

  @Test func randomBytesAreRefusedOrReadButNeverMore() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<2000 {
      var bytes = random.bytes(Int.random(in: 1...60, using: &random))
      bytes[0] = 0x30
      guard let value = try? BERValue(parsing: bytes) else { continue }
      #expect(value.encoding.count == bytes.count, "seed \(seed)")
      // What was read is read again in its shortest form, to the same.
      let again = try BERValue(parsing: value.definite)
      #expect(again.definite == value.definite, "seed \(seed)")
    }
    _ = try? BERValue(parsing: random.bytes(BERTree.maximumByteCount))
  }
}
