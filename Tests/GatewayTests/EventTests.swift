import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesGateway
import PurchasesHTTPClient
import PurchasesJSON
import PurchasesTestKit
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EventTests {
  @Test func eventBecomesARecordByteForByte() throws {
    let gateway = try GatewayFixture()
    let body = GatewayFixture.purchased("2000000123456789012", extra: #", "unknown": 1e400"#)
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    let answer = try gateway.send("POST", "/v1/events", body, headers: [("traceparent", trace)])
    #expect(answer.status == 202)
    let digest = SHA256.digest(GatewayFixture.transaction("2000000123456789012")).hex
    #expect(answer.json?["proof"]?.string == digest)
    #expect(answer.json?["permitUrl"]?.string == "/v1/permits/Production/\(GatewayFixture.account)/\(digest)")
    let record = try #require(gateway.producer.records.first)
    #expect(record.topic == "purchases.received")
    #expect(record.record.value == Array(body.utf8))
    #expect(record.record.key == Array("Production/2000000123456789012".utf8))
    #expect(record.record.timestamp == FixedClock.instant)
    let envelope = try Envelope(reading: record.record)
    #expect(envelope.type == .paymentPurchased)
    #expect(envelope.id == answer.json?["id"]?.string)
    #expect(envelope.traceparent == trace)
    #expect(envelope.time == FixedClock.instant)
  }

  @Test func anEventWithoutAProofIsKeyedByItsAccountAndNamedByItsAttempt() throws {
    let gateway = try GatewayFixture()
    func failed(_ attempt: String, account: String = "u1") -> String {
      #"{"type":"payment.failed","environment":"Sandbox","account":"\#(account)","attemptId":"\#(attempt)","#
        + #""productId":"coins","failure":{"domain":"SKErrorDomain","code":2,"userCancelled":true}}"#
    }
    let first = try gateway.send("POST", "/v1/events", failed("a 1"))
    #expect(first.status == 202)
    #expect(first.json?["permitUrl"]?.string == "/v1/permits/Sandbox/u1/attempt:a%201")
    #expect(gateway.producer.records[0].record.key == Array("Sandbox/u1".utf8))
    #expect(try gateway.send("POST", "/v1/events", failed("a 1")).json?["id"] == first.json?["id"])
    #expect(try gateway.send("POST", "/v1/events", failed("a 2")).json?["id"] != first.json?["id"])
    #expect(try gateway.send("POST", "/v1/events", failed("a 1", account: "u2")).json?["id"] != first.json?["id"])
  }

  @Test(arguments: [
    ("", "event"), ("{", "event"), ("[]", "event"), ("null", "event"), ("{} {}", "event"), ("{}", "type"),
    (#"{"type":7}"#, "type"), (#"{"type":"payment.stolen"}"#, "type"), (#"{"type":"access.ordered"}"#, "type"),
    (#"{"type":"payment.purchased.v9"}"#, "type"), (#"{"type":"store.notified","signedPayload":"a"}"#, "type"),
    (#"{"type":"payment.purchased","type":"payment.added"}"#, "type"),
    (#"{"type":"payment.purchased","environment":"production"}"#, "environment"),
    (#"{"type":"payment.purchased","signedTransaction":"a.b.c"}"#, "transactionId"),
    (#"{"type":"payment.purchased","transactionId":2000000123456789}"#, "transactionId"),
    (#"{"type":"payment.purchased","transactionId":"1","signedTransaction":"a.b.c","account":"a/b"}"#, "account"),
    (#"{"type":"payment.failed","environment":"Sandbox","account":"u","productId":"p","attemptId":"1"}"#, "failure"),
    ("\u{FEFF}{}", "event"), (#"{"type":"payment.added","environment":"Sandbox","account":"u"}"#, "productId"),
  ])
  func malformedEventsAreRefusedByField(body: String, field: String) throws {
    let gateway = try GatewayFixture()
    let answer = try gateway.send("POST", "/v1/events", body)
    #expect(answer.status == 400)
    #expect(answer.answer.header("content-type") == "application/problem+json")
    #expect(answer.json?["field"]?.string == field)
    #expect(answer.json?["reason"]?.string?.isEmpty == false)
    #expect(gateway.producer.records.isEmpty)
  }

  @Test func invalidUTF8AndRandomBytesAreRefused() throws {
    let gateway = try GatewayFixture()
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var generator = SeededRandom(seed: seed)
    for length in [1, 10, 100, 1000, 100_000] {
      let body = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let answer = try gateway.client.send(
        HTTPCall(
          "POST", "http://127.0.0.1:\(gateway.gateway.port)/v1/events",
          headers: [("content-type", "application/json"), ("authorization", "Bearer " + GatewayFixture.token)],
          body: body))
      #expect(answer.status == 400)
    }
  }

  @Test(arguments: [nil, "text/plain", "application/x-www-form-urlencoded", "application/cloudevents+json", "json"])
  func otherContentTypesAreRefused(type: String?) throws {
    let gateway = try GatewayFixture()
    let answer = try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1"), type: type)
    #expect(answer.status == 415)
    #expect(gateway.producer.records.isEmpty)
  }

  @Test func parametersOfTheContentTypeDoNotMatter() throws {
    let gateway = try GatewayFixture()
    let answer = try gateway.send(
      "POST", "/v1/events", GatewayFixture.purchased("1"), type: "Application/JSON ; charset=utf-8")
    #expect(answer.status == 202)
  }

  @Test func oversizedBodiesAreRefused() throws {
    let gateway = try GatewayFixture(maxBody: 2000)
    let long = GatewayFixture.purchased("1", extra: #","x":"\#(String(repeating: "x", count: 2000))""#)
    #expect(try gateway.send("POST", "/v1/events", long).status == 413)
    #expect(try gateway.send("POST", "/v1/notifications", long, token: nil).status == 413)
    #expect(gateway.producer.records.isEmpty)
  }

  @Test func anEventThatIsTooLargeIsToldTheLimit() throws {
    let gateway = try GatewayFixture(maxBody: 4 << 20)
    func event(_ bytes: Int) -> String {
      let shortest = GatewayFixture.purchased("1", extra: #","x":"""#).utf8.count
      return GatewayFixture.purchased("1", extra: #","x":"\#(String(repeating: "x", count: bytes - shortest))""#)
    }
    let limit = ReceivedRecord.maximumBytes
    #expect(try gateway.send("POST", "/v1/events", event(limit)).status == 202)
    let large = event(limit + 1)
    let answer = try gateway.send("POST", "/v1/events", large)
    #expect(answer.status == 413)
    #expect(answer.answer.header("content-type") == "application/problem+json")
    #expect(answer.json?["field"]?.string == "event")
    #expect(answer.json?["reason"]?.string == "is longer than \(limit) bytes")
    let notification = try gateway.send("POST", "/v1/notifications", large, token: nil)
    #expect(notification.status == 413)
    let lines = try gateway.send(
      "POST", "/v1/events", [GatewayFixture.purchased("2"), large, "x"].joined(separator: "\n"),
      type: "application/x-ndjson")
    #expect(lines.status == 207)
    #expect(lines.json?["results"]?.array?.map { $0["status"]?.int64 } == [202, 413, 400])
    #expect(gateway.producer.records.count == 2)
  }

  @Test(arguments: [nil, "", "wrong", GatewayFixture.token + "x", String(GatewayFixture.token.dropLast())])
  func wrongTokensAreRefused(token: String?) throws {
    let gateway = try GatewayFixture()
    for (method, path) in [
      ("POST", "/v1/events"), ("GET", "/v1/permits/Production/u/x"), ("GET", "/v1/permits/Production/u?transaction=1"),
      ("GET", "/v1/accounts/Production/u"),
    ] {
      let answer = try gateway.send(
        method, path, method == "POST" ? GatewayFixture.purchased("1") : nil, token: token)
      #expect(answer.status == 401, "\(method) \(path)")
      #expect(answer.answer.header("www-authenticate") == "Bearer")
    }
    #expect(gateway.producer.records.isEmpty)
    #expect(gateway.store.reads == 0)
    #expect(
      try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1"), token: "another-token-beside-it").status
        == 202)
  }

  @Test func parallelDuplicatesHaveOneIdAndAreAllDurable() throws {
    let gateway = try GatewayFixture()
    let running = onThreads(50) { _ in
      try? gateway.send("POST", "/v1/events", GatewayFixture.purchased("77"), type: "application/json")
        .json?["id"]?.string
    }
    let ids = running.wait()
    #expect(Set(ids).count == 1)
    #expect(ids[0] != nil)
    #expect(gateway.producer.records.count == 50)
  }

  @Test func idDependsOnContentAndNotOnItsForm() throws {
    let gateway = try GatewayFixture()
    let first = try gateway.send("POST", "/v1/events", GatewayFixture.purchased("5"))
    let spaced = GatewayFixture.purchased("5").replacing(",", with: " , ")
    #expect(try gateway.send("POST", "/v1/events", spaced).json?["id"] == first.json?["id"])
    let restored = GatewayFixture.purchased("5").replacing("payment.purchased", with: "payment.restored.v1")
    #expect(try gateway.send("POST", "/v1/events", restored).json?["id"] != first.json?["id"])
    // A forgery of the genuine proof (other signature bytes) is another event.
    let forged = GatewayFixture.purchased("5").replacing(
      GatewayFixture.transaction("5"), with: GatewayFixture.transaction("5") + "A")
    #expect(try gateway.send("POST", "/v1/events", forged).json?["id"] != first.json?["id"])
  }

  @Test func thePermitIsAskedForWhereTheSenderSaysAndElseWhereTheProofSays() throws {
    let gateway = try GatewayFixture()
    let proof = GatewayFixture.transaction("1", environment: "Sandbox")
    func url(_ environment: String) throws -> String? {
      try gateway.send(
        "POST", "/v1/events",
        #"{"type":"payment.purchased",\#(environment)"account":"u","transactionId":"1","signedTransaction":"\#(proof)"}"#
      ).json?["permitUrl"]?.string
    }
    #expect(try url("")?.hasPrefix("/v1/permits/Sandbox/u/") == true)
    #expect(try url(#""environment":"Production","#)?.hasPrefix("/v1/permits/Production/u/") == true)
  }

  @Test func linesAreJudgedOneByOne() throws {
    let gateway = try GatewayFixture()
    let lines = [
      GatewayFixture.purchased("1"), "", "  ", "not json", GatewayFixture.purchased("2") + "\r",
      #"{"type":"payment.added"}"#,
    ]
    let answer = try gateway.send("POST", "/v1/events", lines.joined(separator: "\n"), type: "application/x-ndjson")
    #expect(answer.status == 207)
    #expect(answer.json?["accepted"]?.int64 == 2)
    #expect(answer.json?["refused"]?.int64 == 2)
    let results = answer.json?["results"]?.array ?? []
    #expect(results.map { $0["line"]?.int64 } == [1, 4, 5, 6])
    #expect(results.map { $0["status"]?.int64 } == [202, 400, 202, 400])
    #expect(results[1]["field"]?.string == "event")
    #expect(results[3]["field"]?.string == "productId")
    #expect(results[0]["id"]?.string?.isEmpty == false)
    #expect(gateway.producer.records.count == 2)

    let good = try gateway.send(
      "POST", "/v1/events", GatewayFixture.purchased("1") + "\n", type: "application/x-ndjson")
    #expect(good.status == 202)
    for bad in ["x\ny", "", "\n\n"] {
      #expect(try gateway.send("POST", "/v1/events", bad, type: "application/x-ndjson").status == 400)
    }
    let many = Array(repeating: GatewayFixture.purchased("1"), count: 101).joined(separator: "\n")
    #expect(try gateway.send("POST", "/v1/events", many, type: "application/x-ndjson").status == 413)
  }

  /// What was sent must not come back or go to a log: an answer may be kept where a proof may not (case C51).
  @Test func noAnswerQuotesWhatWasSent() throws {
    let seen = Mutex<[Gateway.Answered]>([])
    let gateway = try GatewayFixture(probes: .init(answered: { one in seen.withLock { $0.append(one) } }))
    let canary = "canary8f3a"
    let bodies = [
      canary, #"{"\#(canary)":1,"\#(canary)":2}"#, #"{"type":"\#(canary)"}"#,
      #"{"type":"payment.purchased","transactionId":"\#(canary)","signedTransaction":"\#(canary)"}"#,
      #"{"type":"payment.purchased","environment":"\#(canary)"}"#,
      #"{"type":"payment.failed","failure":{"code":"\#(canary)"}}"#,
      #"{"type":"payment.purchased","account":"\#(canary)/","transactionId":"1","signedTransaction":"\#(canary)"}"#,
      #"{"signedPayload":"\#(canary)","backfill":true}"#, #"{"signedPayload":["\#(canary)"]}"#,
    ]
    for body in bodies {
      for (path, type) in [
        ("/v1/events", "application/json"), ("/v1/events", "application/x-ndjson"), ("/v1/notifications", canary),
        ("/v1/events", canary), ("/v1/\(canary)", canary),
      ] {
        for token in [GatewayFixture.token, canary] {
          let answer = try gateway.send("POST", path, body, type: type, token: token)
          #expect(answer.status >= 400)
          let text = String(decoding: answer.answer.body, as: UTF8.self) + "\(answer.answer.headers)"
          #expect(!text.contains(canary), "\(path) answered \(answer.status)")
        }
      }
    }
    gateway.producer.set(.failing(LogFailure(.refused, canary)))
    let failed = try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1", extra: #","x":"\#(canary)""#))
    #expect(failed.status == 503)
    #expect(!String(decoding: failed.answer.body, as: UTF8.self).contains(canary))
    #expect(!seen.withLock { $0.map { "\($0)" }.joined() }.contains(canary))
  }

  @Test func otherPathsAndMethods() throws {
    let gateway = try GatewayFixture()
    #expect(try gateway.send("GET", "/v1/events").status == 405)
    #expect(try gateway.send("POST", "/v1/accounts/Production/u", "{}").status == 405)
    for path in ["/", "/v1", "/v2/events", "/v1/events/", "/v1/permits", "/livez/x"] {
      #expect(try gateway.send("GET", path).status == 404, "\(path)")
    }
  }
}
