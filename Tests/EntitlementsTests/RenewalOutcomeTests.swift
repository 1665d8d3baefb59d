import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// What subscriptions do beside renewing: crossgrades, extensions, family sharing, refunds by period and by share, recovery.
@Suite struct RenewalOutcomeTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"
  private let b = "bbbbbbbb-0000-4000-8000-00000000000b"

  private static let catalogue = Samples.catalogue(
    #"""
    {"version": "1", "products": [
      {"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
      {"id": "pro.lifetime", "type": "non-consumable", "entitlements": ["pro"]},
      {"id": "news.month", "type": "auto-renewable", "group": "media", "level": 1, "entitlements": ["news"]},
      {"id": "film.month", "type": "auto-renewable", "group": "media", "level": 1, "entitlements": ["film"]},
      {"id": "film.year", "type": "auto-renewable", "group": "media", "level": 1, "entitlements": ["film"]}]}
    """#)

  private func period(
    _ transaction: String, _ product: String, _ start: Int64, _ end: Int64, original: String = "1",
    signed: Int64? = nil,
    revoked: Int64? = nil, percentage: Int64? = nil, token: String? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: original, product, .autoRenewable, signed: signed ?? start, purchased: start, expires: end,
      lineItem: "9\(transaction)", revoked: revoked, percentage: percentage, token: token ?? a)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  // MARK: Crossgrades

  @Test func crossgradeOfEqualDurationTakesItsPlaceAtOnce() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    let out = world.notify(
      period("2", "film.month", 400, 1300), "N", "DID_CHANGE_RENEWAL_PREF", subtype: "UPGRADE",
      renewal: SampleRenewal("1", "film.month", signed: 400), at: 401)
    #expect(gists(out) == ["granted film", "reduced news"])
    #expect(world.active(a, at: 399) == ["news"] && world.active(a, at: 400) == ["film"])
    #expect(gists(world.tick(402)) == ["expired news"])
  }

  @Test func crossgradeOfAnotherDurationWaitsForThePeriodsEnd() throws {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    let out = world.notify(
      period("1", "news.month", 100, 1000, signed: 400), "N", "DID_CHANGE_RENEWAL_PREF", subtype: "DOWNGRADE",
      renewal: SampleRenewal("1", "news.month", signed: 400, next: "film.year", renews: 1000), at: 401)
    #expect(out.isEmpty)
    #expect(world.active(a, at: 999) == ["news"])
    let key = ChainRow.key(.production, OriginalTransactionID("1")!)
    let row = try #require(world.ownership.tables.row(key))
    let view = try ChainView(try ChainRow(row), at: Instant(milliseconds: 500))
    #expect(
      view.pending == [
        ChainView.PendingChange(kind: .product, at: Instant(milliseconds: 1000), to: "film.year")
      ])
    // It comes as a transaction of its own.
    world.notify(
      period("2", "film.year", 1000, 5000), "N2", "DID_RENEW", renewal: SampleRenewal("1", "film.year", signed: 1000),
      at: 1001)
    world.tick(1002)
    #expect(world.published(a) == ["film"])
    let after = try ChainView(
      try ChainRow(try #require(world.ownership.tables.row(key))), at: Instant(milliseconds: 1003))
    #expect(after.pending.isEmpty && after.purchase.product.text == "film.year")
  }

  // MARK: Extension

  @Test func extendedRenewalDateExtendsThePeriod() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    let extended = period("1", "news.month", 100, 1600, signed: 900)
    let out = world.notify(
      extended, "N", "RENEWAL_EXTENDED", renewal: SampleRenewal("1", "news.month", signed: 900, renews: 1600), at: 901)
    #expect(gists(out) == ["extended news"])
    // A late statement from before doesn't take it back.
    #expect(world.notify(period("1", "news.month", 100, 1000, signed: 800), "N0", "ANY", at: 902).isEmpty)
    #expect(world.tick(1000).isEmpty)
    #expect(gists(world.tick(1600)) == ["expired news"])
  }

  // MARK: Family sharing

  /// Ids of shared purchases pass 2^53: two that a floating-point number would take for one.
  @Test func familyRevocationEndsTheMembersAccessOnly() {
    let world = World(Self.catalogue)
    let (purchaser, member, other) = ("9007199254740993", "9007199254740995", "9007199254740996")
    world.feed(period(purchaser, "film.month", 100, 9000, original: purchaser), by: a, at: 100)
    for (id, account) in [(member, b), (other, "third")] {
      var shared = period(id, "film.month", 100, 9000, original: id)
      shared.token = nil
      world.feed(shared, by: account, at: 200)
    }
    #expect(world.active(b, at: 300) == ["film"])
    var revoked = period(member, "film.month", 100, 9000, original: member, signed: 400, revoked: 390)
    revoked.token = nil
    #expect(gists(world.notify(revoked, "N", "REVOKE", at: 401)) == ["revoked film"])
    #expect(world.active(b, at: 402) == [])
    #expect(world.active(a, at: 402) == ["film"] && world.active("third", at: 402) == ["film"])
    #expect(world.row(b)?.state.facts.purchases.map(\.transaction.text) == [member])
  }

  // MARK: Refunds and what comes after

  @Test func proratedRefundEndsThePeriodAsOfItsDateAndLeavesTheNext() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    world.feed(period("2", "news.month", 1000, 2000), by: a, at: 1000)
    let out = world.notify(
      period("2", "news.month", 1000, 2000, signed: 1500, revoked: 1500, percentage: 50_000), "N", "REFUND", at: 1501)
    #expect(gists(out) == ["revoked news"])
    #expect(world.active(a, at: 1499) == ["news"] && world.active(a, at: 1500) == [])
    #expect(
      gists(world.feed(period("3", "news.month", 1600, 2600), by: a, at: 1601)) == [
        "granted news", "finishable granted",
      ])
    #expect(world.active(a, at: 2000) == ["news"])
  }

  @Test func refundOfAnEarlierPeriodLeavesTheRunningOne() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    world.feed(period("2", "news.month", 1000, 2000), by: a, at: 1000)
    #expect(
      world.notify(period("1", "news.month", 100, 1000, signed: 1500, revoked: 1400), "N", "REFUND", at: 1501).isEmpty)
    #expect(world.active(a, at: 1999) == ["news"])
  }

  @Test func refundReversalRestoresThePeriod() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 9000), by: a, at: 100)
    world.notify(period("1", "news.month", 100, 9000, signed: 500, revoked: 490), "N", "REFUND", at: 501)
    let out = world.notify(period("1", "news.month", 100, 9000, signed: 600), "N2", "REFUND_REVERSED", at: 601)
    #expect(gists(out) == ["granted news"])
    // The refund again, delivered late: it is the older statement.
    #expect(
      world.notify(period("1", "news.month", 100, 9000, signed: 500, revoked: 490), "N", "REFUND", at: 700).isEmpty)
    #expect(world.active(a, at: 8999) == ["news"])
  }

  /// Shares of one purchase, one after the other and back: what stays is the whole less the newest share.
  @Test func partialRefundsOfCreditsByPercentage() {
    let world = World(Self.catalogue)
    func coins(_ signed: Int64, _ percentage: Int64?, revoked: Bool = true) -> SampleTransaction {
      SampleTransaction(
        "5", "coins.100", .consumable, signed: signed, purchased: 5, quantity: 3, revoked: revoked ? signed : nil,
        percentage: percentage, token: a)
    }
    world.feed(coins(10, nil, revoked: false), by: a, at: 10)
    for (signed, percentage, balance) in [(20, 33_333, 200), (30, 66_667, 100), (40, 0, 300), (50, 100_000, 0)]
      as [(Int64, Int64, Int64)]
    {
      world.notify(coins(signed, percentage), "N\(signed)", "REFUND", at: signed + 1)
      #expect(world.balance(a) == balance, "\(percentage)")
    }
    world.notify(coins(60, nil, revoked: false), "N60", "REFUND_REVERSED", at: 61)
    #expect(world.balance(a) == 300)
  }

  @Test func boughtAgainAfterARefund() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    world.notify(period("1", "news.month", 100, 1000, signed: 500, revoked: 490), "N", "REFUND", at: 501)
    // Again in the same chain, and in a chain of its own.
    let again = world.feed(period("2", "news.month", 600, 1500), by: a, at: 601)
    #expect(gists(again) == ["granted news", "finishable granted"])
    world.notify(period("2", "news.month", 600, 1500, signed: 700, revoked: 690), "N2", "REFUND", at: 701)
    let other = world.feed(period("8", "news.month", 800, 1700, original: "8"), by: a, at: 801)
    #expect(gists(other) == ["granted news", "finishable granted"])
    #expect(world.active(a, at: 1699) == ["news"])
  }

  // MARK: Two chains

  /// The old chain sits in billing retry, the customer subscribes anew in another, and then the old one is recovered.
  @Test func recoveryOfAnOldChainBesideANewOne() {
    let world = World(Self.catalogue)
    world.feed(period("1", "news.month", 100, 1000), by: a, at: 100)
    world.notify(
      period("1", "news.month", 100, 1000, signed: 1000), "N", "DID_FAIL_TO_RENEW",
      renewal: SampleRenewal("1", "news.month", signed: 1000, isInRetry: true), at: 1001)
    #expect(gists(world.tick(1001)) == ["expired news"])
    #expect(
      gists(world.feed(period("7", "news.month", 1500, 2500, original: "7"), by: a, at: 1501)).first == "granted news")
    let recovered = world.notify(
      period("2", "news.month", 1800, 3800), "N2", "DID_RENEW", subtype: "BILLING_RECOVERY",
      renewal: SampleRenewal("1", "news.month", signed: 1800), at: 1801)
    #expect(gists(recovered) == ["extended news"])
    #expect(world.tick(2500).isEmpty)
    // The new one is refunded: the recovered one stands.
    #expect(
      world.notify(
        period("7", "news.month", 1500, 2500, original: "7", signed: 2600, revoked: 2000), "N3", "REFUND", at: 2601
      ).isEmpty)
    #expect(gists(world.tick(3800)) == ["expired news"])
  }
}
