import PurchasesJSON

/// Where things stand in a JSON text that people wrote: the parser keeps no places, and an error in a long file is of little
/// use without its line. Only for text that was parsed before.
struct JSONPlaces {
  enum Step: Sendable, Hashable {
    case member(String)
    case element(Int)
  }

  private let bytes: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Counted from 1.
  static func line(ofByte offset: Int, in bytes: [UInt8]) -> Int {
    bytes.prefix(offset).reduce(1) { $1 == 0x0a ? $0 + 1 : $0 }
  }

  /// The line of a member's name or of an element; where the path ends before, of the last value on the way.
  static func line(of path: [Step], in bytes: [UInt8]) -> Int {
    var places = JSONPlaces(bytes)
    places.skipSpace()
    var place = places.index
    for step in path {
      guard let next = places.enter(step) else { break }
      place = next
    }
    return line(ofByte: place, in: bytes)
  }

  /// The line of the first member, in the order of the text, whose object has one of that name already.
  static func line(ofSecond name: String, in bytes: [UInt8]) -> Int? {
    var places = JSONPlaces(bytes)
    places.skipSpace()
    return places.second(name).map { line(ofByte: $0, in: bytes) }
  }

  // MARK: Reading on

  private var byte: UInt8 { index < bytes.count ? bytes[index] : 0 }

  private mutating func skipSpace() {
    while index < bytes.count, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { index += 1 }
  }

  /// From a value to what is named in it; answers where that begins, and stands at its value.
  private mutating func enter(_ step: Step) -> Int? {
    let opened = byte
    guard opened == UInt8(ascii: "{") || opened == UInt8(ascii: "[") else { return nil }
    index += 1
    skipSpace()
    var number = 0
    while index < bytes.count, byte != UInt8(ascii: "}"), byte != UInt8(ascii: "]") {
      let place = index
      let found: Bool
      if opened == UInt8(ascii: "{") {
        let name = self.name()
        if case .member(name) = step { found = true } else { found = false }
      } else {
        if case .element(number) = step { found = true } else { found = false }
      }
      if found { return place }
      skipValue()
      skipComma()
      number += 1
    }
    return nil
  }

  private mutating func second(_ name: String) -> Int? {
    let opened = byte
    guard opened == UInt8(ascii: "{") || opened == UInt8(ascii: "[") else {
      skipValue()
      return nil
    }
    index += 1
    skipSpace()
    var isThere = false
    while index < bytes.count, byte != UInt8(ascii: "}"), byte != UInt8(ascii: "]") {
      if opened == UInt8(ascii: "{") {
        let place = index
        if self.name() == name {
          if isThere { return place }
          isThere = true
        }
      }
      if let place = second(name) { return place }
      skipComma()
    }
    index += 1
    return nil
  }

  /// A member's name; stands at its value afterwards.
  private mutating func name() -> String {
    let start = index
    skipString()
    let text = Array(bytes[start..<index])
    skipSpace()
    index += 1
    skipSpace()
    return (try? JSONDocument(parsing: text))?.root.string ?? ""
  }

  private mutating func skipComma() {
    skipSpace()
    if byte == UInt8(ascii: ",") { index += 1 }
    skipSpace()
  }

  private mutating func skipString() {
    index += 1
    while index < bytes.count, byte != UInt8(ascii: "\"") { index += byte == UInt8(ascii: "\\") ? 2 : 1 }
    index += 1
  }

  private mutating func skipValue() {
    var depth = 0
    while index < bytes.count {
      switch byte {
      case UInt8(ascii: "\""): skipString()
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        index += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard depth > 0 else { return }
        depth -= 1
        index += 1
      case UInt8(ascii: ",") where depth == 0: return
      default: index += 1
      }
      if depth == 0, byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") { return }
    }
  }
}
