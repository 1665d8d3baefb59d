import PurchasesCryptography

/// A receipt as it was sent: base64 text, or one of the things that people send in its place.
enum ReceiptText {
  case signedData([UInt8])
  /// The oldest kind: property-list text with a signature that nobody but the App Store can check.
  case oldest([UInt8])

  init(_ sent: [UInt8]) throws(Halt) {
    // Encoders break lines, which changes nothing of what they encode.
    let text = sent.filter { $0 != 0x0A && $0 != 0x0D }
    guard !text.isEmpty else { throw .refused(.receipt(.empty), field: nil) }
    guard text.count <= Self.maximumTextBytes else { throw .refused(.receipt(.tooLarge), field: nil) }
    if Self.isOldest(sent) {
      self = .oldest(sent)
      return
    }
    if text.count(where: { $0 == UInt8(ascii: ".") }) == 2, text.starts(with: "eyJ".utf8) {
      throw .refused(.receipt(.isJWS), field: nil)
    }
    guard let bytes = Base64.decode(text) else { throw .refused(.receipt(.notBase64), field: nil) }
    if Self.isOldest(bytes) {
      self = .oldest(bytes)
      return
    }
    // What a receipt begins with, in base64: a sequence of a length in two or three bytes, or left open.
    if bytes.starts(with: "MI".utf8), bytes.allSatisfy({ Self.isBase64($0) }) {
      throw .refused(.receipt(.encodedTwice), field: nil)
    }
    self = .signedData(bytes)
  }

  /// What encodes the largest value that is read.
  private static let maximumTextBytes = (1 << 20) / 3 * 4 + 4

  private static func isBase64(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F, 0x3D, 0x0A, 0x0D: true
    default: false
    }
  }

  /// Text in braces that names its purchase as the property lists of the first years do.
  private static func isOldest(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first(where: { $0 > 0x20 }), first == UInt8(ascii: "{") else { return false }
    return contains(bytes, Array("\"purchase-info\"".utf8)) || contains(bytes, Array("purchase-info =".utf8))
  }

  private static func contains(_ bytes: [UInt8], _ word: [UInt8]) -> Bool {
    // Names stand at the head of the text; what comes behind this many bytes is not looked at.
    let end = min(bytes.count, 65_536)
    guard end >= word.count else { return false }
    return (0...(end - word.count)).contains { bytes[$0] == word[0] && bytes[$0..<$0 + word.count].elementsEqual(word) }
  }
}
