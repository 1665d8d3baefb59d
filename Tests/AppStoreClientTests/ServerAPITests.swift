import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesTestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ServerAPITests {
  let apple: AppleFixture
  init() throws { apple = try AppleFixture() }

  private func id(_ text: String) throws -> TransactionID { try #require(TransactionID(text)) }

  private var one: TransactionID { get throws { try id("1") } }

  private func failure<Value>(_ body: () throws -> Value) -> ServerAPIFailure? {
    do {
      _ = try body()
      return nil
    } catch let error as ServerAPIFailure { return error } catch {
      Issue.record("another kind of error: \(error)")
      return nil
    }
  }

  // MARK: Reading

  @Test func aTransactionComesAsItWasSigned() throws {
    let signed = try apple.books.sell(apple.transaction("1"))
    #expect(try apple.api().transactionInfo(id("1")) == signed)
    #expect(failure { try apple.api(attempts: 1).transactionInfo(id("2")) }?.code == .transactionIDNotFound)
  }

  @Test func theIdGoesIntoThePathAndNowhereElse() throws {
    // Escaped: neither another path nor a query. The store reads it as one segment and knows no such id.
    for odd in ["1?x=1", "1#", "%2e%2e", "1&2", "é", "a.b"] {
      #expect(failure { try apple.api().transactionInfo(id(odd)) }?.code == .invalidTransactionID, "\(odd)")
    }
  }

  @Test func anIdOfDotsIsNotSent() throws {
    for odd in [".", ".."] {
      guard case .notSendable = failure({ try apple.api().transactionInfo(id(odd)) }) else {
        Issue.record("sent \(odd)")
        return
      }
    }
  }

  @Test func historyIsReadPageByPage() throws {
    let signed = try (1...45).map { try apple.books.sell(apple.transaction("\($0)")) }
    let api = try apple.api()
    var found: [String] = []
    var revision: String?
    var pages = 0
    repeat {
      let page = try api.transactionHistory(id("7"), revision: revision)
      found += page.signedTransactions
      revision = page.hasMore ? page.revision : nil
      pages += 1
    } while revision != nil
    #expect(pages == 3)
    #expect(found == signed)
    var filter = TransactionFilter()
    filter.isNewestFirst = true
    filter.products = ["coins.100", "a&b"]
    #expect(try api.transactionHistory(id("7"), filter: filter).signedTransactions.first == signed.last)
    filter.products = ["nothing"]
    #expect(try api.transactionHistory(id("7"), filter: filter).signedTransactions == [])
    #expect(failure { try api.transactionHistory(id("7"), revision: "r-zzz") }?.code?.name == "InvalidRequestRevision")
  }

  @Test func refundsAppTransactionsOrdersAndStatuses() throws {
    let now = apple.clock.now().milliseconds
    try apple.books.sell(apple.transaction("1"), order: "MQ12/34")
    let refunded = try apple.books.sell(apple.transaction("2", extra: #","revocationDate":\#(now)"#))
    let period = try apple.books.sell(
      apple.transaction("3", extra: #","expiresDate":\#(now + 1000),"subscriptionGroupIdentifier":"g""#))
    try apple.books.note(
      renewal: Array(#"{"originalTransactionId":"3","environment":"Production","signedDate":1}"#.utf8))
    try apple.books.note(appTransaction: Array(#"{"appTransactionId":"7001","receiptType":"Production"}"#.utf8))
    let api = try apple.api()
    #expect(try api.refundHistory(id("1")).signedTransactions == [refunded])
    #expect(try api.appTransactionInfo(id("1")).split(separator: ".").count == 3)
    let order = try api.lookUpOrder("MQ12/34")
    #expect(order.isValid)
    #expect(order.signedTransactions.count == 1)
    #expect(try !api.lookUpOrder("unknown").isValid)
    let statuses = try api.subscriptionStatuses(id("1"))
    #expect(statuses.map(\.originalTransaction) == ["3"])
    #expect(statuses.first?.group == "g")
    #expect(statuses.first?.status == 1)
    #expect(statuses.first?.signedTransactionInfo == period)
    #expect(statuses.first?.signedRenewalInfo != nil)
    #expect(try api.subscriptionStatuses(id("1"), statuses: [2, 5]) == [])
  }

  @Test func notificationsAreReadPageByPageWithTheirFate() throws {
    let now = apple.clock.now()
    let signed = try (0..<43).map { number in
      try apple.books.send(
        apple.notification(number), at: now.advanced(byMilliseconds: Int64(number)),
        attempts: [.init(at: now, result: number % 2 == 0 ? "SUCCESS" : "TIMED_OUT")])
    }
    apple.clock.advance(milliseconds: 1_000)
    let api = try apple.api()
    var filter = NotificationFilter(from: now, to: now.advanced(byMilliseconds: 1_000))
    let first = try api.notificationHistory(filter)
    #expect(first.hasMore)
    #expect(first.notifications.map(\.signedPayload) == Array(signed.prefix(20)))
    #expect(first.notifications.map { $0.attempts.first?.succeeded } == (0..<20).map { $0 % 2 == 0 })
    let second = try api.notificationHistory(filter, paginationToken: first.paginationToken)
    #expect(second.notifications.map(\.signedPayload) == Array(signed[20..<40]))
    filter.onlyFailures = true
    #expect(try api.notificationHistory(filter).notifications.count == 20)
    filter = NotificationFilter(from: now.advanced(byMilliseconds: -181 * 86_400_000), to: now)
    #expect(failure { try api.notificationHistory(filter) }?.code == .startDateTooFarInPast)
    #expect(
      failure { try api.notificationHistory(NotificationFilter(from: now, to: now)) }
        == .notSendable("the history's start must be before its end"))
  }

  @Test func testNotifications() throws {
    let api = try apple.api(.sandbox)
    let token = try api.requestTestNotification()
    let sent = try api.testNotificationStatus(token)
    #expect(sent.signedPayload.split(separator: ".").count == 3)
    #expect(failure { try api.testNotificationStatus("no/such?token") }?.code == .testNotificationNotFound)
  }

  // MARK: Sending

  @Test func whatIsSentArrives() throws {
    try apple.books.sell(apple.transaction("1"))
    let now = apple.clock.now().milliseconds
    try apple.books.sell(apple.transaction("2", extra: #","expiresDate":\#(now + 1000)"#))
    let api = try apple.api()
    let original = try #require(OriginalTransactionID("2"))
    try api.sendConsumption(
      ConsumptionInformation(
        consent: CustomerConsent(onRecord: "consent-7"), delivery: .delivered, sampleProvided: false, consumed: 25_000,
        preference: .grantProrated), of: id("1"))
    try api.setAccountToken("7F9C24E5-1C7A-4F0E-9A64-0D6C3B0C2F11", of: original)
    let longer = try api.extendRenewal(of: original, byDays: 30, reason: .serviceOutage, requestID: "r1")
    #expect(longer.effectiveDate?.milliseconds == now + 1000 + 30 * 86_400_000)
    try api.finish(FinishPermit(transaction: id("1"), permittedBy: "event-1"))
    let told = apple.books.told(.production)
    #expect(told.map(\.call) == ["consumption", "appAccountToken", "extend", "finish"])
    #expect(
      String(decoding: told[0].body, as: UTF8.self)
        == #"{"customerConsented":true,"deliveryStatus":"DELIVERED","sampleContentProvided":false,"#
        + #""consumptionPercentage":25000,"refundPreference":"GRANT_PRORATED"}"#)
    #expect(
      String(decoding: told[1].body, as: UTF8.self) == #"{"appAccountToken":"7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"}"#)
    #expect(
      String(decoding: told[2].body, as: UTF8.self)
        == #"{"extendByDays":30,"extendReasonCode":3,"requestIdentifier":"r1"}"#)
    #expect(told[3].body.isEmpty)
  }

  @Test func whatAppleWouldRefuseIsNotSent() throws {
    try apple.books.sell(apple.transaction("1"))
    let api = try apple.api()
    let consent = CustomerConsent(onRecord: "c")
    for information in [
      ConsumptionInformation(consent: consent, delivery: .delivered, sampleProvided: true, consumed: 100_001),
      ConsumptionInformation(consent: consent, delivery: .delivered, sampleProvided: true, consumed: -1),
      ConsumptionInformation(consent: consent, delivery: .wrongItem, sampleProvided: true, consumed: 1),
    ] {
      guard case .notSendable = failure({ try api.sendConsumption(information, of: one) }) else {
        Issue.record("sent \(information)")
        return
      }
    }
    let original = try #require(OriginalTransactionID("1"))
    for days: Int64 in [0, 91] {
      guard
        case .notSendable = failure({
          try api.extendRenewal(of: original, byDays: days, reason: .other, requestID: "r")
        })
      else {
        Issue.record("sent \(days) days")
        return
      }
    }
    guard case .notSendable = failure({ try api.setAccountToken("user-1", of: original) }) else {
      Issue.record("sent a token that is no UUID")
      return
    }
    #expect(apple.books.told(.production).isEmpty)
  }

  /// An extension that may have been granted is not asked for a second time.
  @Test func whatCountsTwiceIsSentOnce() throws {
    let now = apple.clock.now().milliseconds
    try apple.books.sell(apple.transaction("2", extra: #","expiresDate":\#(now + 1000)"#))
    try #require(apple.servers.outages[.production]).add(.reset, on: "/inApps/v1/subscriptions/extend")
    let api = try apple.api()
    let original = try #require(OriginalTransactionID("2"))
    // There is a kept connection now, on which libcurl would send a second time by itself.
    _ = try api.transactionInfo(id("2"))
    guard
      case .unreachable = failure({ try api.extendRenewal(of: original, byDays: 1, reason: .other, requestID: "r") })
    else {
      Issue.record("tried again")
      return
    }
    #expect(apple.waits.milliseconds.isEmpty)
    #expect(apple.books.told(.production).isEmpty)
    _ = try api.extendRenewal(of: original, byDays: 1, reason: .other, requestID: "r")
    #expect(apple.books.told(.production).count == 1)
  }

  @Test func aBrokenConnectionIsTriedAgain() throws {
    let signed = try apple.books.sell(apple.transaction("1"))
    // The first call has no kept connection, so libcurl itself repeats nothing.
    try #require(apple.servers.outages[.production]).add(.reset)
    #expect(try apple.api().transactionInfo(id("1")) == signed)
    #expect(apple.waits.milliseconds == [250])
  }

  // MARK: Tokens

  @Test func onlyAKeyThatAppleKnowsIsTaken() throws {
    try apple.books.sell(apple.transaction("1"))
    let stranger = P256PrivateKey(seed: [9, 9, 9]).key.pem
    for key in [try apple.key(p8: stranger), try apple.key(issuer: "another"), try apple.key(id: "OTHERKEY01")] {
      #expect(failure { try apple.api(key: key).transactionInfo(one) } == .unauthorized)
    }
    #expect(apple.alarms.kinds == [.credentials, .credentials, .credentials])
    #expect(throws: KeyError.self) { try apple.key(p8: "no key") }
  }

  @Test func tokensAreRenewedBeforeTheyEnd() throws {
    try apple.books.sell(apple.transaction("1"))
    let api = try apple.api()
    for _ in 0..<20 {
      _ = try api.transactionInfo(id("1"))
      // The store refuses a token that has expired, by the same clock.
      apple.clock.advance(milliseconds: 7 * 60_000)
    }
    #expect(apple.alarms.kinds.isEmpty)
  }

  @Test func keyAndTokenAreInNothingThatIsShown() throws {
    try apple.books.sell(apple.transaction("1"))
    let key = try apple.key()
    let api = try apple.api(attempts: 1, key: key)
    let script = try #require(apple.servers.outages[.production])
    var shown = "\(key) \(String(reflecting: key))"
    for outage in [Outage.status(500), .reset, .webPage, .truncated, .emptyObject, .apiError(4_040_010), .status(403)] {
      script.add(outage)
      let found = failure { try api.transactionInfo(one) }
      shown += "\n\(String(describing: found)) \(String(reflecting: found))"
    }
    dump(key, to: &shown)
    dump(api, to: &shown)
    shown += apple.alarms.text
    #expect(shown.contains("unusable-body"))
    // A token begins with its header in base64url; a key has its armour.
    for canary in [
      "eyJ", "PRIVATE KEY", "Bearer ", String(apple.servers.credentials.p8.split(separator: "\n")[1].prefix(20)),
    ] {
      #expect(!shown.contains(canary), "\(canary)")
    }
  }

  // MARK: Outages and limits

  @Test func aCallIsTriedAgainAfterGrowingPauses() throws {
    let signed = try apple.books.sell(apple.transaction("1"))
    let script = try #require(apple.servers.outages[.production])
    let api = try apple.api(failures: 1_000)
    for outage in [Outage.status(503), .webPage, .truncated, .apiError(5_000_001), .apiError(4_040_006)] {
      script.add(outage, times: 2)
      #expect(try api.transactionInfo(id("1")) == signed, "\(outage)")
    }
    #expect(apple.waits.milliseconds == Array(repeating: [250, 500], count: 5).flatMap { $0 })
    script.add(.status(503), times: 3)
    guard case .unavailable(503, nil, nil) = failure({ try api.transactionInfo(one) }) else {
      Issue.record("a fourth try")
      return
    }
    // What is final is not tried again.
    script.add(.apiError(4_000_006))
    #expect(failure { try api.transactionInfo(one) }?.code == .invalidTransactionID)
    script.add(.apiError(4_123_456))
    let unknown = try #require(failure { try api.transactionInfo(one) })
    #expect(unknown.code?.rawValue == 4_123_456)
    #expect(!unknown.isRetryable)
  }

  @Test func emptyAnswersAndRedirectsAreUseless() throws {
    try apple.books.sell(apple.transaction("1"))
    let script = try #require(apple.servers.outages[.production])
    let api = try apple.api(attempts: 1, failures: 1_000)
    script.add(.emptyObject)
    guard case .unusableBody = failure({ try api.transactionInfo(one) }) else {
      Issue.record("{} is no transaction")
      return
    }
    script.add(.redirect(to: "https://127.0.0.1:1/steal"))
    #expect(failure { try api.transactionInfo(one) } == .redirected(status: 302))
    #expect(apple.alarms.kinds == [.unusableBody, .redirected])
  }

  @Test(arguments: ["5", "", "Sun, 30 Nov 2025 00:00:05 GMT"])
  func retryAfterIsHonoured(header: String) throws {
    let signed = try apple.books.sell(apple.transaction("1"))
    let start = apple.clock.now()
    // Apple's own form: milliseconds since 1970.
    let text = header.isEmpty ? String(start.milliseconds + 5_000) : header
    try #require(apple.servers.outages[.production]).add(.tooManyRequests(retryAfter: text))
    #expect(try apple.api().transactionInfo(id("1")) == signed)
    #expect(apple.clock.now().milliseconds - start.milliseconds == 5_000)
    #expect(apple.alarms.kinds == [.rateLimited])
  }

  @Test func whoWouldWaitTooLongIsTold() throws {
    try apple.books.sell(apple.transaction("1"))
    let script = try #require(apple.servers.outages[.production])
    let api = try apple.api(longestWait: 10_000)
    let until = apple.clock.now().advanced(byMilliseconds: 3_600_000)
    script.add(.tooManyRequests(retryAfter: "3600"))
    #expect(failure { try api.transactionInfo(one) } == .rateLimited(until: until))
    // Nobody asks again before: nothing more is scripted, and still no answer comes.
    #expect(failure { try api.transactionInfo(one) } == .rateLimited(until: until))
    // Another kind of call is counted apart.
    #expect(try api.refundHistory(id("1")).signedTransactions == [])
    apple.clock.set(until)
    #expect(try api.transactionInfo(id("1")).count > 10)
  }

  @Test func anOutageKeepsCallersAway() throws {
    try apple.books.sell(apple.transaction("1"))
    try #require(apple.servers.outages[.production]).add(.status(502), times: 3)
    let api = try apple.api(attempts: 1, failures: 3)
    for _ in 0..<3 { _ = failure { try api.transactionInfo(one) } }
    guard case .paused(let until) = failure({ try api.transactionInfo(one) }) else {
      Issue.record("called in an outage")
      return
    }
    apple.clock.set(until)
    #expect(try !api.transactionInfo(id("1")).isEmpty)
    #expect(apple.alarms.kinds == [.outage])
  }
}
