import Foundation
import PurchasesJSON
import Testing

/// `purchases verify --verdict`: a verdict of the log is judged again, years later, from its evidence and its proof.
@Suite struct VerdictTests {
  private static let payload =
    #"{"environment":"Sandbox","bundleId":"com.example.app","transactionId":"1","originalTransactionId":"1","#
    + #""productId":"p","type":"Consumable","purchaseDate":1764460800000,"signedDate":1764460800000}"#

  private let program: Tool

  init() throws {
    program = try Tool()
    let jws = try program.run("appstore", "sign", "--kind", "transaction", "--dir", "store", input: Self.payload).output
    try program.write("good.jws", jws)
    try program.write("forged.jws", String(jws.trimmingCharacters(in: .whitespacesAndNewlines).dropLast(4)) + "AAAA")
    try program.write("catalogue.json", Tool.catalogue)
  }

  private func again(_ event: String, _ proof: String) throws -> (status: Int32, told: JSONView) {
    try program.write("event.json", event)
    let result = try program.run(
      "verify", "--verdict", "event.json", "--jws", proof, "--anchor", "store/root.der", "--bundle-id",
      "com.example.app")
    return (result.status, try JSONDocument(parsing: Array(result.output.utf8)).root)
  }

  /// What the pipeline itself has written of a proof, as the topic holds it.
  private func recorded(_ proof: String, _ more: String = "") throws -> String {
    let jws = try String(contentsOf: program.folder.appendingPathComponent(proof), encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let event =
      #"{"type":"payment.purchased","environment":"Sandbox","account":"a1","attemptId":"\#(UUID().uuidString)","#
      + #""transactionId":"1","signedTransaction":"\#(jws)"\#(more)}"#
    let published = try program.run("publish", "--file", "-", input: event)
    try #require(published.status == 0, "\(published.errors)")
    let run = try program.run(
      "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--anchor", "store/root.der",
      "--catalogue", "catalogue.json")
    try #require(run.status == 0, "\(run.errors)")
    let tail = try program.run("tail", "verified")
    return try #require(tail.lines.last)
  }

  @Test func whatTheLogSaysIsJudgedAgain() throws {
    let good = try again(try recorded("good.jws"), "good.jws")
    #expect(good.status == 0 && good.told["agrees"]?.bool == true)
    #expect(good.told["recorded"]?.string == "verified" && good.told["judged"]?.string == "verified")
    let forged = try again(try recorded("forged.jws"), "forged.jws")
    #expect(forged.status == 0 && forged.told["judged"]?.string == "jws-signature-invalid")
    // The report beside the proof decided; the proof itself is authentic.
    let contradicted = try again(try recorded("good.jws", #","productId":"another""#), "good.jws")
    #expect(contradicted.status == 0 && contradicted.told["recorded"]?.string == "product-mismatch")
    #expect(contradicted.told["restsOn"]?.string == "the report that came with the proof")
  }

  @Test func aDoctoredRecordIsFound() throws {
    let event = try recorded("good.jws")
    let rejected = event.replacingOccurrences(
      of: #""environment":"Sandbox","kind""#, with: #""environment":"Sandbox","reason":"wrong-bundle","kind""#)
    #expect(rejected != event)
    let found = try again(rejected, "good.jws")
    #expect(found.status == 4 && found.told["agrees"]?.bool == false)
    #expect(found.told["differences"]?.elements.compactMap { $0["field"]?.string } == ["verdict"])
    let other = try again(event, "forged.jws")
    #expect(other.status == 4)
    #expect(other.told["differences"]?.elements.compactMap { $0["field"]?.string }.contains("proof") == true)
    let elsewhere = event.replacingOccurrences(of: #""environment":"Sandbox""#, with: #""environment":"Production""#)
    #expect(try again(elsewhere, "good.jws").status == 4)
  }

  @Test func whatIsNoVerdictIsRefusedByName() throws {
    for (text, words) in [
      ("{}", "holds no evidence"), ("not JSON", "is not JSON"),
      (#"{"nextTry":"2026-01-01T00:00:00Z"}"#, "no verdict yet"),
    ] {
      try program.write("event.json", text)
      let result = try program.run("verify", "--verdict", "event.json", "--jws", "good.jws")
      #expect(result.status == 2 && result.errors.contains(words), "\(result.errors)")
    }
    let alone = try program.run("verify", "--verdict", "event.json", "--receipt", "good.jws")
    #expect(alone.status == 2 && alone.errors.contains("goes with --jws"))
  }
}
