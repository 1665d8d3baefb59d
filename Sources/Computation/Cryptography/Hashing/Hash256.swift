/// A SHA-256 value, held inline. Ordered by its bytes.
public struct Hash256: Sendable, Hashable, Comparable, CustomStringConvertible {
  public static let byteCount = 32

  // The bytes as four big-endian numbers, so that comparing numbers compares bytes.
  let first: UInt64
  let second: UInt64
  let third: UInt64
  let fourth: UInt64

  init(loading buffer: UnsafeRawBufferPointer) {
    func word(_ index: Int) -> UInt64 {
      UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
    }
    first = word(0)
    second = word(1)
    third = word(2)
    fourth = word(3)
  }

  /// Nil unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self = bytes.withUnsafeBytes { Hash256(loading: $0) }
  }

  /// Nil unless there are exactly 64 hexadecimal digits.
  public init?(hex: String) {
    guard let bytes = Hex.decode(hex) else { return nil }
    self.init(bytes: bytes)
  }

  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      store(into: raw)
      count = Self.byteCount
    }
  }

  func store(into raw: UnsafeMutableRawBufferPointer) {
    raw.storeBytes(of: first.bigEndian, toByteOffset: 0, as: UInt64.self)
    raw.storeBytes(of: second.bigEndian, toByteOffset: 8, as: UInt64.self)
    raw.storeBytes(of: third.bigEndian, toByteOffset: 16, as: UInt64.self)
    raw.storeBytes(of: fourth.bigEndian, toByteOffset: 24, as: UInt64.self)
  }

  /// Sixty-four lower-case digits.
  public var hex: String { Hex.encode(bytes) }

  public var description: String { hex }

  public static func < (left: Hash256, right: Hash256) -> Bool {
    if left.first != right.first { return left.first < right.first }
    if left.second != right.second { return left.second < right.second }
    if left.third != right.third { return left.third < right.third }
    return left.fourth < right.fourth
  }
}
