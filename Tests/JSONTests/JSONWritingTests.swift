import PurchasesJSON
import PurchasesTestKit
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private func text(_ writer: JSONWriter) -> String { String(decoding: writer.bytes, as: UTF8.self) }

@Suite struct JSONWritingTests {
  @Test func writesMembersInOrderAndLeavesOutNil() {
    var writer = JSONWriter()
    writer.object { w in
      w.field("first", "a\"b\\c\u{1}\u{1F}\n")
      w.field("absent", nil as String?)
      w.field("number", Int64.min)
      w.field("int", 0)
      w.field("flag", false)
      w.field("none", nil as Int64?)
      w.field("object", object: { $0.field("x", 1) })
      w.field("empty", object: { _ in })
      w.field(
        "list",
        array: { w in
          w.element("s")
          w.element(Int64(-5))
          w.element(true)
          w.element(raw: bytes("[1.50]"))
          w.element(JSON.null)
          w.object { $0.field("y", JSON.number("1e3")) }
          w.array { _ in }
        })
      w.field("raw", raw: bytes("{\"z\":1}"))
      w.field("rawless", raw: nil)
      w.fieldNamed("k\"ey", .object(["a": .integer(1)]))
    }
    #expect(
      text(writer)
        == #"{"first":"a\"b\\c\u0001\u001F\n","number":-9223372036854775808,"int":0,"flag":false,"object":{"x":1},"#
        + #""empty":{},"list":["s",-5,true,[1.50],null,{"y":1e3},[]],"raw":{"z":1},"k\"ey":{"a":1}}"#)
  }

  @Test func canonicalFormSortsByBytes() throws {
    let one = try JSON(parsing: bytes(#"{"b":[{"z":1,"é":2,"a":3}],"a":1,"B":0}"#))
    let other = try JSON(parsing: bytes(#"{ "a":1, "B":0, "b":[{"a":3,"z":1,"\u00e9":2}] }"#))
    #expect(one != other)
    #expect(one.canonicalBytes == other.canonicalBytes)
    #expect(String(decoding: one.canonicalBytes, as: UTF8.self) == #"{"B":0,"a":1,"b":[{"a":3,"z":1,"é":2}]}"#)
  }

  @Test func objectSetsReplacesAndRemoves() {
    var object: JSONObject = ["a": .integer(1), "b": .integer(2)]
    object["a"] = .integer(3)
    object["c"] = .null
    object["b"] = nil
    #expect(object.members.map(\.name) == ["a", "c"])
    #expect(object["a"] == .integer(3))
    #expect(object["b"] == nil)
  }

  /// Whatever is written reads back the same, and both ways of writing agree byte for byte.
  @Test func roundTripOfRandomValues() throws {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for _ in 0..<2_000 {
      let value = source.json(depth: 4)
      let written = value.bytes
      let document = try JSONDocument(parsing: written)
      #expect(document.root.json == value, "seed \(seed)")
      #expect(document.root.text == written, "seed \(seed)")
      #expect(try JSON(parsing: value.canonicalBytes).canonicalBytes == value.canonicalBytes, "seed \(seed)")
    }
  }

  /// No input may crash the reader, and what it accepts it can write and read again.
  @Test func damagedDocumentsNeverCrash() throws {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for _ in 0..<2_000 {
      var written = source.json(depth: 4).bytes
      for _ in 0..<(1 + source.below(3)) where !written.isEmpty {
        written[source.below(written.count)] = UInt8(truncatingIfNeeded: source.next())
      }
      guard let document = try? JSONDocument(parsing: written) else { continue }
      #expect(try JSONDocument(parsing: document.root.text).root.json == document.root.json, "seed \(seed)")
    }
  }
}

extension SeededRandom {
  fileprivate mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  fileprivate mutating func text() -> String {
    let alphabet: [Unicode.Scalar] = ["a", "Z", "\"", "\\", "\n", "\u{0}", "\u{1F}", "\u{7F}", "é", "€", "😀", "/", " "]
    var result = ""
    for _ in 0..<below(24) { result.unicodeScalars.append(alphabet[below(alphabet.count)]) }
    return result
  }

  fileprivate mutating func json(depth: Int) -> JSON {
    switch below(depth == 0 ? 5 : 7) {
    case 0: return .null
    case 1: return .bool(below(2) == 0)
    case 2: return .integer(Int64(bitPattern: next()) >> Int64(below(63)))
    case 3: return .number(["1.5", "-0", "1e-7", "12345678901234567890123", "0.10"][below(5)])
    case 4: return .string(text())
    case 5: return .array((0..<below(5)).map { _ in json(depth: depth - 1) })
    default:
      var object = JSONObject()
      for _ in 0..<below(5) { object[text()] = json(depth: depth - 1) }
      return .object(object)
    }
  }
}
