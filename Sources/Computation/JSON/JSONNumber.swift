/// Exact arithmetic on the text of a JSON number; the text has passed the parser.
enum JSONNumber {
  static func json(_ text: UnsafeBufferPointer<UInt8>) -> JSON {
    // "-0" is an integer by its looks, but Int64 has no way to give the sign back.
    if let integer = exactInteger(text), integer != 0 || text.count == 1 { return .integer(integer) }
    return .number(String(decoding: text, as: UTF8.self))
  }

  static func exactInteger(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    let negative = text.first == UInt8(ascii: "-")
    var result: Int64 = 0
    for byte in negative ? text.dropFirst() : text[...] {
      let digit = Int64(byte) - 0x30
      guard digit >= 0, digit <= 9 else { return nil }
      let (product, overflow) = result.multipliedReportingOverflow(by: 10)
      // Counting away from zero on the number's own side lets Int64.min through.
      let (sum, tooFar) =
        negative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      guard !overflow, !tooFar else { return nil }
      result = sum
    }
    return result
  }

  /// The greatest integer not above the number; nil if it is outside `Int64`.
  static func floor(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    if let integer = exactInteger(text) { return integer }
    let negative = text.first == UInt8(ascii: "-")
    var digits: [UInt8] = []
    var pointFromStart: Int?
    var exponent = 0
    var rest = negative ? text.dropFirst() : text[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: ".") {
        pointFromStart = digits.count
      } else if byte | 0x20 == UInt8(ascii: "e") {
        // An exponent that doesn't fit an Int16 is far outside what Int64 or a date can hold, on either side.
        guard let value = Int16(String(decoding: rest, as: UTF8.self)) else { return nil }
        exponent = Int(value)
        break
      } else {
        digits.append(byte)
      }
    }
    let integral = (pointFromStart ?? digits.count) + exponent
    let significant = digits.drop { $0 == 0x30 }
    if significant.isEmpty { return 0 }
    var result: Int64 = 0
    for index in 0..<max(0, integral) {
      let digit = index < digits.count ? Int64(digits[index]) - 0x30 : 0
      let (product, overflow) = result.multipliedReportingOverflow(by: 10)
      let (difference, tooFar) = product.subtractingReportingOverflow(digit)
      guard !overflow, !tooFar else { return nil }
      result = difference
    }
    let hasFraction = digits.dropFirst(max(0, integral)).contains { $0 != 0x30 }
    if negative {
      let (lowered, overflow) = result.subtractingReportingOverflow(hasFraction ? 1 : 0)
      return overflow ? nil : lowered
    }
    return result == .min ? nil : -result
  }
}
