/// The two encodings of an ECDSA signature: JWS has r and s side by side, OpenSSL and X.509 a DER sequence.
enum ECDSASignature {
  static let p256ByteCount = 64
  /// Two headers of two bytes, the sequence's header, and a zero before each number whose top bit is set.
  private static let maximumP256DERByteCount = 72

  /// Lends the DER form of a raw P-256 signature of 64 bytes.
  static func withDER<Result>(raw: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeTemporaryAllocation(byteCount: maximumP256DERByteCount, alignment: 1) { output in
      var end = 2
      for half in [raw.prefix(32), raw.suffix(32)] {
        var number = half.drop { $0 == 0 }
        // Zero is one byte; OpenSSL refuses it as r or s, so the error stays a failed verification.
        if number.isEmpty { number = half.suffix(1) }
        let sign = number.first.map { $0 & 0x80 != 0 } == true ? 1 : 0
        output[end] = 0x02
        output[end + 1] = UInt8(number.count + sign)
        end += 2
        if sign == 1 {
          output[end] = 0
          end += 1
        }
        for byte in number {
          output[end] = byte
          end += 1
        }
      }
      output[0] = 0x30
      output[1] = UInt8(end - 2)
      return body(UnsafeRawBufferPointer(rebasing: output[..<end]))
    }
  }

  /// The raw form of a DER P-256 signature that OpenSSL made; nil if it is none.
  static func raw(der: [UInt8]) -> [UInt8]? {
    guard der.count >= 8, der[0] == 0x30, Int(der[1]) == der.count - 2 else { return nil }
    var rest = der[2...]
    var result: [UInt8] = []
    for _ in 0..<2 {
      guard rest.popFirst() == 0x02, let length = rest.popFirst(), rest.count >= Int(length) else { return nil }
      let number = rest.prefix(Int(length)).drop { $0 == 0 }
      rest = rest.dropFirst(Int(length))
      guard number.count <= 32 else { return nil }
      result += [UInt8](repeating: 0, count: 32 - number.count) + number
    }
    return rest.isEmpty ? result : nil
  }
}
