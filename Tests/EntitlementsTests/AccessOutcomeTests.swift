import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// What comes of facts that end access in unusual ways: which step the feed says, and what a permit says of it.
@Suite struct AccessOutcomeTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"

  private func period(
    _ transaction: String, _ start: Int64, _ end: Int64, original: String = "1", signed: Int64? = nil,
    revoked: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: original, "gold.monthly", .autoRenewable, signed: signed ?? start, purchased: start,
      expires: end, lineItem: "9\(transaction)", revoked: revoked, token: a)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  // MARK: The end of a period is no revocation

  /// Grace is published until 2000 and the account's clock stands at 1500 when Apple says that there is no grace any more.
  private func inGraceAt1500() -> World {
    let world = World()
    world.notify(
      period("1", 100, 1000), "N1", "SUBSCRIBED",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1000, grace: 2000),
      at: 1001)
    world.feed(
      SampleTransaction("7", "season", .nonRenewing, signed: 100, purchased: 1500 - 30 * 86_400_000, token: a), by: a,
      at: 1002)
    #expect(gists(world.tick(1500)) == ["expired season"])
    return world
  }

  @Test func graceThatIsTakenBackEndsAsAnExpiry() {
    let world = inGraceAt1500()
    let out = world.notify(
      period("1", 100, 1000, signed: 1600), "N2", "EXPIRED", subtype: "BILLING_RETRY",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1600), at: 1601)
    #expect(gists(out) == ["expired gold", "expired member"])
    #expect(world.tick(3000).isEmpty)
  }

  @Test func graceOfAnUpgradedPeriodEndsAsAnExpiry() {
    let world = World()
    var silver = period("1", 100, 9000)
    silver.product = "silver.monthly"
    world.feed(silver, by: a, at: 100)
    world.feed(
      SampleTransaction("7", "season", .nonRenewing, signed: 100, purchased: 600 - 30 * 86_400_000, token: a), by: a,
      at: 101)
    world.tick(600)
    // The upgrade of 500 becomes known after the tick of 600.
    let out = world.notify(period("2", 500, 9500), "N", "DID_CHANGE_RENEWAL_PREF", subtype: "UPGRADE", at: 601)
    #expect(gists(out) == ["granted gold", "extended member", "expired silver"])
  }

  @Test func refundInGraceIsARevocationAllTheSame() {
    let world = inGraceAt1500()
    let out = world.notify(
      period("1", 100, 1000, signed: 1600, revoked: 900), "N2", "REFUND",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1600), at: 1601)
    #expect(gists(out) == ["revoked gold", "revoked member"])
  }

  @Test func revocationOfTheRunningPeriodIsNoExpiryOfTheOneBefore() {
    let world = World()
    world.notify(period("1", 100, 1000), "N1", "SUBSCRIBED", at: 100)
    world.notify(period("2", 1000, 2000), "N2", "DID_RENEW", at: 1001)
    world.tick(1500)
    // Revoked as of its very beginning: no instant of it is left.
    let out = world.notify(period("2", 1000, 2000, signed: 1600, revoked: 1000), "N3", "REFUND", at: 1601)
    #expect(gists(out) == ["revoked gold", "revoked member"])
  }

  // MARK: What is refunded in part

  private func gems(_ percentage: Int64?, revoked: Int64? = 25) -> SampleTransaction {
    SampleTransaction(
      "5", "later.300", .consumable, signed: 30, purchased: 5, revoked: revoked, percentage: percentage, token: a)
  }

  private static let later = Samples.catalogue(
    #"""
    {"version": "2", "products": [
      {"id": "later.300", "type": "consumable", "credits": {"unit": "coins", "amount": 300}}]}
    """#)

  @Test func consumableRefundedInPartWaitsForItsProduct() {
    let world = World()
    #expect(world.feed(gems(33_333), by: a, at: 40).isEmpty)
    #expect(world.quarantined.count == 1)
    #expect(world.permits(a).map(\.permit.status) == [.pending])
    #expect(world.view(a, at: 41)?.waitingFor.map(\.text) == ["later.300"])
    world.relearn(Self.later)
    #expect(gists(world.tick(50)) == ["added 200 coins", "finishable granted"])
    #expect(world.balance(a) == 200)
  }

  @Test(arguments: [nil, 100_000 as Int64])
  func consumableRefundedWholeWaitsForNothing(_ percentage: Int64?) {
    let world = World()
    #expect(gists(world.feed(gems(percentage), by: a, at: 40)) == ["finishable none"])
    #expect(world.quarantined.isEmpty)
    #expect(world.permits(a).map(\.permit.reason) == ["revoked"])
    #expect(world.view(a, at: 41)?.waitingFor.isEmpty == true)
    world.relearn(Self.later)
    #expect(world.tick(50).isEmpty && world.balance(a) == 0)
  }

  // MARK: What a permit says of a period that an operator ended

  @Test func permitForWhatAnOperatorRevokedSaysSo() {
    let world = World()
    world.notify(period("1", 100, 9000), "N1", "SUBSCRIBED", at: 100)
    for (id, entitlement) in [("o1", "gold"), ("o2", "member")] {
      let order = AccessOrdered(
        environment: .production, account: Account(a)!, order: .revoke(EntitlementID(entitlement)!, until: nil),
        orderID: id,
        operatorName: "op", reason: "ticket")
      world.feed(VerifiedEvent(fact: .ordered(order)), key: "Production/\(a)", at: 500)
    }
    #expect(gists(world.feed(period("1", 100, 9000), by: a, at: 600)) == ["finishable none"])
    #expect(world.permits(a).map(\.permit.reason) == ["revoked"])
  }

  @Test func permitForWhatHadRunOutBeforeAnOrderSaysExpired() {
    let world = World()
    world.notify(period("1", 100, 400), "N1", "SUBSCRIBED", at: 100)
    let order = AccessOrdered(
      environment: .production, account: Account(a)!, order: .revoke(EntitlementID("gold")!, until: nil),
      orderID: "o1",
      operatorName: "op", reason: "ticket")
    world.feed(VerifiedEvent(fact: .ordered(order)), key: "Production/\(a)", at: 500)
    #expect(gists(world.feed(period("1", 100, 400), by: a, at: 600)).last == "finishable none")
    #expect(world.permits(a).map(\.permit.reason) == ["expired"])
  }
}
