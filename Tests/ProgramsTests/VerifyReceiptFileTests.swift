import Foundation
import PurchasesContracts
import PurchasesCryptography
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesVerification
import Testing

/// `purchases verify --receipt` and `--legacy`: files and standard input, right and wrong, offline.
@Suite(.timeLimit(.minutes(3))) struct VerifyReceiptFileTests {
  private let tool: Tool
  private let authority: LocalAuthority

  init() throws {
    tool = try Tool()
    let folder = tool.folder.appendingPathComponent("store").path
    authority = try LocalAuthority(folder: folder)
    try authority.keepReceiptCertificates(folder: folder)
  }

  private func receipt(_ form: SignedData.Form = .init(), fault: ReceiptFault? = nil) throws -> String {
    authority.receipts.sign(try VerdictPlace.receipt(["1", "2"]), form: form, fault: fault)
  }

  private func bytes(_ text: String) throws -> Data { try #require(Data(base64Encoded: text)) }

  private func write(_ name: String, _ data: Data) throws {
    try data.write(to: tool.folder.appendingPathComponent(name))
  }

  private func verify(
    _ option: String, _ file: String, _ more: String..., input: String? = nil
  ) throws -> (status: Int32, told: JSONView?, result: Tool.Result) {
    let result = try tool.run(
      ["verify", option, file, "--anchor", "store/receipt-root.der", "--bundle-id", "com.example.app"] + more,
      input: input)
    return (result.status, try? JSONDocument(parsing: Array(result.output.utf8)).root, result)
  }

  /// A verdict is one line of JSON on standard output, with a documented code and one sentence, and nothing else is said.
  private func expectRejected(
    _ verdict: (status: Int32, told: JSONView?, result: Tool.Result), _ code: String, _ what: String
  ) throws {
    #expect(verdict.status == 10, "\(what): \(verdict.result)")
    #expect(verdict.told?["verdict"]?.string == "rejected" && verdict.told?["reason"]?.string == code, "\(what)")
    let explanation = try #require(verdict.told?["explanation"]?.string)
    #expect(explanation.hasSuffix(".") && !explanation.dropLast().contains(". "), "\(what): \(explanation)")
    #expect(verdict.told?["evidence"]?["proof"]?.string?.count == 64)
    #expect(verdict.result.errors.isEmpty && verdict.result.lines.count == 1)
    #expect(Self.documented.contains(code), "\(code) is not in docs/verdicts.md")
  }

  /// The codes of `docs/verdicts.md`.
  private static let documented: Set<String> = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("docs/verdicts.md")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return Set(
      text.split(separator: "\n").filter { $0.hasPrefix("| `") }
        .compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) })
  }()

  @Test(arguments: [false, true])
  func aReceiptIsTakenInEveryFormThatItIsKeptIn(isIndefinite: Bool) throws {
    let text = try receipt(.init(isIndefinite: isIndefinite))
    try tool.write("receipt.b64", text + "\n")
    try write("receipt", bytes(text))
    let broken = stride(from: 0, to: text.utf8.count, by: 76)
      .map { String(Array(text)[$0..<min($0 + 76, text.utf8.count)]) }.joined(separator: "\r\n")
    try tool.write("receipt.mime", broken + "\r\n")
    for file in ["receipt.b64", "receipt", "receipt.mime"] {
      let verdict = try verify("--receipt", file)
      #expect(verdict.status == 0 && verdict.told?["verdict"]?.string == "verified", "\(file): \(verdict.result)")
      #expect(verdict.told?["kind"]?.string == "app-receipt" && verdict.told?["parts"]?.count == 2)
      #expect(verdict.told?["evidence"]?["receipt"]?["device"]?.string == "not-asked")
    }
    #expect(try verify("--receipt", "-", input: text).status == 0)
    #expect(try verify("--receipt", "-", input: text + "\n").status == 0)
  }

  @Test func aReceiptIsOfOneDevice() throws {
    try tool.write("receipt.b64", try receipt())
    for id in [VerdictPlace.device, VerdictPlace.device.lowercased()] {
      let own = try verify("--receipt", "receipt.b64", "--device-id", id)
      #expect(own.status == 0 && own.told?["evidence"]?["receipt"]?["device"]?.string == "checked")
    }
    let other = try verify("--receipt", "receipt.b64", "--device-id", "6E1E6D7B-0000-4000-8000-0000000000AB")
    try expectRejected(other, "device-mismatch", "another device")
    // A network address in hex is an identifier too, and another one.
    try expectRejected(
      try verify("--receipt", "receipt.b64", "--device-id", "00:11:22:aa:bb:cc"), "device-mismatch", "an address")
    for wrong in ["phone", "", "123", String(repeating: "ab", count: 65)] {
      let refused = try verify("--receipt", "receipt.b64", "--device-id", wrong)
      #expect(refused.status == 2 && refused.result.output.isEmpty)
      #expect(refused.result.errors.contains("--device-id"), "\(refused.result.errors)")
      #expect(refused.result.errors.split(separator: "\n").count == 1)
    }
    try tool.write("proof.jws", "a.b.c")
    #expect(try tool.run("verify", "--jws", "proof.jws", "--device-id", VerdictPlace.device).status == 2)
  }

  @Test func whatIsNoReceiptHasItsCode() throws {
    let text = try receipt()
    let der = try bytes(text)
    let ber = try bytes(try receipt(.init(isIndefinite: true)))
    var nested = Data()
    // Open lengths within each other, deeper than is followed, and never closed.
    for _ in 0..<200_000 { nested.append(contentsOf: [0x30, 0x80]) }
    let cases: [(String, Data, String)] = [
      ("empty", Data(), "receipt-empty"), ("line breaks", Data("\n\r\n".utf8), "receipt-empty"),
      ("spaces", Data("   \n".utf8), "receipt-empty"), ("garbage", Data("no receipt!".utf8), "receipt-not-base64"),
      ("zeros", Data(count: 3000), "receipt-not-base64"),
      ("noise", Data((0..<4096).map { UInt8($0 & 255) ^ 0xA5 }), "receipt-not-base64"),
      ("text", Data("AAAA".utf8), "receipt-not-asn1"), ("JSON", Data(#"{"a":1}"#.utf8), "receipt-not-base64"),
      ("JWS", Data("eyJhbGciOiJFUzI1NiJ9.e30.c2ln".utf8), "receipt-is-jws"),
      ("twice", Data(Base64.encode(Array(text.utf8)).utf8), "receipt-encoded-twice"),
      ("huge", Data(repeating: UInt8(ascii: "A"), count: 8 << 20), "receipt-too-large"),
      ("huge value", Data([0x30, 0x84, 0x00, 0x80, 0x00, 0x00]) + Data(count: 8 << 20), "receipt-too-large"),
      ("DER cut", der.dropLast(40), "receipt-not-asn1"), ("DER cut short", der.prefix(20), "receipt-not-asn1"),
      ("BER cut", ber.dropLast(40), "receipt-not-asn1"), ("BER without its end", ber.dropLast(2), "receipt-not-asn1"),
      ("BER, more ends", ber + Data([0, 0]), "receipt-not-asn1"), ("trailing", der + Data([5, 0]), "receipt-not-asn1"),
      ("open lengths", nested, "receipt-not-asn1"), ("an open length", Data([0x30, 0x80]), "receipt-not-asn1"),
      ("a long length", Data([0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]), "receipt-not-asn1"),
      ("no signed data", Data([0x30, 0x80, 0x00, 0x00]), "receipt-not-signed-data"),
    ]
    for (what, data, code) in cases {
      try write("file", data)
      try expectRejected(try verify("--receipt", "file"), code, what)
    }
    for fault in ReceiptFault.allCases {
      for form in [SignedData.Form(), .init(isIndefinite: true)] {
        let verdict = try verify("--receipt", "-", input: try receipt(form, fault: fault))
        try expectRejected(verdict, try #require(verdict.told?["reason"]?.string), fault.rawValue)
      }
    }
    // Signed, and for somebody else.
    try tool.write("receipt.b64", text)
    let other = try tool.run(
      "verify", "--receipt", "receipt.b64", "--anchor", "store/receipt-root.der", "--bundle-id", "com.example.other")
    #expect(other.status == 10 && other.output.contains(#""reason":"wrong-bundle""#))
    let apple = try tool.run("verify", "--receipt", "receipt.b64")
    #expect(apple.status == 10 && apple.output.contains(#""reason":"chain-untrusted-root""#))
    let early = try verify("--receipt", "receipt.b64", "--at", "2020-01-01T00:00:00Z")
    #expect(early.status == 11 && early.told?["reason"]?.string == "signed-in-the-future")
  }

  @Test func theOldestKindWaitsForTheAppStore() throws {
    let text = LegacyReceipt(
      fields: [(name: "transaction-id", value: "1"), (name: "bid", value: "com.example.app")], isSandbox: true
    ).encoded(authority)
    try tool.write("legacy.b64", text + "\n")
    try write("legacy.plist", bytes(text))
    for (option, file) in [("--legacy", "legacy.b64"), ("--legacy", "legacy.plist"), ("--receipt", "legacy.b64")] {
      let verdict = try verify(option, file)
      #expect(verdict.status == 11 && verdict.told?["reason"]?.string == "needs-verify-receipt", "\(verdict.result)")
      #expect(verdict.told?["evidence"]?["verifyReceipt"]?["answer"]?.string == "not-asked")
      #expect(verdict.told?["explanation"]?.string?.hasSuffix(".") == true && verdict.result.errors.isEmpty)
    }
    #expect(try verify("--legacy", "-", input: text).status == 11)
    // What is something else is told so, and not judged.
    try tool.write("receipt.b64", try receipt())
    try write("noise", Data((0..<4096).map { UInt8($0 & 255) ^ 0xA5 }))
    try write("huge", Data(repeating: UInt8(ascii: "{"), count: 8 << 20))
    for (file, content) in [
      ("receipt.b64", nil), ("noise", nil), ("huge", nil), ("-", ""), ("-", "{}"), ("-", "eyJh.e30.c2ln"),
      ("-", #"{ "signature" = "c2ln"; }"#),
    ] as [(String, String?)] {
      let refused = try verify("--legacy", file, input: content)
      #expect(refused.status == 2 && refused.result.output.isEmpty, "\(file) \(content ?? ""): \(refused.result)")
      #expect(refused.result.errors.contains("--legacy: is no receipt of the oldest kind"))
      #expect(refused.result.errors.split(separator: "\n").count == 1)
    }
  }

  @Test func oneProofAtATimeAndAFileThatIsThere() throws {
    try tool.write("a", "x")
    for (words, mention) in [
      ([], "needs one of"), (["--receipt", "a", "--legacy", "a"], "needs one of"),
      (["--receipt", "a", "--jws", "a"], "needs one of"), (["--receipt", "none"], "--receipt none: can't be read"),
      (["--legacy", "none"], "--legacy none: can't be read"), (["--receipt", "."], "--receipt .: can't be read"),
      (["--receipt", "a", "--kind", "transaction"], "--kind"), (["--receipt", "a", "--at", "now"], "--at"),
      (["--receipt", "a", "--environment", "Nowhere"], "--environment"),
      (["--receipt", "a", "--anchor", "a"], "--anchor"),
      (["--receipt", "a", "--environment", "Xcode"], "--anchor"), (["--receipt"], "--receipt"),
    ] as [([String], String)] {
      let result = try tool.run(["verify"] + words)
      #expect(result.status == 2 && result.output.isEmpty, "\(words): \(result)")
      #expect(result.errors.contains(mention), "\(words): \(result.errors)")
    }
  }
}
