/// Appends compact JSON straight to a byte buffer: no tree in between, for the hot path.
///
/// A member whose value is nil is left out. Member names given as `StaticString` are written as they stand and must
/// need no escape. The writer puts the commas; that fields stand in objects and elements in arrays is the caller's part.
public struct JSONWriter: Sendable {
  /// What has been written so far.
  public private(set) var bytes: [UInt8] = []
  private var needsComma = false

  public init(reserving capacity: Int = 512) { bytes.reserveCapacity(capacity) }

  // MARK: Values: the top-level one, or elements of an array

  public mutating func object(_ body: (inout JSONWriter) -> Void) {
    separate()
    container(UInt8(ascii: "{"), UInt8(ascii: "}"), body)
  }

  public mutating func array(_ body: (inout JSONWriter) -> Void) {
    separate()
    container(UInt8(ascii: "["), UInt8(ascii: "]"), body)
  }

  public mutating func element(_ value: String) {
    separate()
    write(value)
  }

  public mutating func element(_ value: Int64) {
    separate()
    write(value)
  }

  public mutating func element(_ value: Bool) {
    separate()
    write(value)
  }

  public mutating func element(_ value: JSON) { self.value(value) }

  /// An element that is serialised JSON already, copied as it stands.
  public mutating func element(raw value: [UInt8]) {
    separate()
    bytes.append(contentsOf: value)
  }

  public mutating func value(_ json: JSON) {
    separate()
    write(json)
  }

  // MARK: Members of an object

  public mutating func field(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    begin(name)
    write(value)
  }

  public mutating func field(_ name: StaticString, _ value: Int64?) {
    guard let value else { return }
    begin(name)
    write(value)
  }

  public mutating func field(_ name: StaticString, _ value: Int?) {
    guard let value else { return }
    begin(name)
    write(Int64(value))
  }

  public mutating func field(_ name: StaticString, _ value: Bool?) {
    guard let value else { return }
    begin(name)
    write(value)
  }

  public mutating func field(_ name: StaticString, _ value: JSON?) {
    guard let value else { return }
    begin(name)
    write(value)
  }

  /// A member whose value is serialised JSON already, copied as it stands.
  public mutating func field(_ name: StaticString, raw value: [UInt8]?) {
    guard let value else { return }
    begin(name)
    bytes.append(contentsOf: value)
  }

  public mutating func field(_ name: StaticString, object body: (inout JSONWriter) -> Void) {
    begin(name)
    container(UInt8(ascii: "{"), UInt8(ascii: "}"), body)
  }

  public mutating func field(_ name: StaticString, array body: (inout JSONWriter) -> Void) {
    begin(name)
    container(UInt8(ascii: "["), UInt8(ascii: "]"), body)
  }

  /// A member whose name is known only at run time.
  public mutating func fieldNamed(_ name: String, _ value: JSON) {
    separate()
    write(name)
    bytes.append(UInt8(ascii: ":"))
    write(value)
  }

  // MARK: Pieces

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func begin(_ name: StaticString) {
    name.withUTF8Buffer { buffer in
      assert(JSONEscapes.plainPrefix(of: buffer[...]) == buffer.count, "a member name that needs an escape")
      // One growth check for the whole head instead of one a byte.
      if needsComma { bytes.append(UInt8(ascii: ",")) }
      bytes.append(UInt8(ascii: "\""))
      bytes.append(contentsOf: buffer)
      bytes.append(UInt8(ascii: "\""))
      bytes.append(UInt8(ascii: ":"))
    }
    needsComma = true
  }

  private mutating func container(_ open: UInt8, _ close: UInt8, _ body: (inout JSONWriter) -> Void) {
    bytes.append(open)
    needsComma = false
    body(&self)
    bytes.append(close)
    needsComma = true
  }

  private mutating func write(_ value: Bool) {
    let text: StaticString = value ? "true" : "false"
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  private mutating func write(_ value: Int64) {
    // Nineteen digits and a sign at most.
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var start = digits.count
      var rest = value.magnitude
      repeat {
        start -= 1
        let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
        digits.initializeElement(at: start, to: 0x30 + UInt8(truncatingIfNeeded: remainder))
        rest = quotient
      } while rest > 0
      if value < 0 {
        start -= 1
        digits.initializeElement(at: start, to: UInt8(ascii: "-"))
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
    }
  }

  private mutating func write(_ value: String) {
    var value = value
    bytes.append(UInt8(ascii: "\""))
    value.withUTF8 { JSONEscapes.append($0, to: &bytes) }
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func write(_ json: JSON) {
    switch json {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool(let value): write(value)
    case .integer(let value): write(value)
    case .number(let text): bytes.append(contentsOf: text.utf8)
    case .string(let value): write(value)
    case .array(let elements):
      container(UInt8(ascii: "["), UInt8(ascii: "]")) { writer in
        for element in elements { writer.value(element) }
      }
    case .object(let object):
      container(UInt8(ascii: "{"), UInt8(ascii: "}")) { writer in
        for member in object.members { writer.fieldNamed(member.name, member.value) }
      }
    }
  }
}
