/// The request line's target, taken apart by ourselves: libmicrohttpd would decode `%2F` before the path is split, and an
/// identifier with a slash in it would then name another resource.
struct RequestTarget {
  let path: [String]
  let query: [(name: String, value: String)]

  /// Nil when the target isn't an absolute path, an escape is broken, or what it decodes to isn't UTF-8 or holds a NUL.
  init?(_ target: [UInt8]) {
    guard target.first == UInt8(ascii: "/") else { return nil }
    let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
    var segments: [String] = []
    for raw in target[1..<mark].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let segment = Self.decode(raw, plusIsSpace: false) else { return nil }
      segments.append(segment)
    }
    var items: [(name: String, value: String)] = []
    if mark < target.endIndex {
      for raw in target[(mark + 1)...].split(separator: UInt8(ascii: "&")) {
        let equals = raw.firstIndex(of: UInt8(ascii: "=")) ?? raw.endIndex
        guard let name = Self.decode(raw[..<equals], plusIsSpace: true),
          let value = Self.decode(raw[equals...].dropFirst(), plusIsSpace: true)
        else { return nil }
        items.append((name, value))
      }
    }
    path = segments
    query = items
  }

  private static func decode(_ raw: ArraySlice<UInt8>, plusIsSpace: Bool) -> String? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(raw.count)
    var index = raw.startIndex
    while index < raw.endIndex {
      let byte = raw[index]
      if byte == UInt8(ascii: "%") {
        guard raw.endIndex - index > 2, let high = hex(raw[index + 1]), let low = hex(raw[index + 2]) else {
          return nil
        }
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
        index += 1
      }
    }
    guard !bytes.contains(0) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func hex(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
