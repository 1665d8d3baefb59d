import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesLocalAppStore
import Testing

/// `purchases verify --verdict`: a verdict of the log is judged again, years later, from its evidence alone.
@Suite(.timeLimit(.minutes(5))) struct VerdictTests {
  private let place: VerdictPlace
  private var tool: Tool { place.tool }

  init() throws { place = try VerdictPlace() }

  private func legacy(_ id: String, _ authority: LocalAuthority) -> String {
    let names = [
      ("transaction-id", id), ("original-transaction-id", id), ("product-id", "p"), ("quantity", "1"),
      ("bid", "com.example.app"), ("purchase-date-ms", "1375340400000"),
    ]
    return LegacyReceipt(fields: names.map { (name: $0.0, value: $0.1) }, isSandbox: true).encoded(authority)
  }

  private static func forged(_ jws: String) -> String { String(jws.dropLast(4)) + "AAAA" }

  /// One of each kind, with the verdict that it must get.
  private func receiveAll() throws -> [String: String] {
    let good = try (10...16).map { try place.sign(.transaction, VerdictPlace.transaction(String($0))) }
    let jws = "signedTransaction"
    place.pay("good", "10", jws, good[0])
    place.pay("forged", "11", jws, Self.forged(good[1]))
    place.pay("product", "12", jws, good[2], #","productId":"another""#)
    place.pay("original", "13", jws, good[3], #","originalTransactionId":"7""#)
    place.pay("environment", "14", jws, good[4], #","environment":"Production""#)
    place.pay("transaction", "99", jws, good[5])
    place.pay(
      "bundle", "17", jws, try place.sign(.transaction, VerdictPlace.transaction("17", bundle: "com.example.other")))
    place.pay(
      "kind", "18", jws, try place.notification("5c4f7a10-0000-4000-8000-000000000009", id: "18"))
    place.pay("garbage", "19", jws, #"a \"b\" \\ ü"#, #","environment":"Sandbox""#)
    for (name, uuid, bundle) in [
      ("notification", "5c4f7a10-0000-4000-8000-000000000001", "com.example.app"),
      ("nested", "5c4f7a10-0000-4000-8000-000000000002", "com.example.other"),
    ] {
      place.receive(
        name, #""signedPayload":"\#(try place.notification(uuid, bundle: bundle))""#, type: "store.notified")
    }
    let receipts = place.authority.receipts
    func receipt(_ ids: [String]) throws -> String { receipts.sign(try VerdictPlace.receipt(ids)) }
    let app = "appReceipt"
    place.pay("receipt", "40", app, try receipt(["40", "41", "42"]))
    place.pay("ber", "43", app, receipts.sign(try VerdictPlace.receipt(["43"]), form: .init(isIndefinite: true)))
    place.pay("restored", "77", app, try receipt(["44", "45"]), #","productId":"p""#, type: "payment.restored")
    place.pay("unmatched", "78", app, try receipt(["46"]))
    place.pay("empty", "79", app, try receipt([]))
    place.pay("device", "47", app, try receipt(["47"]), #","deviceId":"\#(VerdictPlace.device)""#)
    place.pay("other device", "48", app, try receipt(["48"]), #","deviceId":"\#(UUID().uuidString)""#)
    place.pay("receipt environment", "49", app, try receipt(["49"]), #","environment":"Production""#)
    place.pay(
      "forged receipt", "50", app, receipts.sign(try VerdictPlace.receipt(["50"]), fault: .brokenSignature))
    place.pay(
      "production receipt", "51", app, receipts.sign(try VerdictPlace.receipt(["51"], environment: "Production")))
    place.pay("oldest", "60", app, legacy("60", place.authority), #","environment":"Sandbox""#)
    place.pay("forged oldest", "61", app, legacy("61", LocalAuthority(seed: 99)), #","environment":"Sandbox""#)
    place.pay("beside", "16", jws, good[6], #","appReceipt":"\#(try receipt(["16"]))""#)
    return [
      "good": "verified", "forged": "jws-signature-invalid", "product": "product-mismatch",
      "original": "original-transaction-mismatch", "environment": "environment-mismatch",
      "transaction": "transaction-mismatch", "bundle": "wrong-bundle", "kind": "wrong-kind",
      "garbage": "jws-wrong-segment-count", "notification": "verified", "nested": "wrong-bundle",
      "receipt": "verified", "ber": "verified", "restored": "verified", "unmatched": "verified", "empty": "verified",
      "device": "verified", "other device": "device-mismatch", "receipt environment": "environment-mismatch",
      "forged receipt": "receipt-signature-invalid", "production receipt": "environment-not-accepted",
      "oldest": "verified", "forged oldest": "receipt-not-authentic", "beside": "verified",
    ]
  }

  @Test func eachKindHoldsByItselfAndADoctoredOneIsFound() throws {
    let expected = try receiveAll()
    let verdicts = try place.judged()
    #expect(Set(verdicts.keys) == Set(expected.keys))
    #expect(verdicts["receipt"]?.count == 3 && verdicts["restored"]?.count == 2 && verdicts["beside"]?.count == 2)
    var proofs: [String: JSON] = [:]
    for (name, events) in verdicts {
      let event = try #require(events.first)
      proofs[name] = try VerdictEvent.members(event)["value"]?["evidence"]?["proofText"]
    }
    // It stands here and in `received`, and nowhere behind.
    let good = try #require(proofs["good"]?.string)
    for topic in ["owned", "entitlements", "entitlement-state", "parked", "quarantine", "audit"] {
      let output = try tool.run("tail", topic).output
      #expect(!output.contains("proofText") && !output.contains(good), "\(topic)")
    }
    let event = try #require(verdicts["good"]?.first)
    let name = try #require(try VerdictEvent.members(event)["value"]?["proof"]?.string)
    #expect(try tool.run("tail", "owned").output.contains(name))
    for (name, events) in verdicts.sorted(by: { $0.key < $1.key }) {
      for event in events {
        let isReceipt = VerdictEvent.isOfReceipt(event)
        let good = try place.again(event, receipt: isReceipt)
        #expect(good.status == 0 && good.told?["agrees"]?.bool == true, "\(name): \(good)")
        #expect(good.told?["recorded"]?.string == expected[name] && good.told?["judged"]?.string == expected[name])
        try expectFound(event, name, another: try #require(proofs[name == "good" ? "forged" : "good"]))
      }
    }
  }

  private func expectFound(_ event: String, _ name: String, another proof: JSON?) throws {
    let isVerified = try VerdictEvent.members(event)["value"]?["reason"] == nil
    var doctored: [(String, String)] = [
      ("another proof", try VerdictEvent.evidence(event) { $0["proofText"] = proof }),
      (
        "another verdict",
        try VerdictEvent.changed(event) { data in
          data["reason"] = .string(isVerified ? "wrong-bundle" : "malformed-field")
        }
      ),
      ("another name", try VerdictEvent.changed(event) { $0["proof"] = .string(String(repeating: "0", count: 64)) }),
      ("judged at another time", try VerdictEvent.evidence(event) { $0["judgedAt"] = .integer(1_764_460_800_001) }),
    ]
    if isVerified {
      doctored += [
        ("another date", try VerdictEvent.changed(event) { $0["signedDate"] = .integer(5) }),
        ("another date of the chain", try VerdictEvent.evidence(event) { $0["signedDate"] = .integer(5) }),
        ("another environment", try VerdictEvent.changed(event) { $0["environment"] = .string("Production") }),
        (
          "another part",
          try VerdictEvent.changed(event) { data in
            let parts = (data["parts"]?.array ?? []).map { part -> JSON in
              guard var part = part.object, var payload = part["payload"]?.object else { return part }
              payload["quantity"] = .integer(1_000)
              part["payload"] = .object(payload)
              return .object(part)
            }
            data["parts"] = .array(parts.isEmpty ? [.object(["digest": .string("x")])] : parts)
          }
        ),
      ]
      if try VerdictEvent.members(event)["value"]?["parts"]?.array?.isEmpty == false {
        doctored.append(("no part", try VerdictEvent.changed(event) { $0["parts"] = .array([]) }))
      }
    } else {
      doctored.append(("no reason", try VerdictEvent.changed(event) { $0["reason"] = nil }))
    }
    for (how, event) in doctored {
      let found = try place.again(event, receipt: VerdictEvent.isOfReceipt(event))
      #expect(found.status == 4 && found.told?["agrees"]?.bool == false, "\(name), \(how): \(found)")
    }
  }

  /// The data alone, as a database may keep it: judged before it was signed.
  @Test func aTimeBeforeTheProofWasSignedIsFound() throws {
    place.pay("good", "10", "signedTransaction", try place.sign(.transaction, VerdictPlace.transaction("10")))
    let event = try #require(try place.judged()["good"]?.first)
    let early = try VerdictEvent.evidence(event) { $0["judgedAt"] = .integer(VerdictPlace.day - 86_400_000) }
    let data = String(decoding: try #require(try VerdictEvent.members(early)["value"]).bytes, as: UTF8.self)
    let found = try place.again(data)
    #expect(found.status == 4 && found.told?["judged"]?.string == "pending:signed-in-the-future")
    // By the trust of somebody else it is another verdict.
    let other = try LocalAuthority(folder: tool.folder.appendingPathComponent("other").path)
    #expect(other.root.der != place.authority.root.der)
    try tool.write("event.json", event)
    let untrusted = try tool.run("verify", "--verdict", "event.json", "--anchor", "other/root.der")
    #expect(untrusted.status == 4 && untrusted.output.contains(#""judged":"chain-"#), "\(untrusted.output)")
  }

  @Test func whatIsNoVerdictIsRefusedByName() throws {
    try tool.write("good.jws", try place.sign(.transaction, VerdictPlace.transaction("10")))
    for (text, words) in [
      ("{}", "holds no evidence"), ("not JSON", "is not JSON"), ("", "is not JSON"), ("[]", "holds no evidence"),
      (#"{"nextTry":"2026-01-01T00:00:00Z"}"#, "no verdict yet"),
      (#"{"evidence":{"proof":"00","judgedAt":1,"verifier":"purchases-jws/2"}}"#, "give it with --jws F"),
      (#"{"evidence":{"proof":"00","judgedAt":1,"verifier":"purchases-receipt/1"}}"#, "give it with --receipt F"),
      (#"{"evidence":{"proof":"00","judgedAt":1,"proofText":"x","stated":{"environment":5}}}"#, "stated.environment"),
      (#"{"evidence":{"proof":"00","judgedAt":1,"proofText":"x","accepted":{"apps":[{}]}}}"#, "accepted.apps"),
    ] {
      let result = try place.again(text)
      #expect(result.status == 2 && result.errors.contains(words), "\(text): \(result.errors)")
      #expect(result.errors.split(separator: "\n").count == 1)
    }
    let event = #"{"evidence":{"proof":"00","judgedAt":1,"proofText":"x","verifier":"purchases-jws/2"}}"#
    for (words, mention) in [
      (["--receipt", "good.jws"], "is on a JWS"), (["--lines", "good.jws"], "one proof"),
      (["--jws", "good.jws", "--receipt", "good.jws"], "one proof"), (["--at", "2026-01-01T00:00:00Z"], "--at"),
      (["--kind", "transaction"], "--kind"), (["--device-id", VerdictPlace.device], "--device-id"),
      (["--jws", "none.jws"], "none.jws: can't be read"),
    ] {
      try tool.write("event.json", event)
      let result = try tool.run(["verify", "--verdict", "event.json"] + words)
      #expect(result.status == 2 && result.errors.contains(mention), "\(words): \(result.errors)")
    }
    #expect(try tool.run("verify", "--verdict", "-", "--jws", "-", input: event).status == 2)
    #expect(try tool.run("verify", "--verdict", "-", input: event).status == 4)
  }
}
