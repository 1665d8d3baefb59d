/// Standard base64 (RFC 4648, section 4) with padding. Decoding is strict: no white space, no missing or extra padding,
/// no bits set beyond the last byte, so that each byte string has one spelling.
public enum Base64 {
  public static func encode(_ bytes: [UInt8]) -> String { SixBitCode.standard.encode(bytes[...], padded: true) }

  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { decode(UnsafeRawBufferPointer($0)) }
  }

  public static func decode(_ text: [UInt8]) -> [UInt8]? { text.withUnsafeBytes { decode($0) } }

  public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? { text.withUnsafeBytes { decode($0) } }

  private static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
    return SixBitCode.standard.decode(UnsafeRawBufferPointer(rebasing: text.dropLast(padding)))
  }
}

/// The URL-safe alphabet (RFC 4648, section 5) without padding, as JWS has it; as strict as ``Base64``.
public enum Base64URL {
  public static func encode(_ bytes: [UInt8]) -> String { SixBitCode.urlSafe.encode(bytes[...], padded: false) }

  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { SixBitCode.urlSafe.decode(UnsafeRawBufferPointer($0)) }
  }

  public static func decode(_ text: [UInt8]) -> [UInt8]? {
    text.withUnsafeBytes { SixBitCode.urlSafe.decode($0) }
  }

  public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    text.withUnsafeBytes { SixBitCode.urlSafe.decode($0) }
  }
}

/// The two alphabets of base64 and the loops over them.
struct SixBitCode: Sendable {
  static let standard = SixBitCode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  static let urlSafe = SixBitCode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

  /// Marks a byte outside the alphabet; no six-bit value has this bit.
  private static let foreign: UInt8 = 0x80

  private let characters: [UInt8]
  private let values: [UInt8]

  private init(_ alphabet: String) {
    characters = Array(alphabet.utf8)
    var table = [UInt8](repeating: Self.foreign, count: 256)
    for (value, character) in characters.enumerated() { table[Int(character)] = UInt8(value) }
    values = table
  }

  func encode(_ bytes: ArraySlice<UInt8>, padded: Bool) -> String {
    let capacity = (bytes.count + 2) / 3 * 4
    return String(unsafeUninitializedCapacity: capacity) { output in
      bytes.withUnsafeBytes { input in
        characters.withUnsafeBufferPointer { alphabet in
          var read = 0
          var written = 0
          while read < input.count {
            let left = input.count - read
            let second = left > 1 ? input[read + 1] : 0
            let third = left > 2 ? input[read + 2] : 0
            let group = UInt32(input[read]) << 16 | UInt32(second) << 8 | UInt32(third)
            let meaningful = min(left, 3) + 1
            for position in 0..<4 {
              guard position < meaningful else {
                if padded {
                  output[written] = UInt8(ascii: "=")
                  written += 1
                }
                continue
              }
              output[written] = alphabet[Int(group >> UInt32(18 - 6 * position)) & 63]
              written += 1
            }
            read += 3
          }
          return written
        }
      }
    }
  }

  /// `text` without its padding; nil if it is not the one spelling of some bytes.
  func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    let tail = text.count % 4
    guard tail != 1 else { return nil }
    let count = text.count / 4 * 3 + (tail == 0 ? 0 : tail - 1)
    var valid = true
    let result = [UInt8](unsafeUninitializedCapacity: count) { output, initialised in
      valid = values.withUnsafeBufferPointer { decode(text, by: $0, into: UnsafeMutableRawBufferPointer(output)) }
      initialised = valid ? count : 0
    }
    return valid ? result : nil
  }

  private func decode(
    _ text: UnsafeRawBufferPointer, by table: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableRawBufferPointer
  ) -> Bool {
    var seen: UInt8 = 0
    var read = 0
    var written = 0
    let whole = text.count & ~3
    while read < whole {
      let a = table[Int(text[read])]
      let b = table[Int(text[read &+ 1])]
      let c = table[Int(text[read &+ 2])]
      let d = table[Int(text[read &+ 3])]
      // One test at the end instead of four an iteration.
      seen |= a | b | c | d
      output[written] = a << 2 | b >> 4
      output[written &+ 1] = b << 4 | c >> 2
      output[written &+ 2] = c << 6 | d
      read &+= 4
      written &+= 3
    }
    switch text.count - whole {
    case 2:
      let a = table[Int(text[read])]
      let b = table[Int(text[read + 1])]
      seen |= a | b | (b & 0x0F == 0 ? 0 : Self.foreign)
      output[written] = a << 2 | b >> 4
    case 3:
      let a = table[Int(text[read])]
      let b = table[Int(text[read + 1])]
      let c = table[Int(text[read + 2])]
      seen |= a | b | c | (c & 0x03 == 0 ? 0 : Self.foreign)
      output[written] = a << 2 | b >> 4
      output[written + 1] = b << 4 | c >> 2
    default: break
    }
    return seen & Self.foreign == 0
  }
}
