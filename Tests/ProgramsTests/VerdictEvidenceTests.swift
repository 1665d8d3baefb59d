import Foundation
import PurchasesCore
import PurchasesJSON
import PurchasesLocalAppStore
import Testing

/// `purchases verify --verdict`: what stands in the evidence, what doesn't, and what older ones hold.
@Suite(.timeLimit(.minutes(5))) struct VerdictEvidenceTests {
  private let place: VerdictPlace
  private var tool: Tool { place.tool }

  init() throws { place = try VerdictPlace() }

  @Test func whatTheResponderSaidStandsSigned() throws {
    for certificate in [place.authority.authority.leaf, place.authority.authority.intermediate] {
      place.responder.set(.revoked(since: VerdictPlace.day), ofSerial: certificate.serialHex)
    }
    place.pay("revoked", "10", "signedTransaction", try place.sign(.transaction, VerdictPlace.transaction("10")))
    place.receive(
      "notification", #""signedPayload":"\#(try place.notification("5c4f7a10-0000-4000-8000-000000000003"))""#,
      type: "store.notified")
    for (name, events) in try place.judged() {
      let event = try #require(events.first)
      let good = try place.again(event)
      #expect(good.status == 0 && good.told?["judged"]?.string == "chain-revoked", "\(name): \(good)")
      #expect(good.told?["restsOn"] == nil)
      func answers(_ change: @escaping (inout JSONObject) -> Void) throws -> String {
        try VerdictEvent.evidence(event) { evidence in
          let told = (evidence["revocation"]?.array ?? []).map { answer -> JSON in
            guard var members = answer.object else { return answer }
            change(&members)
            return .object(members)
          }
          evidence["revocation"] = .array(told)
        }
      }
      // Without its signature there is only the evidence's word for it, and that is told.
      let unsigned = try place.again(try answers { $0["body"] = nil })
      #expect(unsigned.status == 0 && unsigned.told?["restsOn"]?.string == "the responder's recorded answer")
      let since = try place.again(try answers { $0["revokedAt"] = .integer(1) })
      #expect(since.status == 4 && VerdictEvent.fields(since.told).contains("evidence.revocation"))
      let other = try place.again(try answers { $0["certificate"] = .string(String(repeating: "0", count: 64)) })
      #expect(other.status == 4 && other.told?["judged"]?.string != "chain-revoked")
      let good2 = try place.again(try answers { $0["answer"] = .string("good") })
      #expect(good2.status == 4)
    }
  }

  @Test func whoCarriesNoProofIsGivenIt() throws {
    let jws = try place.sign(.transaction, VerdictPlace.transaction("10"))
    place.pay("good", "10", "signedTransaction", jws)
    // Larger than what is carried: an authentic proof with a long member.
    let large = try place.sign(
      .transaction, VerdictPlace.transaction("11", #","x":"\#(String(repeating: "y", count: 70_000))""#))
    place.pay("large", "11", "signedTransaction", large)
    let receipt = place.authority.receipts.sign(try VerdictPlace.receipt(["12"]))
    place.pay("receipt", "12", "appReceipt", receipt)
    let verdicts = try place.judged()
    let event = try #require(verdicts["large"]?.first)
    let evidence = try VerdictEvent.members(event)["value"]?["evidence"]
    #expect(evidence?["proofText"] == nil && evidence?["proofNotCarried"]?.string == "it is larger than 65536 bytes")
    try tool.write("large.jws", large + "\n")
    try tool.write("good.jws", jws)
    // From the record that the event names, in the log of the folder; without one there is nothing to judge.
    #expect(try place.again(event).status == 0)
    let without = try place.again(event, "--log", "sqlite:none.db")
    #expect(without.status == 2 && without.errors.contains("larger than 65536 bytes"), "\(without.errors)")
    #expect(!FileManager.default.fileExists(atPath: tool.folder.appendingPathComponent("none.db").path))
    let data = String(decoding: try #require(try VerdictEvent.members(event)["value"]).bytes, as: UTF8.self)
    #expect(try place.again(data).status == 2)
    #expect(try place.again(data, "--jws", "large.jws").status == 0)
    #expect(try place.again(data, "--jws", "good.jws").status == 4)
    // Written before proofs were carried.
    let old = try VerdictEvent.evidence(try #require(verdicts["good"]?.first)) { $0["proofText"] = nil }
    #expect(try place.again(old, "--jws", "good.jws", "--log", "sqlite:none.db").status == 0)
    let oldReceipt = try VerdictEvent.evidence(try #require(verdicts["receipt"]?.first)) { $0["proofText"] = nil }
    try tool.write("receipt.b64", receipt + "\n")
    #expect(try place.again(oldReceipt, "--receipt", "receipt.b64", receipt: true).status == 0)
    try Data(base64Encoded: receipt)?.write(to: tool.folder.appendingPathComponent("receipt.der"))
    #expect(try place.again(oldReceipt, "--receipt", "receipt.der", receipt: true).status == 0)
    #expect(try place.again(oldReceipt, "--receipt", "good.jws", receipt: true).status == 4)
  }

  /// Before the evidence said what was reported and whose the receipt had to be, its word was all there was.
  @Test func anOldEvidenceIsBelievedAsFarAsBefore() throws {
    let jws = try place.sign(.transaction, VerdictPlace.transaction("10"))
    for (name, more) in [
      ("product-mismatch", #","productId":"another""#),
      ("original-transaction-mismatch", #","originalTransactionId":"7""#),
      ("environment-mismatch", #","environment":"Production""#),
    ] { place.pay(name, "10", "signedTransaction", jws, more) }
    for (name, device) in [("verified", VerdictPlace.device), ("device-mismatch", UUID().uuidString)] {
      place.pay(
        name, "20", "appReceipt", place.authority.receipts.sign(try VerdictPlace.receipt(["20"])),
        #","deviceId":"\#(device)""#)
    }
    let verdicts = try place.judged()
    for (name, events) in verdicts {
      let event = try #require(events.first)
      let old = try VerdictEvent.evidence(event) { evidence in
        evidence["stated"] = nil
        guard var receipt = evidence["receipt"]?.object else { return }
        receipt["deviceHash"] = nil
        evidence["receipt"] = .object(receipt)
      }
      let told = try place.again(old, receipt: VerdictEvent.isOfReceipt(old))
      #expect(told.status == 0 && told.told?["judged"]?.string == name, "\(name): \(told)")
      guard name == "device-mismatch" else { continue }
      #expect(told.told?["restsOn"]?.string == "the device that was named with the receipt")
      let right = try place.again(event, "--device-id", VerdictPlace.device, receipt: true)
      #expect(right.status == 4 && right.told?["judged"]?.string == "verified")
    }
    // Older rules are no difference by themselves; newer ones, which nobody here knows, are.
    let event = try #require(verdicts["product-mismatch"]?.first)
    #expect(
      try place.again(try VerdictEvent.evidence(event) { $0["verifier"] = .string("purchases-jws/1") }).status == 0)
    #expect(
      VerdictEvent.fields(
        try place.again(try VerdictEvent.evidence(event) { $0["verifier"] = .string("purchases-jws/900") }).told)
        == ["evidence.verifier"])
  }
}
