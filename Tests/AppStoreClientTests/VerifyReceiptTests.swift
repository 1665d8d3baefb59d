import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesLocalAppStore
import PurchasesTestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct VerifyReceiptTests {
  let apple: AppleFixture
  init() throws { apple = try AppleFixture() }

  private let answer = #"{"status":0,"environment":"%","receipt":{"bundle_id":"com.example.app","in_app":[]}}"#

  private func issue(_ receipt: String, _ environment: PurchasesCore.Environment, _ body: String) {
    apple.books.issue(receipt: receipt, in: environment, answer: Array(body.utf8))
  }

  private func trouble(_ outcome: ReceiptOutcome) -> ReceiptTrouble? {
    if case .undecided(let trouble) = outcome { trouble } else { nil }
  }

  private func valid(_ outcome: ReceiptOutcome) -> VerifyReceiptAnswer? {
    if case .valid(let answer) = outcome { answer } else { nil }
  }

  // MARK: The hop

  @Test func productionAnswersFirst() throws {
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    let found = try #require(valid(try apple.receipts().verify(receiptData: "cHJvZA==")))
    #expect(found.environment == .production)
    #expect(found.bundleID == "com.example.app")
    #expect(found.listsPurchases)
    #expect(!found.holdsPurchases)
    #expect(found.body == Array(answer.replacing("%", with: "Production").utf8))
  }

  @Test func aSandboxReceiptIsAskedForOnceMoreThere() throws {
    issue("c2FuZA==", .sandbox, answer.replacing("%", with: "Sandbox"))
    #expect(valid(try apple.receipts().verify(receiptData: "c2FuZA=="))?.environment == .sandbox)
    // A deployment of the sandbox alone begins there, and hops the other way.
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    #expect(valid(try apple.receipts(first: .sandbox).verify(receiptData: "c2FuZA=="))?.environment == .sandbox)
    #expect(valid(try apple.receipts(first: .sandbox).verify(receiptData: "cHJvZA=="))?.environment == .production)
  }

  /// C14: what the second side says counts as much as what the first says.
  @Test func theSecondAnswersStatusCounts() throws {
    let client = try apple.receipts()
    issue("c2FuZA==", .sandbox, answer.replacing("%", with: "Sandbox"))
    let sandbox = try #require(apple.servers.outages[.sandbox])
    sandbox.add(.receiptStatus(21_003, isRetryable: nil))
    guard case .rejected(let rejection) = client.verify(receiptData: "c2FuZA==") else {
      Issue.record("21003 of the sandbox is final")
      return
    }
    #expect(rejection.reason == .notAuthentic)
    #expect(rejection.side == .sandbox)
    sandbox.add(.receiptStatus(21_005, isRetryable: nil))
    #expect(trouble(client.verify(receiptData: "c2FuZA=="))?.reason == .unavailable)
    // Twice: on a kept connection libcurl tries once more by itself.
    sandbox.add(.reset, times: 2)
    #expect(trouble(client.verify(receiptData: "c2FuZA=="))?.reason == .unreachable)
    for status: Int64 in [21_008, 21_007] {
      sandbox.add(.receiptStatus(status, isRetryable: nil))
      let found = try #require(trouble(client.verify(receiptData: "c2FuZA==")))
      #expect(found.reason == .contradiction)
      #expect(!found.isRetryable)
    }
    // One hop: the answers above took all that was scripted, and nobody was asked a third time.
    #expect(valid(client.verify(receiptData: "c2FuZA==")) != nil)
    #expect(apple.alarms.kinds.contains(.contradiction))
  }

  @Test func aSilentSandboxIsPending() throws {
    issue("c2FuZA==", .sandbox, answer.replacing("%", with: "Sandbox"))
    let sandbox = try #require(apple.servers.outages[.sandbox])
    sandbox.add(.hang(seconds: 60))
    let found = try #require(trouble(try apple.receipts(seconds: 0.3).verify(receiptData: "c2FuZA==")))
    #expect(found.reason == .unreachable)
    #expect(found.side == .sandbox)
    #expect(found.isRetryable)
    sandbox.clear()
  }

  @Test func anAnswerThatNamesTheOtherEnvironmentIsAContradiction() throws {
    issue("cHJvZA==", .production, answer.replacing("%", with: "Sandbox"))
    #expect(trouble(try apple.receipts().verify(receiptData: "cHJvZA=="))?.reason == .contradiction)
  }

  // MARK: Statuses

  /// C15, by what came over the wire.
  @Test func statusesOverTheWire() throws {
    let client = try apple.receipts(failures: 1_000)
    let script = try #require(apple.servers.outages[.production])
    let expected: [(Int64, Bool?, ReceiptTrouble.Reason, StoreAlarm.Kind?)] = [
      (21_000, nil, .requestFault, .ourFault), (21_001, nil, .requestFault, .ourFault),
      (21_002, nil, .malformedOrBusy, nil), (21_004, nil, .wrongSecret, .credentials),
      (21_005, nil, .unavailable, nil), (21_009, nil, .unavailable, nil), (21_100, nil, .unavailable, nil),
      (21_150, true, .unavailable, nil), (21_199, false, .notRetryable, .notRetryable),
      (2, nil, .unknownStatus, .unknownStatus), (21_011, nil, .unknownStatus, .unknownStatus),
      (-1, nil, .unknownStatus, .unknownStatus),
    ]
    for (status, isRetryable, reason, alarm) in expected {
      let before = apple.alarms.kinds.count
      script.add(.receiptStatus(status, isRetryable: isRetryable), times: status == 21_002 ? 3 : 1)
      let found = try #require(trouble(client.verify(receiptData: "cHJvZA==")), "\(status)")
      #expect(found.reason == reason, "\(status)")
      #expect(found.status == status)
      #expect(apple.alarms.kinds.dropFirst(before) == (alarm.map { [$0] } ?? [])[...], "\(status)")
    }
    script.add(.receiptStatus(21_010, isRetryable: nil))
    guard case .rejected(let rejection) = client.verify(receiptData: "cHJvZA==") else {
      Issue.record("21010 is final")
      return
    }
    #expect(rejection.reason == .accountUnknown)
  }

  @Test func whatAppleCallsMalformedIsAskedAboutAFewTimes() throws {
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    let script = try #require(apple.servers.outages[.production])
    let client = try apple.receipts()
    script.add(.receiptStatus(21_002, isRetryable: nil), times: 2)
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
    #expect(apple.waits.milliseconds == [250, 500])
    script.add(.receiptStatus(21_002, isRetryable: nil), times: 4)
    #expect(trouble(client.verify(receiptData: "cHJvZA=="))?.reason == .malformedOrBusy)
    // Three times and no more: the fourth is left for this one.
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
    #expect(apple.waits.milliseconds == [250, 500, 250, 500, 250])
  }

  @Test(arguments: [#"{"status":"0"}"#, #"{"environment":"Production"}"#, #"{"status":null}"#, #"{"status":0.5}"#])
  func aStatusThatIsNoNumberGrantsNothing(body: String) throws {
    issue("cHJvZA==", .production, body)
    #expect(trouble(try apple.receipts().verify(receiptData: "cHJvZA=="))?.reason == .unknownStatus)
    #expect(apple.alarms.kinds == [.unknownStatus])
  }

  @Test func hyphensAndTextStandForTheSame() throws {
    issue("cHJvZA==", .production, #"{"status":21199,"is-retryable":"false"}"#)
    #expect(trouble(try apple.receipts().verify(receiptData: "cHJvZA=="))?.reason == .notRetryable)
  }

  // MARK: Outages

  /// C17: each kind of failure is told apart, counts for the breaker, and rings where it must.
  @Test func uselessAnswersArePendingAndRing() throws {
    let client = try apple.receipts(failures: 1_000)
    let script = try #require(apple.servers.outages[.production])
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    let expected: [(Outage, ReceiptTrouble.Reason, StoreAlarm.Kind?)] = [
      (.reset, .unreachable, nil), (.status(503), .httpStatus, nil), (.webPage, .unusableBody, .unusableBody),
      (.truncated, .unusableBody, .unusableBody), (.emptyObject, .unusableBody, .unusableBody),
      (.redirect(to: "https://127.0.0.1:1/steal"), .redirected, .redirected), (.status(413), .httpStatus, .ourFault),
      (.tooManyRequests(retryAfter: "30"), .httpStatus, .rateLimited),
    ]
    for (outage, reason, alarm) in expected {
      let before = apple.alarms.kinds.count
      script.add(outage)
      let found = try #require(trouble(client.verify(receiptData: "cHJvZA==")), "\(outage)")
      #expect(found.reason == reason, "\(outage)")
      #expect(found.isRetryable)
      #expect(apple.alarms.kinds.dropFirst(before) == (alarm.map { [$0] } ?? [])[...], "\(outage)")
      if case .tooManyRequests = outage {
        #expect(found.notBefore == apple.clock.now().advanced(byMilliseconds: 30_000))
      }
    }
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
  }

  @Test func anOutageKeepsCallersAwayAndRecoveryIsFound() throws {
    let client = try apple.receipts(failures: 3)
    let script = try #require(apple.servers.outages[.production])
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    script.add(.status(503), times: 4)
    for _ in 0..<3 { #expect(trouble(client.verify(receiptData: "cHJvZA=="))?.reason == .httpStatus) }
    #expect(apple.alarms.kinds == [.outage])
    let paused = try #require(trouble(client.verify(receiptData: "cHJvZA==")))
    #expect(paused.reason == .paused)
    #expect(paused.notBefore == apple.clock.now().advanced(byMilliseconds: 1_000))
    apple.clock.advance(milliseconds: 1_000)
    // The fourth scripted failure: the pause doubles.
    #expect(trouble(client.verify(receiptData: "cHJvZA=="))?.reason == .httpStatus)
    apple.clock.advance(milliseconds: 1_000)
    #expect(trouble(client.verify(receiptData: "cHJvZA=="))?.reason == .paused)
    apple.clock.advance(milliseconds: 1_000)
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
  }

  @Test func theSandboxMayFailAlone() throws {
    let client = try apple.receipts(failures: 1)
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    issue("c2FuZA==", .sandbox, answer.replacing("%", with: "Sandbox"))
    try #require(apple.servers.outages[.sandbox]).add(.status(500))
    #expect(trouble(client.verify(receiptData: "c2FuZA=="))?.reason == .httpStatus)
    #expect(trouble(client.verify(receiptData: "c2FuZA=="))?.reason == .paused)
    #expect(valid(client.verify(receiptData: "cHJvZA==")) != nil)
  }

  // MARK: The secret

  @Test func theSecretAndTheReceiptAreInNothingThatIsShown() throws {
    let client = try apple.receipts(failures: 2)
    let script = try #require(apple.servers.outages[.production])
    let receipt = "Y2FuYXJ5LXJlY2VpcHQ="
    var shown = ""
    let outages: [Outage] = [
      .status(503), .reset, .webPage, .truncated, .emptyObject, .redirect(to: "/x"),
      .receiptStatus(21_004, isRetryable: nil),
      .receiptStatus(77, isRetryable: nil), .receiptStatus(21_003, isRetryable: nil),
    ]
    for outage in outages {
      script.add(outage)
      let outcome = client.verify(receiptData: receipt)
      shown += "\(outcome) \(trouble(outcome)?.description ?? "")\n"
      dump(outcome, to: &shown)
      apple.clock.advance(milliseconds: 10_000)
    }
    dump(client, to: &shown)
    shown += apple.alarms.text
    #expect(shown.contains("web page"))
    for canary in [AppleFixture.secret, receipt] { #expect(!shown.contains(canary)) }
  }

  @Test func anotherSecretIsAConfigurationAlarm() throws {
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    let found = try #require(trouble(try apple.receipts(secret: "another").verify(receiptData: "cHJvZA==")))
    #expect(found.reason == .wrongSecret)
    #expect(apple.alarms.kinds == [.credentials])
  }

  @Test func connectionsAreUsedAgainAndManyMayAskAtOnce() throws {
    issue("cHJvZA==", .production, answer.replacing("%", with: "Production"))
    let client = try apple.receipts()
    let answers = onThreads(8) { _ in (0..<5).map { _ in client.verify(receiptData: "cHJvZA==") } }.wait().joined()
    #expect(answers.count == 40)
    #expect(answers.allSatisfy { valid($0) != nil })
  }

  @Test func nobodyIsAskedWhoIsNotTrusted() throws {
    let stranger = ReceiptClient(
      .init(hosts: BothSides(production: try apple.host(.production), sandbox: try apple.host(.sandbox))),
      clock: apple.clock)
    let found = try #require(trouble(stranger.verify(receiptData: "cHJvZA==")))
    #expect(found.reason == .unreachable)
    #expect(found.detail.contains("TLS"))
  }

  // MARK: The oldest receipts

  private func legacy(sandbox: Bool, expires: Int64? = nil) -> LegacyReceipt {
    var fields = [
      (name: "transaction-id", value: "1000000000000001"), (name: "original-transaction-id", value: "1000000000000001"),
      (name: "product-id", value: "coins.100"), (name: "quantity", value: "1"), (name: "bid", value: "com.example.app"),
      (name: "bvrs", value: "1.0"), (name: "purchase-date-ms", value: "1375340400000"),
      (name: "original-purchase-date-ms", value: "1375340400000"),
    ]
    if let expires { fields.append((name: "expires-date", value: String(expires))) }
    return LegacyReceipt(fields: fields, isSandbox: sandbox)
  }

  @Test func theOldestReceiptsAreOneTransaction() throws {
    let client = try apple.receipts()
    for sandbox in [false, true] {
      let found = try #require(valid(client.verify(receiptData: legacy(sandbox: sandbox).encoded(apple.authority))))
      #expect(found.environment == (sandbox ? .sandbox : .production))
      #expect(found.bundleID == "com.example.app")
      #expect(found.purchases.map(\.transaction) == ["1000000000000001"])
      #expect(found.purchases.first?.purchaseDate == Instant(milliseconds: 1_375_340_400_000))
      #expect(found.purchases.first?.quantity == 1)
    }
    let expired = legacy(sandbox: false, expires: 1_400_000_000_000)
    guard case .expired(let found) = client.verify(receiptData: expired.encoded(apple.authority)) else {
      Issue.record("21006 is genuine and expired")
      return
    }
    #expect(found.purchases.first?.expiresDate == Instant(milliseconds: 1_400_000_000_000))
    let forged = legacy(sandbox: false).encoded(LocalAuthority(seed: 12))
    guard case .rejected = client.verify(receiptData: forged) else {
      Issue.record("another store's receipt is not authentic")
      return
    }
  }
}
