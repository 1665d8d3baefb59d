import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesGateway
import PurchasesHTTPServer
import PurchasesJSON
import PurchasesTestKit
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct AnswerTests {
  let digest = SHA256.digest(GatewayFixture.transaction("1")).hex

  @Test func permitByProofInAllItsStates() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/permits/Production/\(GatewayFixture.account)/\(digest)"
    #expect(try gateway.send("GET", path).json == ["proof": .string(digest), "status": "pending"])
    gateway.permit(proof: digest, status: "finishable")
    let found = try gateway.send("GET", path)
    #expect(found.status == 200)
    #expect(
      found.json == [
        "proof": .string(digest), "status": "finishable", "content": "granted", "reason": "granted",
        "transactionId": "1", "productId": "coins", "event": "e1", "decidedAt": "1970-01-01T00:00:01.000Z",
      ])
    // The account's case, where it is a UUID, and the digest's don't matter; another account learns nothing.
    let loud = "/v1/permits/Production/\(GatewayFixture.account.uppercased())/\(digest.uppercased())"
    #expect(try gateway.send("GET", loud).json == found.json)
    #expect(try gateway.send("GET", "/v1/permits/Production/other/\(digest)").json?["status"] == "pending")
    #expect(
      try gateway.send("GET", "/v1/permits/Sandbox/\(GatewayFixture.account)/\(digest)").json?["status"] == "pending")
    #expect(try gateway.send("HEAD", path).answer.body.isEmpty)
  }

  @Test func permitByTransactionPrefersWhatIsDecided() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/permits/Production/\(GatewayFixture.account)?transaction=1"
    #expect(try gateway.send("GET", path).json?["status"] == "pending")
    gateway.permit(proof: "a", status: "pending", decidedAt: 9000)
    gateway.permit(proof: "b", status: "finishable", decidedAt: 2000)
    gateway.permit(proof: "c", status: "refused", decidedAt: 1000)
    #expect(try gateway.send("GET", path).json?["proof"] == "b")
    #expect(try gateway.send("GET", "/v1/permits/Production/u?transaction=1").json?["status"] == "pending")
    #expect(try gateway.send("GET", "/v1/permits/Production/u?transaction=").status == 400)
    #expect(try gateway.send("GET", "/v1/permits/Production/u").status == 400)
  }

  @Test func whoWasMergedIsAnsweredAsWhoTheyAreNow() throws {
    let gateway = try GatewayFixture()
    gateway.permit(proof: digest, status: "finishable")
    try gateway.account()
    for (from, to) in [("guest", GatewayFixture.account), ("first", "guest")] {
      let account = try #require(Account(from))
      gateway.store.put(Row(MergedAccount.key(.production, account), [.text(to)]))
    }
    for account in ["guest", "first"] {
      #expect(try gateway.send("GET", "/v1/permits/Production/\(account)/\(digest)").json?["status"] == "finishable")
      #expect(
        try gateway.send("GET", "/v1/permits/Production/\(account)?transaction=1").json?["proof"] == .string(digest))
      let answer = try gateway.send("GET", "/v1/accounts/Production/\(account)").json
      #expect(answer?["account"] == .string(GatewayFixture.account) && answer?["permits"]?.array?.count == 1)
    }
    // Of another environment they are strangers.
    #expect(try gateway.send("GET", "/v1/permits/Sandbox/guest/\(digest)").json?["status"] == "pending")
  }

  @Test func aWaitEndsWithTheDecision() throws {
    let gateway = try GatewayFixture()
    gateway.permit(proof: digest, status: "pending")
    let path = "/v1/permits/Production/\(GatewayFixture.account)/\(digest)?wait=40"
    let polls = onThreads(20) { _ in try? gateway.send("GET", path).json?["status"]?.string }
    while gateway.store.reads < 40 {}
    gateway.permit(proof: digest, status: "refused")
    #expect(polls.wait() == Array(repeating: "refused", count: 20))
  }

  @Test func anEventsAnswerBringsThePermitThatCameInTime() throws {
    let gateway = try GatewayFixture()
    let late = onThreads(1) { [digest] _ in
      while gateway.store.reads < 2 {}
      gateway.permit(proof: digest, status: "finishable")
    }
    let answer = try gateway.send("POST", "/v1/events?wait=40", GatewayFixture.purchased("1"))
    _ = late.wait()
    #expect(answer.status == 202)
    #expect(answer.json?["permit"]?["status"] == "finishable")
    let none = try gateway.send("POST", "/v1/events?wait=0.02", GatewayFixture.purchased("2"))
    #expect(none.status == 202)
    #expect(none.json?["permit"] == nil)
    gateway.store.fail(StoreFailure(.unavailable, "down"))
    #expect(try gateway.send("POST", "/v1/events?wait=1", GatewayFixture.purchased("3")).status == 202)
  }

  private func spent(_ asked: String, outcome: String = "done", account: String = GatewayFixture.account, name: String)
    -> Row
  {
    AnswerRow(
      kind: "spend", outcome: AnswerRow.Outcome(rawValue: outcome) ?? .done, reason: "spent", asked: asked, version: 7,
      source: "purchases.owned/0/1", recordedAt: Instant(milliseconds: 1000)
    ).row(RowKey(.answer, [.text("Production"), .text(account), .text(name)]))
  }

  private func spend(_ amount: Int, _ key: String) -> String {
    #"{"type":"credit.spend.requested","environment":"Production","account":"\#(GatewayFixture.account)","#
      + #""unit":"coins","amount":\#(amount),"idempotencyKey":"\#(key)"}"#
  }

  @Test func aSpendIsAnsweredAndAConflictIsTold() throws {
    let gateway = try GatewayFixture()
    let sent = try gateway.send("POST", "/v1/events", spend(30, "key 1/2"))
    #expect(sent.status == 202 && sent.json?["request"] == "spend:key 1/2" && sent.json?["permitUrl"] == nil)
    let path = try #require(sent.json?["answerUrl"]?.string)
    #expect(try gateway.send("GET", path).json?["outcome"] == "pending")
    gateway.store.put(spent("coins 30", name: "spend:key 1/2"))
    let answer = try gateway.send("GET", path)
    #expect(answer.status == 200 && answer.json?["outcome"] == "done" && answer.json?["asked"] == "coins 30")
    #expect(answer.json?["version"]?.int64 == 7 && answer.json?["conflict"] == nil)
    let same = try gateway.send("POST", "/v1/events?wait=20", spend(30, "key 1/2"))
    #expect(same.status == 202 && same.json?["answer"]?["outcome"] == "done")
    // Another amount under the key: stable, however it is asked, and the answer is that to the first.
    for _ in 0..<2 {
      let other = try gateway.send("POST", "/v1/events?wait=20", spend(31, "key 1/2"))
      #expect(other.status == 409 && other.json?["answer"]?["asked"] == "coins 30" && other.json?["conflict"] != nil)
      let url = try #require(other.json?["answerUrl"]?.string)
      let asked = try gateway.send("GET", url)
      #expect(asked.status == 409 && asked.json?["outcome"] == "done" && asked.json?["conflict"] != nil)
    }
    gateway.store.fail(StoreFailure(.unavailable, "down"))
    #expect(try gateway.send("POST", "/v1/events?wait=1", spend(1, "k")).status == 202)
    #expect(try gateway.send("GET", path).status == 503)
  }

  @Test func aMergedAccountIsStillAnswered() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/answers/Production/\(GatewayFixture.account)/spend:k"
    for (account, into) in [(GatewayFixture.account, "u2"), ("u2", "u3")] {
      gateway.store.put(Row(RowKey(.alias, [.text("Production"), .text(account)]), [.text(into)]))
    }
    #expect(try gateway.send("GET", path).json?["outcome"] == "pending")
    gateway.store.put(spent("coins 1", account: "u3", name: "from:\(GatewayFixture.account)/spend:k"))
    #expect(try gateway.send("GET", path).json?["asked"] == "coins 1")
    // What the account answered itself comes first.
    gateway.store.put(spent("coins 2", name: "spend:k"))
    #expect(try gateway.send("GET", path).json?["asked"] == "coins 2")
    #expect(try gateway.send("GET", "/v1/answers/Production/u9/x").json?["outcome"] == "pending")
    #expect(try gateway.send("GET", "/v1/answers/Production/u9/\(String(repeating: "x", count: 2000))").status == 400)
  }

  @Test func aLedgerIsReadLineByLine() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/accounts/Production/\(GatewayFixture.account)/ledger"
    #expect(try gateway.send("GET", path).json?["lines"]?.array == [])
    for (entry, debit, credit, amount, version) in [
      ("spend:a", "account", "spent", 80, 4), ("5/2", "store", "account", 100, 2), ("5/9", "account", "store", 100, 9),
    ] as [(String, String, String, Int64, Int64)] {
      gateway.store.put(
        Row(
          RowKey(.ledger, [.text("Production"), .text(GatewayFixture.account), .text("coins"), .text(entry)]),
          [.text(debit), .text(credit), .integer(amount), .integer(version), .integer(version * 1000)]))
    }
    let lines = try #require(try gateway.send("GET", path).json?["lines"]?.array)
    #expect(lines.map { $0["amount"]?.int64 } == [100, -80, -100])
    #expect(lines.map { $0["balance"]?.int64 } == [100, 20, -80])
    #expect(lines.map { $0["counterpart"]?.string } == ["store", "spent", "store"])
    let rest = try gateway.send("GET", path + "?after=2").json?["lines"]?.array
    #expect(rest?.map { $0["balance"]?.int64 } == [20, -80])
    #expect(try gateway.send("GET", path + "?after=x").status == 400)
  }

  @Test(arguments: ["-1", "x", "nan", "inf", ""])
  func aWaitMustBeANumber(wait: String) throws {
    let gateway = try GatewayFixture()
    let answer = try gateway.send("GET", "/v1/permits/Production/u/x?wait=\(wait)")
    #expect(answer.status == 400)
    #expect(answer.json?["field"] == "wait")
  }

  @Test func accountAtAnInstant() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/accounts/Production/\(GatewayFixture.account)"
    let empty = try gateway.send("GET", path)
    #expect(empty.json?["version"]?.int64 == 0)
    #expect(empty.json?["entitlements"]?.array == [])
    let now = FixedClock.instant
    let catalogue = try Catalogue(parsing: Array(#"{"version":"c1","products":[]}"#.utf8))
    var state = AccountState()
    for (name, end) in [("ended", 0), ("going", 1), ("lasting", nil)] as [(String, Int64?)] {
      let order = ManualOrder(
        entitlement: try #require(EntitlementID(name)),
        kind: .grant(until: end.map { now.advanced(byMilliseconds: $0) }),
        at: now.advanced(byMilliseconds: -1_000), orderID: name)
      _ = try state.apply(order, at: now.advanced(byMilliseconds: -1_000), catalogue).get()
    }
    _ = state.adjust(-80, try #require(CreditUnit("coins")), request: "order:debt")
    try gateway.account(state)
    gateway.permit(proof: digest, status: "finishable", decidedAt: now.milliseconds - 500)
    let answer = try gateway.send("GET", path)
    #expect(answer.json?["at"]?.string == now.rfc3339)
    #expect(answer.json?["version"]?.int64 == 3 && answer.json?["catalogueVersion"] == "c1")
    func names(_ answer: JSON?) -> [String] {
      (answer?["entitlements"]?.array ?? []).compactMap { $0["entitlement"]?.string }
    }
    #expect(names(answer.json) == ["going", "lasting"])
    #expect(answer.json?["balances"]?.array == [["unit": "coins", "amount": .integer(-80), "debt": .integer(80)]])
    #expect(answer.json?["permits"]?.array?.first?["status"] == "finishable")
    #expect(answer.json?["permitsAreComplete"]?.bool == true && answer.json?["waitingFor"]?.array == [])
    // Of an instant that is asked for, and of what was there by then.
    let past = try gateway.send("GET", path + "?at=\(now.advanced(byMilliseconds: -600).rfc3339)").json
    #expect(names(past) == ["ended", "going", "lasting"] && past?["permits"]?.array == [])
    #expect(past?["balances"]?.array == [], "the ledger has no line by then")
    let later = try gateway.send("GET", path + "?at=\(now.advanced(byMilliseconds: 1).rfc3339)").json
    #expect(names(later) == ["lasting"] && later?["permits"]?.array?.count == 1)
    #expect(try gateway.send("GET", path + "?at=noon").json?["field"] == "at")
  }

  /// Nothing was written about it but the answers to its proofs, all of them refused.
  @Test func anAnswerWithoutAllPermitsSaysSo() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/accounts/Production/\(GatewayFixture.account)"
    for number in 1...AccountQuestion.mostPermits { gateway.permit(proof: "p\(number)", status: "refused") }
    #expect(try gateway.send("GET", path).json?["permitsAreComplete"]?.bool == true)
    gateway.permit(proof: "p0", status: "refused")
    let answer = try gateway.send("GET", path).json
    #expect(answer?["permits"]?.array?.count == AccountQuestion.mostPermits)
    #expect(answer?["permitsAreComplete"]?.bool == false && answer?["version"]?.int64 == 0)
  }

  /// A catalogue that came since the gateway read them last is read when an account was settled by it.
  @Test func whoWasSettledByANewerCatalogueIsAnsweredByIt() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/accounts/Production/\(GatewayFixture.account)"
    gateway.store.put(
      Row(
        RowKey(.catalogue, [.text("c0")]),
        [.integer(0), .bytes(Array(#"{"version":"c0","products":[]}"#.utf8)), .integer(0)]))
    #expect(try gateway.send("GET", path).json?["catalogueVersion"] == nil)
    try gateway.account()
    #expect(try gateway.send("GET", path).json?["catalogueVersion"] == "c1")
    // What was read of one instant stays as it was, whatever comes meanwhile.
    let kept = try gateway.store.atOneInstant { reader throws(StoreFailure) in
      gateway.permit(proof: "later", status: "pending", decidedAt: 9000)
      return try reader.count(.permit)
    }
    #expect(try kept == 0 && gateway.store.count(.permit) == 1)
  }

  @Test func accountWithWhatAppleSays() throws {
    let gateway = try GatewayFixture()
    let path = "/v1/accounts/Production/\(GatewayFixture.account)"
    let sample = SampleTransaction("1", "pro.lifetime", .nonConsumable, signed: 10, purchased: 5)
    var row = ChainRow(environment: .production, originalTransaction: try #require(OriginalTransactionID("1")))
    row.account = Account(GatewayFixture.account)
    _ = row.keep(ChainRow.Kept(part: "once", rank: sample.revision.rank, signed: sample.part()))
    gateway.store.put(row.row)
    #expect(try gateway.send("GET", path).json?["chains"] == nil)
    #expect(try gateway.send("GET", path + "?chains=false").json?["chains"] == nil)
    let answer = try gateway.send("GET", path + "?chains=true")
    #expect(answer.json?["chains"]?.array?.map { $0["productId"]?.string } == ["pro.lifetime"])
    #expect(answer.json?["chainsAreComplete"]?.bool == true)
    #expect(try gateway.send("GET", path + "?chains=yes").json?["field"] == "chains")
  }

  @Test func wrongNamesInThePath() throws {
    let gateway = try GatewayFixture()
    #expect(try gateway.send("GET", "/v1/accounts/production/u").json?["field"] == "environment")
    #expect(try gateway.send("GET", "/v1/accounts/Production/a%2Fb").json?["field"] == "account")
    #expect(try gateway.send("GET", "/v1/permits/Production/u/").json?["field"] == "proof")
    #expect(gateway.store.reads == 0)
  }

  @Test func aStoreThatIsDownOrAbsent() throws {
    let gateway = try GatewayFixture()
    gateway.store.fail(StoreFailure(.unavailable, "postgres at db-3"))
    let down = try gateway.send("GET", "/v1/accounts/Production/u")
    #expect(down.status == 503)
    #expect(!String(decoding: down.answer.body, as: UTF8.self).contains("db-3"))
    let bare = try GatewayFixture(hasStore: false)
    #expect(try bare.send("GET", "/v1/accounts/Production/u").status == 501)
    #expect(try bare.send("POST", "/v1/events?wait=5", GatewayFixture.purchased("1")).status == 202)
  }

  @Test func notificationsAreKeptByteForByteAndNeedNoToken() throws {
    let gateway = try GatewayFixture()
    let payload = GatewayFixture.jws(
      #"{"notificationUUID":"0B4D9F7E-0000-4000-8000-000000000001","data":{"environment":"Sandbox","signedTransactionInfo":"\#(GatewayFixture.transaction("9", original: "8"))"}}"#
    )
    let body = "{ \"signedPayload\" : \"\(payload)\", \"later\": [1.50] }\n"
    let answer = try gateway.send("POST", "/v1/notifications", body, type: nil, token: nil)
    #expect(answer.status == 200)
    let record = try #require(gateway.producer.records.first)
    #expect(record.record.value == Array(body.utf8))
    #expect(record.record.key == Array("Sandbox/8".utf8))
    #expect(try Envelope(reading: record.record).type == .storeNotified)
    let again = try gateway.send("POST", "/v1/notifications", #"{"signedPayload":"\#(payload)"}"#, token: "wrong")
    #expect(again.json?["id"] == answer.json?["id"])
    // A signature that is no JWS at all is still not judged here.
    #expect(try gateway.send("POST", "/v1/notifications", #"{"signedPayload":"?"}"#, token: nil).status == 200)
    for bad in [
      "", "x", "[]", "{}", #"{"signedPayload":7}"#, #"{"signedPayload":""}"#, #"{"signedPayload":null}"#,
      #"{"signedPayload":"a","backfill":true}"#, #"{"signedPayload":"a","signedPayload":"b"}"#,
    ] {
      #expect(try gateway.send("POST", "/v1/notifications", bad, token: nil).status == 400, "\(bad)")
    }
    #expect(gateway.producer.records.count == 3)
  }

  @Test func healthAndMetrics() throws {
    let reasons = Mutex<[String]>([])
    let dead = Mutex<String?>(nil)
    let answered = Mutex<[Gateway.Answered]>([])
    let gateway = try GatewayFixture(
      probes: .init(
        dead: { dead.withLock { $0 } }, unready: { reasons.withLock { $0 } }, metrics: { "purchases_up 1\n" },
        answered: { one in answered.withLock { $0.append(one) } }))
    #expect(try gateway.send("GET", "/livez", token: nil).status == 200)
    #expect(try gateway.send("GET", "/readyz", token: nil).status == 200)
    let metrics = try gateway.send("GET", "/metrics", token: nil)
    #expect(metrics.answer.body == Array("purchases_up 1\n".utf8))
    #expect(metrics.answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8")
    reasons.withLock { $0 = ["the log cannot be reached", "the store is busy"] }
    dead.withLock { $0 = "stage entitlements stopped" }
    let unready = try gateway.send("GET", "/readyz", token: nil)
    #expect(unready.status == 503)
    #expect(unready.answer.body == Array("the log cannot be reached\nthe store is busy\n".utf8))
    #expect(try gateway.send("GET", "/livez", token: nil).status == 503)
    _ = try gateway.send("GET", "/v1/permits/Production/canary/canary")
    _ = try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1"))
    let seen = answered.withLock { $0 }
    #expect(seen.map(\.route) == ["/livez", "/readyz", "/metrics", "/readyz", "/livez", "/v1/permits", "/v1/events"])
    #expect(seen.last?.accepted == 1)
    #expect(!seen.map { "\($0)" }.joined().contains("canary"))
  }
}
