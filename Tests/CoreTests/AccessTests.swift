import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Access as a plain function of facts, catalogue and time: each product type, and the instants at which it turns.
@Suite struct AccessTests {
  static let catalogue: Catalogue = {
    do {
      return try Catalogue(
        parsing: Array(
          #"""
          {"version": "1", "products": [
            {"id": "coins", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
            {"id": "pro", "type": "non-consumable", "entitlements": ["pro"]},
            {"id": "gold", "type": "auto-renewable", "group": "g", "level": 1, "entitlements": ["gold", "member"]},
            {"id": "silver", "type": "auto-renewable", "group": "g", "level": 2, "entitlements": ["silver", "member"]},
            {"id": "season", "type": "non-renewing", "duration": "PT1S", "entitlements": ["season"]},
            {"id": "long", "type": "non-renewing", "duration": "PT3S", "entitlements": ["season", "extra"]}]}
          """#.utf8))
    } catch { preconditionFailure("\(error)") }
  }()

  private func facts(_ samples: [SampleTransaction], _ renewals: [SampleRenewal] = []) -> AccountFacts {
    var facts = AccountFacts()
    for sample in samples { _ = facts.fold(sample.revision) }
    for renewal in renewals { _ = facts.fold(renewal.revision) }
    return facts
  }

  private func active(_ facts: AccountFacts, at instant: Int64) -> [String] {
    Access.active(facts, Self.catalogue, at: Instant(milliseconds: instant)).map(\.entitlement.text)
  }

  private func end(_ facts: AccountFacts, _ entitlement: String, at instant: Int64) -> Int64? {
    Access.active(facts, Self.catalogue, at: Instant(milliseconds: instant))
      .first { $0.entitlement.text == entitlement }?.state.endsAt?.milliseconds
  }

  private func period(
    _ id: String, _ product: String, _ start: Int64, _ end: Int64, signed: Int64? = nil, revoked: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      id, original: "1", product, .autoRenewable, signed: signed ?? start, purchased: start, expires: end,
      lineItem: "9\(id)", revoked: revoked)
  }

  @Test func subscriptionHoldsUntilItsEnd() {
    let facts = facts([period("1", "gold", 1000, 2000)])
    #expect(active(facts, at: 999) == [])
    #expect(active(facts, at: 1000) == ["gold", "member"])
    #expect(active(facts, at: 1999) == ["gold", "member"])
    #expect(active(facts, at: 2000) == [])
    #expect(end(facts, "gold", at: 1000) == 2000)
  }

  @Test func renewalsThatTouchAreOneStretch() {
    let facts = facts([
      period("1", "gold", 1000, 2000), period("2", "gold", 2000, 3000), period("3", "gold", 3500, 4000),
    ])
    #expect(end(facts, "gold", at: 1500) == 3000)
    #expect(active(facts, at: 2000) == ["gold", "member"])
    #expect(active(facts, at: 3000) == [])
    #expect(active(facts, at: 3500) == ["gold", "member"])
  }

  /// C24: the grace date is the end of a period in grace.
  @Test(arguments: [(999, true), (1000, true), (1500, true), (1999, true), (2000, false), (2001, false)])
  func grace(_ instant: Int, _ holds: Bool) {
    let facts = facts([period("1", "gold", 100, 1000)], [SampleRenewal("1", "gold", signed: 1000, grace: 2000)])
    #expect(active(facts, at: Int64(instant)).contains("gold") == holds)
  }

  @Test func graceBelongsToTheLastPeriodOfItsTime() {
    // Recovered at 1800: the next period goes on from there, and old grace doesn't lengthen it.
    let renewal = SampleRenewal("1", "gold", signed: 1000, grace: 2000)
    let recovered = facts([period("1", "gold", 100, 1000), period("2", "gold", 1800, 1900)], [renewal])
    #expect(active(recovered, at: 1700).contains("gold"))
    #expect(!active(recovered, at: 1900).contains("gold"))
    // Newer renewal info without grace ends it.
    let over = facts([period("1", "gold", 100, 1000)], [renewal, SampleRenewal("1", "gold", signed: 1200)])
    #expect(!active(over, at: 1000).contains("gold"))
  }

  @Test func upgradeEndsTheLowerLevelAtOnce() {
    let facts = facts([period("1", "silver", 1000, 9000), period("2", "gold", 3000, 9500)])
    #expect(active(facts, at: 2999) == ["member", "silver"])
    #expect(active(facts, at: 3000) == ["gold", "member"])
    #expect(end(facts, "silver", at: 2000) == 3000)
    #expect(end(facts, "member", at: 2000) == 9500)
  }

  @Test func downgradeWaitsForThePeriodsEnd() {
    let facts = facts([period("1", "gold", 1000, 2000), period("2", "silver", 2000, 3000)])
    #expect(active(facts, at: 1999) == ["gold", "member"])
    #expect(active(facts, at: 2000) == ["member", "silver"])
  }

  @Test func refundOfOnePeriodLeavesTheOthers() {
    let facts = facts([
      period("1", "gold", 1000, 2000), period("2", "gold", 2000, 3000, signed: 2500, revoked: 2400),
      period("3", "gold", 3000, 4000),
    ])
    #expect(active(facts, at: 2399).contains("gold"))
    #expect(!active(facts, at: 2400).contains("gold"))
    #expect(active(facts, at: 3000).contains("gold"))
  }

  /// C26: any revocation date revokes, whatever the type; what Apple moves later moves nothing back.
  @Test(arguments: ["pro", "gold", "season"])
  func revocation(_ product: String) {
    let type = Self.catalogue[ProductID(product)!]!.terms.type
    var sample = SampleTransaction(
      "1", product, type, signed: 1500, purchased: 1000, expires: type == .autoRenewable ? 9000 : nil, revoked: 1400)
    #expect(active(facts([sample]), at: 1399).contains(product))
    #expect(!active(facts([sample]), at: 1400).contains(product))
    sample.revoked = 8000
    #expect(!active(facts([sample]), at: 1600).contains(product))
  }

  @Test func oneTimePurchaseKeepsItsFirstDateThroughRestores() {
    var restored = SampleTransaction("2", original: "1", "season", .nonRenewing, signed: 1900, purchased: 1900)
    restored.originallyPurchased = 1000
    let facts = facts([SampleTransaction("1", "season", .nonRenewing, signed: 1000, purchased: 1000), restored])
    #expect(facts.purchases.count == 1)
    #expect(active(facts, at: 1999) == ["season"])
    #expect(active(facts, at: 2000) == [])
  }

  @Test func nonRenewingPeriodsStack() {
    let facts = facts([
      SampleTransaction("1", "season", .nonRenewing, signed: 1000, purchased: 1000, quantity: 2),
      SampleTransaction("2", "long", .nonRenewing, signed: 1500, purchased: 1500),
      SampleTransaction("3", "season", .nonRenewing, signed: 7000, purchased: 7000),
    ])
    // Two seconds from 1000, three more from 3000, and one after a gap; `extra` comes with the long one only.
    #expect(end(facts, "season", at: 1000) == 6000)
    #expect(active(facts, at: 1500) == ["extra", "season"])
    #expect(end(facts, "extra", at: 1500) == 4500)
    #expect(active(facts, at: 6000) == [])
    #expect(end(facts, "season", at: 7000) == 8000)
  }

  @Test func refundedSeasonHasUsedUpWhatLayBeforeItsRefund() {
    let facts = facts([
      SampleTransaction("1", "season", .nonRenewing, signed: 1400, purchased: 1000, revoked: 1300),
      SampleTransaction("2", "season", .nonRenewing, signed: 1200, purchased: 1200),
    ])
    #expect(end(facts, "season", at: 1200) == 2300)
  }

  @Test func unionOverChains() {
    let facts = facts([
      period("1", "gold", 1000, 2000),
      SampleTransaction(
        "5", original: "5", "silver", .autoRenewable, signed: 1500, purchased: 1500, expires: 4000, lineItem: "95"),
    ])
    #expect(active(facts, at: 1600) == ["gold", "member", "silver"])
    #expect(end(facts, "member", at: 1600) == 4000)
  }

  @Test func ordersGrantAndRevoke() {
    var facts = facts([period("1", "gold", 1000, 9000)])
    let gold = EntitlementID("gold")!
    func order(_ id: String, _ kind: ManualOrder.Kind, at instant: Int64) -> Bool {
      facts.fold(ManualOrder(entitlement: gold, kind: kind, at: Instant(milliseconds: instant), orderID: id))
    }
    let steps = [
      order("o1", .revoke(until: nil), at: 3000), order("o2", .grant(until: Instant(milliseconds: 5000)), at: 4000),
      order("o3", .revoke(until: nil), at: 4500), order("o1", .revoke(until: nil), at: 4600),
    ]
    #expect(steps == [true, true, true, false])
    for (instant, holds) in [(2999, true), (3000, false), (3999, false), (4000, true), (4499, true), (4500, false)] {
      #expect(active(facts, at: Int64(instant)).contains("gold") == holds, "\(instant)")
      #expect(active(facts, at: Int64(instant)).contains("member"))
    }
    // A period that begins after the orders grants again.
    _ = facts.fold(period("2", "gold", 9000, 10_000).revision)
    #expect(active(facts, at: 9000) == ["gold", "member"])
  }

  @Test func unknownAndMistypedProductsGiveNothing() {
    let facts = facts([
      SampleTransaction("1", "nobody.knows", .nonConsumable, signed: 1, purchased: 1),
      SampleTransaction("2", "gold", .nonConsumable, signed: 1, purchased: 1),
      SampleTransaction("3", "pro", .unknown("New Kind"), signed: 1, purchased: 1),
    ])
    #expect(active(facts, at: 2) == [])
    #expect(facts.purchases.count == 3)
    #expect(AccountState(facts: facts).isWaiting(for: Self.catalogue))
  }

  /// C19: for one chain, every order of four statements, each twice.
  @Test func anyOrderOfStatementsIsOneState() {
    let statements: [(TransactionRevision, RenewalRevision?)] = [
      (period("1", "gold", 1000, 9000, signed: 1000).revision, SampleRenewal("1", "gold", signed: 1000).revision),
      (period("1", "gold", 1000, 9000, signed: 2000, revoked: 1990).revision, nil),
      (
        period("1", "gold", 1000, 9000, signed: 2000, revoked: 1990).revision,
        SampleRenewal("1", "gold", signed: 3000, autoRenews: false).revision
      ),
      (
        period("1", "gold", 1000, 9000, signed: 2000, revoked: 1990).revision,
        SampleRenewal("1", "gold", signed: 4000).revision
      ),
    ]
    var seen: Set<AccountFacts> = []
    func permute(_ left: [Int], _ order: [Int]) {
      if left.isEmpty {
        var facts = AccountFacts()
        for index in order + order.reversed() {
          _ = facts.fold(statements[index].0)
          if let renewal = statements[index].1 { _ = facts.fold(renewal) }
        }
        seen.insert(facts)
      }
      for (place, next) in left.enumerated() {
        var rest = left
        rest.remove(at: place)
        permute(rest, order + [next])
      }
    }
    permute([0, 1, 2, 3], [])
    #expect(seen.count == 1)
    #expect(seen.first?.renewals.first?.autoRenews == true)
    #expect(seen.first.map { active($0, at: 5000) } == [])
  }

  @Test func equalDatesHaveOneOrder() {
    let plain = period("1", "gold", 1000, 9000, signed: 2000)
    let revoked = period("1", "gold", 1000, 9000, signed: 2000, revoked: 1500)
    for order in [[plain, revoked], [revoked, plain]] {
      #expect(facts(order).purchases.first?.isRevoked == true)
    }
    // Then a notification above a client, then the digest.
    let (client, notified) = (plain.revision(.client), plain.revision(.notification))
    #expect(client.rank < notified.rank)
  }
}

@Suite struct CalendarDurationTests {
  @Test(arguments: [
    ("P30D", "2026-01-31T10:00:00.000Z", "2026-03-02T10:00:00.000Z"),
    ("P1M", "2026-01-31T10:00:00.000Z", "2026-02-28T10:00:00.000Z"),
    ("P1M", "2028-01-31T10:00:00.000Z", "2028-02-29T10:00:00.000Z"),
    ("P1Y", "2028-02-29T00:00:00.000Z", "2029-02-28T00:00:00.000Z"),
    ("P1Y2M10DT2H30M", "2026-11-30T23:00:00.000Z", "2028-02-10T01:30:00.000Z"),
    ("P2W", "1969-12-25T00:00:00.000Z", "1970-01-08T00:00:00.000Z"),
  ])
  func ends(_ text: String, _ start: String, _ end: String) throws {
    let duration = try #require(CalendarDuration(iso8601: text))
    #expect(duration.end(from: try #require(Instant(rfc3339: start)), times: 1).rfc3339 == end)
    #expect(CalendarDuration(iso8601: duration.description) == duration)
  }

  @Test(arguments: ["", "P", "PT", "30D", "P0D", "P1.5D", "P1D1M", "P1H", "PT1D", "P-1D", "P10000D", "P1D ", "P1DT"])
  func refuses(_ text: String) { #expect(CalendarDuration(iso8601: text) == nil) }
}

@Suite struct BookingTests {
  /// C32: a third of three times 100 credits is 100.
  @Test(arguments: [
    (300, 33_333, 100), (300, nil, 300), (300, 0, 0), (300, 100_000, 300), (7, 50_000, 4), (1, 49_999, 0),
    (1, 50_000, 1),
    (10_000_000_000_000, 100_000, 10_000_000_000_000),
  ])
  func refund(_ worth: Int64, _ percentage: Int64?, _ refund: Int64) {
    #expect(Booking.refund(of: worth, percentage: percentage) == refund)
  }
}
