import Foundation
import PurchasesJSON
import Testing

/// `purchases verify --lines`: many proofs in one run.
@Suite struct VerifyLinesTests {
  private func transaction(_ id: String, bundle: String = "com.example.app") -> String {
    #"{"environment":"Sandbox","bundleId":"\#(bundle)","transactionId":"\#(id)","originalTransactionId":"1","#
      + #""productId":"p","type":"Consumable","purchaseDate":1764460800000,"signedDate":1764460800000,"novel":1}"#
  }

  @Test func oneVerdictALineInTheirOrder() throws {
    let program = try Tool()
    func sign(_ payload: String) throws -> String {
      try program.run("appstore", "sign", "--kind", "transaction", "--dir", "store", input: payload).output
        .trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let good = try sign(transaction("1"))
    let broken = try sign(transaction("3").replacingOccurrences(of: ",", with: ",\n"))
    let other = try sign(transaction("2", bundle: "com.example.other"))
    let future = #"{"id":"early","jws":"\#(good)","at":"2020-01-01T00:00:00Z"}"#
    let input = [
      good, "", broken, other, "not a proof", #"{"id":"x","jws":"\#(good)","kind":"notification"}"#, future,
      #"{"jws":7}"#,
      #"{"jws":"\#(good)","kind":"novel"}"#, "{",
    ].joined(separator: "\n")
    func verify(_ option: String, _ file: String) throws -> Tool.Result {
      try program.run(
        "verify", option, file, "--anchor", "store/root.der", "--bundle-id", "com.example.app", "--at",
        "2026-01-01T00:00:00Z")
    }
    try program.write("proofs.txt", input)
    let all = try verify("--lines", "proofs.txt")
    #expect(all.status == 3 && all.errors.isEmpty, "\(all.errors)")
    let verdicts = try all.lines.map { try JSONDocument(parsing: Array($0.utf8)).root }
    #expect(verdicts.compactMap { $0["line"]?.int64 } == [1, 3, 4, 5, 6, 7, 8, 9, 10])
    #expect(
      verdicts.compactMap { $0["reason"]?.string ?? $0["verdict"]?.string } == [
        "verified", "verified", "wrong-bundle", "jws-wrong-segment-count", "wrong-kind", "signed-in-the-future",
        "unreadable",
        "unreadable", "unreadable",
      ])
    #expect(verdicts[4]["id"]?.string == "x" && verdicts[5]["id"]?.string == "early")
    #expect(verdicts[0]["findings"]?["transaction"]?["unknownMembers"]?.elements.compactMap(\.string) == ["novel"])
    // The same verdict as by itself.
    try program.write("good.jws", good)
    let alone = try verify("--jws", "good.jws")
    #expect(alone.status == 0)
    let first = try #require(all.lines.first)
    #expect(first.replacingOccurrences(of: #""line":1,"#, with: "") + "\n" == alone.output)
    let one = try program.run("verify", "--lines", "-", "--anchor", "store/root.der", input: good + "\n")
    #expect(one.status == 0)
    #expect(try program.run("verify", "--lines", "proofs.txt", "--jws", "good.jws").status == 2)
  }
}
