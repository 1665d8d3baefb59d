import PurchasesCryptography
import PurchasesTestKit
import Testing

@Suite struct EncodingTests {
  /// RFC 4648, section 10.
  @Test func knownBase64() {
    let pairs = [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ]
    for (plain, encoded) in pairs {
      #expect(Base64.encode(Array(plain.utf8)) == encoded)
      #expect(Base64.decode(encoded) == Array(plain.utf8))
      let unpadded = String(encoded.filter { $0 != "=" })
      #expect(Base64URL.encode(Array(plain.utf8)) == unpadded)
      #expect(Base64URL.decode(unpadded) == Array(plain.utf8))
    }
    #expect(Base64.encode([0xFB, 0xFF]) == "+/8=")
    #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "Zm8", "Zm9v=", "=", "==", "====", "Z===", "Zm9vZg=", "Zh==", "Zm9=", "Zm 9", "Zm9v\n",
    "Zm-v", "Zm_v", "Zg==Zg==", "Zm9v\u{0}AA=", "é===", "Zm9vYmF",
  ])
  func base64RefusesOtherSpellings(_ text: String) {
    #expect(Base64.decode(text) == nil)
  }

  @Test(arguments: ["Zg==", "Z", "Zh", "Zm9", "Zm9vZ", "Zm+v", "Zm/v", "Zm 9", "Zm9v\n", "Zm9v.", "Zm9vYmF="])
  func base64URLRefusesOtherSpellings(_ text: String) {
    #expect(Base64URL.decode(text) == nil)
  }

  @Test func everyByteStringHasOneSpelling() {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for length in 0..<200 {
      let bytes = source.bytes(length)
      #expect(Base64.decode(Base64.encode(bytes)) == bytes, "seed \(seed)")
      #expect(Base64URL.decode(Array(Base64URL.encode(bytes).utf8)) == bytes, "seed \(seed)")
      #expect(Hex.decode(Hex.encode(bytes)) == bytes, "seed \(seed)")
    }
    // Whatever is accepted encodes back to exactly what was read.
    let alphabet = Array("ABab01+/-_= \u{0}".utf8)
    for _ in 0..<20_000 {
      let length = Int.random(in: 0...9, using: &source)
      let text = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &source)] }
      if let bytes = Base64.decode(text) { #expect(Array(Base64.encode(bytes).utf8) == text, "seed \(seed)") }
      if let bytes = Base64URL.decode(text) { #expect(Array(Base64URL.encode(bytes).utf8) == text, "seed \(seed)") }
    }
  }

  @Test func hexIsStrict() {
    #expect(Hex.decode("00fFAb") == [0x00, 0xFF, 0xAB])
    #expect(Hex.decode("0") == nil)
    #expect(Hex.decode("0x") == nil)
    #expect(Hex.decode(" 00") == nil)
    #expect(Hex.decode("") == [])
  }

  @Test func pemRoundTrip() {
    let der = [UInt8](0..<200)
    let text = PEM.encode(der, label: "TEST")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 64 })
    #expect(PEM.decode("leading text\n" + text, labels: ["OTHER", "TEST"]) == der)
    #expect(PEM.decode(text, labels: ["OTHER"]) == nil)
    #expect(PEM.decode(String(text.dropLast(10)), labels: ["TEST"]) == nil)
  }
}
