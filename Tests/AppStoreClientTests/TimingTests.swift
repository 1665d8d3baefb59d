import PurchasesCore
import PurchasesCryptography
import Testing

@testable import PurchasesAppStoreClient

/// When the next call may go.
struct TimingTests {
  let now = Instant(milliseconds: 1_764_460_800_000)

  private func wait(_ header: String?) -> Int64? {
    RetryAfter.instant(header, now: now).map { $0.milliseconds - now.milliseconds }
  }

  @Test func retryAfterInEachOfItsForms() {
    #expect(wait("120") == 120_000)
    #expect(wait(" 0 ") == 0)
    // Apple's form on 429: milliseconds since 1970; and seconds since 1970, should anybody send them.
    #expect(wait("1764460805000") == 5_000)
    #expect(wait("1764460805") == 5_000)
    // 2025-11-30T00:00:00Z is now.
    #expect(wait("Sun, 30 Nov 2025 00:00:07 GMT") == 7_000)
    #expect(wait("Sunday, 30-Nov-25 00:00:07 GMT") == 7_000)
    #expect(wait("Sun Nov 30 00:00:07 2025") == 7_000)
  }

  @Test func retryAfterIsNeverInThePastAndNeverForEver() {
    #expect(wait("Sun, 06 Nov 1994 08:49:37 GMT") == 0)
    #expect(wait("1000000000000") == 0)
    #expect(wait("999999999") == RetryAfter.longest)
    #expect(wait("9223372036854775807") == RetryAfter.longest)
    #expect(wait("Fri, 31 Dec 9999 23:59:59 GMT") == RetryAfter.longest)
  }

  @Test(arguments: [
    nil, "", "soon", "-5", "12.5", "99999999999999999999", "Sun, 30 Feb 2025 00:00:07 GMT",
    "Sun, 30 Nov 2025 00:00 GMT",
    "Sun, 30 Nov 2025 00:00:07 CET", "Sun, 30 Nuv 2025 00:00:07 GMT", "2025-11-30T00:00:07Z", "0x10", "1e3",
  ])
  func whatCannotBeReadIsNothing(header: String?) {
    #expect(wait(header) == nil)
  }

  private func go(_ breaker: CircuitBreaker, _ at: Int64) -> CircuitBreaker.Ticket? {
    if case .go(let ticket) = breaker.admit(now.advanced(byMilliseconds: at)) { ticket } else { nil }
  }

  @Test func theBreakerOpensAfterFailuresInARowAndItsPausesGrow() throws {
    let breaker = CircuitBreaker(.init(failures: 3, firstPause: 100, longestPause: 350))
    for _ in 0..<2 { #expect(!breaker.failed(try #require(go(breaker, 0)), now)) }
    breaker.succeeded()
    for _ in 0..<2 { #expect(!breaker.failed(try #require(go(breaker, 0)), now)) }
    #expect(breaker.failed(try #require(go(breaker, 0)), now))
    var time: Int64 = 0
    for pause: Int64 in [100, 200, 350, 350] {
      #expect(go(breaker, time + pause - 1) == nil)
      time += pause
      let probe = try #require(go(breaker, time))
      // One call finds out, the others wait for it.
      #expect(go(breaker, time) == nil)
      #expect(breaker.failed(probe, now.advanced(byMilliseconds: time)))
    }
    let probe = try #require(go(breaker, time + 350))
    _ = probe
    breaker.succeeded()
    #expect(go(breaker, time + 350) != nil)
    #expect(breaker.pausedUntil(now) == nil)
  }

  @Test func callsThatWereOnTheirWayDoNotMakeThePauseLonger() throws {
    let breaker = CircuitBreaker(.init(failures: 1, firstPause: 100, longestPause: 10_000))
    let tickets = try (0..<50).map { _ in try #require(go(breaker, 0)) }
    #expect(breaker.failed(tickets[0], now))
    for ticket in tickets.dropFirst() { #expect(!breaker.failed(ticket, now)) }
    #expect(go(breaker, 100) != nil)
  }

  @Test func aClockThatIsSetBackMakesNoPauseLonger() throws {
    let breaker = CircuitBreaker(.init(failures: 1, firstPause: 100, longestPause: 10_000))
    breaker.failed(try #require(go(breaker, 0)), now)
    #expect(go(breaker, -3_600_000) == nil)
    #expect(go(breaker, -3_600_000 + 100) != nil)
  }

  @Test func theGovernorKeepsTheRate() throws {
    let governor = RateGovernor(.production)
    var goes: [Int64] = []
    for _ in 0..<600 {
      let at = try governor.reserve(.transactionInfo, now, within: 60_000).get()
      goes.append(at.milliseconds - now.milliseconds)
    }
    // Five seconds' worth at once, then fifty a second.
    #expect(goes.count { $0 == 0 } == 250)
    #expect(goes.last == 7_000)
    #expect(goes == goes.sorted())
    // Another family is counted apart.
    #expect(try governor.reserve(.notificationHistory, now, within: 0).get() == now)
  }

  @Test func theSandboxIsTenTimesSlowerAndOneCallIsAlwaysAtHand() throws {
    let governor = RateGovernor(.sandbox)
    #expect(try governor.reserve(.requestTest, now, within: 0).get() == now)
    guard case .failure(let closed) = governor.reserve(.requestTest, now, within: 1_000) else {
      Issue.record("a second call within ten seconds")
      return
    }
    #expect(closed.until.milliseconds - now.milliseconds == 10_000)
    let later = now.advanced(byMilliseconds: 10_000)
    #expect(try governor.reserve(.requestTest, later, within: 0).get() == later)
  }

  @Test func whatAppleClosesStaysClosedForEachClientOfTheKey() throws {
    let governor = RateGovernor.shared(keyID: "closing", side: .production)
    governor.close(.finish, until: now.advanced(byMilliseconds: 5_000))
    let same = RateGovernor.shared(keyID: "closing", side: .production)
    #expect(same === governor)
    #expect(same !== RateGovernor.shared(keyID: "closing", side: .sandbox))
    guard case .failure = same.reserve(.finish, now, within: 4_999) else {
      Issue.record("open before its time")
      return
    }
    #expect(try same.reserve(.finish, now, within: 5_000).get() == now.advanced(byMilliseconds: 5_000))
  }

  @Test func aTokenIsUsedAgainWhileItIsFreshAndRenewedEarly() throws {
    let tokens = BearerTokens(
      try APIKey(issuerID: "issuer", keyID: "K", bundleID: "b", p8: P256PrivateKey(seed: [1]).key.pem))
    let first = tokens.token(now)
    #expect(tokens.token(now.advanced(byMilliseconds: 14 * 60_000)) == first)
    let second = tokens.token(now.advanced(byMilliseconds: 15 * 60_000))
    #expect(second != first)
    // A clock set back: the token in hand has not been issued yet.
    #expect(tokens.token(now) == first)
    #expect("\(first)" == "***")
  }
}
