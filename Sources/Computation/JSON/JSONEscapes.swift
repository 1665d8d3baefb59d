/// The one form in which text is escaped: short escapes where JSON has them, `\u00XX` for other control characters, all
/// else as it is. It is yyjson's form, so that ``JSONView/text`` and ``JSONWriter`` agree byte for byte.
enum JSONEscapes {
  static func append(_ text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
    var rest = text[...]
    while true {
      let plain = plainPrefix(of: rest)
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: rest.prefix(plain)))
      rest = rest.dropFirst(plain)
      guard let byte = rest.popFirst() else { return }
      bytes.append(UInt8(ascii: "\\"))
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
      case 0x08: bytes.append(UInt8(ascii: "b"))
      case 0x09: bytes.append(UInt8(ascii: "t"))
      case 0x0A: bytes.append(UInt8(ascii: "n"))
      case 0x0C: bytes.append(UInt8(ascii: "f"))
      case 0x0D: bytes.append(UInt8(ascii: "r"))
      default:
        let hex = "0123456789ABCDEF".utf8.map { $0 }
        bytes.append(contentsOf: "u00".utf8)
        bytes.append(hex[Int(byte >> 4)])
        bytes.append(hex[Int(byte & 0x0F)])
      }
    }
  }

  /// How many bytes from the start need no escape. Eight at a time: long base64 is the usual text.
  static func plainPrefix(of text: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
    let buffer = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: text))
    var index = 0
    while index + 8 <= buffer.count {
      let word = buffer.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if hasByteToEscape(word) { break }
      index += 8
    }
    while index < buffer.count {
      let byte = buffer[index]
      if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
      index += 1
    }
    return index
  }

  /// The usual trick of finding a byte below a bound in a whole word: a borrow reaches a byte's top bit only where the
  /// byte was smaller. It may raise a false alarm, never miss; the byte loop decides.
  private static func hasByteToEscape(_ word: UInt64) -> Bool {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let tops: UInt64 = 0x8080_8080_8080_8080
    let control = (word &- ones &* 0x20) & ~word
    let quote = word ^ (ones &* 0x22)
    let backslash = word ^ (ones &* 0x5C)
    return (control | ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash)) & tops != 0
  }
}
