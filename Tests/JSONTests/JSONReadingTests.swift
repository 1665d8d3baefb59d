import PurchasesJSON
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct JSONReadingTests {
  @Test func readsEveryKind() throws {
    let document = try JSONDocument(
      parsing: bytes(#"{"s":"a\u00e9\n","n":42,"f":1.50,"t":true,"z":null,"a":[1,"two",{}],"o":{"x":{"y":7}},"":0}"#))
    let root = document.root
    #expect(root.kind == .object)
    #expect(root.count == 8)
    #expect(root["s"]?.string == "aé\n")
    #expect(root["s"]?.utf8 == bytes("aé\n"))
    #expect(root["n"]?.int64 == 42)
    #expect(root["f"]?.int64 == nil)
    #expect(root["f"]?.numberText == "1.50")
    #expect(root["t"]?.bool == true)
    #expect(root["z"]?.isNull == true)
    #expect(root["a"]?.elements.map(\.kind) == [.number, .string, .object])
    #expect(root["o"]?["x"]?["y"]?.int64 == 7)
    #expect(root[""]?.int64 == 0)
    #expect(root["missing"] == nil)
    #expect(root["n"]?["x"] == nil)
    let dynamic = "o"
    #expect(root[dynamic]?.kind == .object)
    #expect(root[String("missing".dropFirst())] == nil)
    #expect(root[String()]?.int64 == 0)
    #expect(root.members.map(\.name) == ["s", "n", "f", "t", "z", "a", "o", ""])
    #expect(root["t"]?.string == nil)
    #expect(root["s"]?.bool == nil)
    #expect(root["n"]?.elements.isEmpty == true)
    #expect(root["a"]?.elements[1].isString("two") == true)
    #expect(root["a"]?.elements[1].isString("twO") == false)
  }

  @Test func viewOutlivesItsDocument() throws {
    func inner() throws -> JSONView? { try JSONDocument(parsing: bytes(#"{"a":{"b":"kept"}}"#)).root["a"] }
    #expect(try inner()?["b"]?.string == "kept")
  }

  @Test(arguments: [
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "123456789012345678901234567890", "1.10", "1e3", "1E+03", "-0", "0", "-0.0", "1700000000000.500",
  ])
  func numbersKeepTheirDigits(_ text: String) throws {
    let document = try JSONDocument(parsing: bytes("[\(text)]"))
    #expect(document.root.text == bytes("[\(text)]"))
    #expect(document.root.json.bytes == bytes("[\(text)]"))
  }

  @Test func integersAreExactOrAbsent() throws {
    func integer(_ text: String) throws -> Int64? { try JSONDocument(parsing: bytes(text)).root.int64 }
    #expect(try integer("9007199254740993") == 9_007_199_254_740_993)
    #expect(try integer("-9223372036854775808") == .min)
    #expect(try integer("9223372036854775807") == .max)
    #expect(try integer("9223372036854775808") == nil)
    #expect(try integer("-9223372036854775809") == nil)
    #expect(try integer("1.0") == nil)
    #expect(try integer("1e2") == nil)
    #expect(try integer("\"1\"") == nil)
  }

  @Test func millisecondsRoundDown() throws {
    func milliseconds(_ text: String) throws -> Int64? { try JSONDocument(parsing: bytes(text)).root.milliseconds }
    #expect(try milliseconds("1700000000000") == 1_700_000_000_000)
    #expect(try milliseconds("1700000000000.9999") == 1_700_000_000_000)
    #expect(try milliseconds("-1.5") == -2)
    #expect(try milliseconds("-1.0") == -1)
    #expect(try milliseconds("-0.0") == 0)
    #expect(try milliseconds("-0.1") == -1)
    #expect(try milliseconds("1.7e12") == 1_700_000_000_000)
    #expect(try milliseconds("17e-1") == 1)
    #expect(try milliseconds("-17e-5") == -1)
    #expect(try milliseconds("0e99999") == nil)
    #expect(try milliseconds("0e999") == 0)
    #expect(try milliseconds("1e19") == nil)
    #expect(try milliseconds("9223372036854775807.9") == .max)
    #expect(try milliseconds("-9223372036854775808.0") == .min)
    #expect(try milliseconds("-9223372036854775808.1") == nil)
    #expect(try milliseconds("9223372036854775808.0") == nil)
    #expect(try milliseconds("\"1700000000000\"") == nil)
  }

  @Test(arguments: [
    "", " ", "{", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "[1] x", "nul", "// c\n1", "01", "1.", ".5", "+1", "NaN",
    "Infinity",
    "'a'", "\"\\ud800\"", "\"\\x\"", "\"a\nb\"", "{a:1}", "\u{FEFF}1", "[1]\u{0}",
  ])
  func refusesWhatTheRFCRefuses(_ text: String) {
    #expect(throws: JSONError.self) { try JSONDocument(parsing: bytes(text)) }
  }

  @Test(arguments: [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82]] as [[UInt8]])
  func refusesInvalidUTF8(_ sequence: [UInt8]) {
    #expect(throws: JSONError.self) { try JSONDocument(parsing: [0x22] + sequence + [0x22]) }
  }

  @Test func errorNamesThePlaceAndNotTheContent() {
    do {
      _ = try JSON(parsing: bytes(#"{"secret-token" "canary"}"#))
      Issue.record("accepted")
    } catch {
      #expect(error.offset == 16)
      #expect(!"\(error)".contains("canary") && !"\(error)".contains("secret"))
    }
  }

  @Test func depthIsBounded() throws {
    func nested(_ depth: Int) -> [UInt8] {
      bytes(String(repeating: "[", count: depth) + String(repeating: "]", count: depth))
    }
    _ = try JSON(parsing: nested(JSONDocument.maximumDepth))
    #expect(throws: JSONError.self) { try JSONDocument(parsing: nested(JSONDocument.maximumDepth + 1)) }
    #expect(throws: JSONError.self) { try JSONDocument(parsing: nested(1_000_000)) }
    #expect(throws: JSONError.self) { try JSONDocument(parsing: bytes(String(repeating: "[", count: 1_000_000))) }
    // Deep in the last member too, not only along the first.
    #expect(throws: JSONError.self) {
      try JSONDocument(parsing: bytes(#"{"a":[1,{"b":2}],"c":"#) + nested(JSONDocument.maximumDepth) + bytes("}"))
    }
  }

  @Test func firstOfRepeatedNamesWinsAndIsReported() throws {
    let document = try JSONDocument(parsing: bytes(#"{"a":1,"b":[{"c":1,"d":2,"c":3}],"a":4}"#))
    #expect(document.firstDuplicateMember() == "c")
    #expect(document.root["a"]?.int64 == 1)
    #expect(document.root.json["a"] == .integer(1))
    // The escape hides the repetition from the eye, not from the reader.
    #expect(try JSONDocument(parsing: bytes(#"{"alg":1,"\u0061lg":2}"#)).firstDuplicateMember() == "alg")
    #expect(try JSONDocument(parsing: bytes(#"{"a":{"a":1},"b":{"a":1}}"#)).firstDuplicateMember() == nil)
    // Small and large objects are searched in two ways.
    for count in [2, 47, 48, 49, 500] {
      let members = (0..<count).map { #""m\#($0)":{"":\#($0)}"# }.joined(separator: ",")
      #expect(try JSONDocument(parsing: bytes("{\(members)}")).firstDuplicateMember() == nil)
      let repeated = try JSONDocument(parsing: bytes(#"{\#(members),"m\#(count / 2)":1}"#))
      #expect(repeated.firstDuplicateMember() == "m\(count / 2)")
      let inside = try JSONDocument(parsing: bytes(#"{\#(members),"x":[{"":1,"":2}]}"#))
      #expect(inside.firstDuplicateMember() == "")
    }
  }

  @Test func everyPrefixOfADocumentIsRefused() throws {
    let whole = bytes(#"{"a":[1,2.5,"x\u00e9\\"],"b":{"c":null,"d":true}}"#)
    _ = try JSONDocument(parsing: whole)
    for length in 0..<whole.count {
      #expect(throws: JSONError.self) { try JSONDocument(parsing: Array(whole.prefix(length))) }
    }
  }
}
