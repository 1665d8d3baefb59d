import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Advanced Commerce: one transaction of a generic product, and in it what was bought, by the seller's own identifiers.
@Suite struct ItemTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"

  private func bundle(
    _ items: [SampleItem], _ transaction: String = "1", _ start: Int64 = 100, _ end: Int64 = 9000, signed: Int64? = nil,
    revoked: Int64? = nil
  ) -> SampleTransaction {
    var sample = SampleTransaction(
      transaction, original: "1", "generic.subscription", .autoRenewable, signed: signed ?? start, purchased: start,
      expires: end, lineItem: "9\(transaction)", revoked: revoked, token: a)
    sample.items = items
    return sample
  }

  private let gold = SampleItem("gold.monthly")
  private let silver = SampleItem("silver.monthly")

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  @Test func eachItemGrantsWhatItsSKUGrants() {
    let world = World()
    #expect(
      gists(world.feed(bundle([gold, silver]), by: a, at: 100))
        == ["granted gold", "granted member", "granted silver", "finishable granted"])
    #expect(world.quarantined.isEmpty)
    #expect(
      world.view(a, at: 101)?.entitlements.map { $0.state.product?.text ?? "" } == [
        "gold.monthly", "gold.monthly", "silver.monthly",
      ])
    #expect(gists(world.tick(9000)) == ["expired gold", "expired member", "expired silver"])
  }

  @Test func revokedItemEndsAloneInAnyOrder() {
    let later = bundle([gold, SampleItem("silver.monthly", revoked: 490, refunded: 990)], signed: 500)
    for order in [[bundle([gold, silver]), later], [later, bundle([gold, silver])]] {
      let world = World()
      for (index, statement) in order.enumerated() {
        world.notify(statement, "N\(index)", "REFUND", at: Int64(600 + index))
      }
      #expect(world.published(a) == ["gold", "member"])
      #expect(world.active(a, at: 489) == ["gold", "member", "silver"])
      #expect(world.active(a, at: 490) == ["gold", "member"])
      // Reversed: a newer statement without the date.
      #expect(
        gists(world.notify(bundle([gold, silver], signed: 700), "R", "REFUND_REVERSED", at: 701)) == ["granted silver"])
    }
  }

  @Test(arguments: ["PRORATED", "CUSTOM"])
  func refundWithoutARevocationLeavesTheItem(_ type: String) {
    let world = World()
    world.feed(bundle([gold]), by: a, at: 100)
    let refunded = bundle([SampleItem("gold.monthly", refunded: 300, refundType: type)], signed: 500)
    #expect(world.notify(refunded, "N", "REFUND", at: 501).isEmpty)
    #expect(world.active(a, at: 502) == ["gold", "member"])
  }

  @Test func itemThatANewerStatementListsNoMoreIsGone() {
    for order in [
      [bundle([gold, silver]), bundle([gold], signed: 500)], [bundle([gold], signed: 500), bundle([gold, silver])],
    ] {
      let world = World()
      for (index, statement) in order.enumerated() {
        world.notify(statement, "N\(index)", "ANY", at: Int64(600 + index))
      }
      #expect(world.published(a) == ["gold", "member"])
      #expect(world.active(a, at: 700) == ["gold", "member"])
    }
  }

  @Test func revocationOfTheTransactionEndsEveryItem() {
    let world = World()
    world.feed(bundle([gold, silver]), by: a, at: 100)
    #expect(
      gists(world.notify(bundle([gold, silver], signed: 500, revoked: 490), "N", "REFUND", at: 501))
        == ["revoked gold", "revoked member", "revoked silver"])
    // Another report of it: nothing of it is left.
    #expect(
      gists(world.feed(bundle([gold, silver], signed: 510, revoked: 490), by: a, at: 511)) == ["finishable none"])
    #expect(world.permits(a).map(\.permit.reason).sorted() == ["granted", "revoked"])
  }

  @Test func renewalEndsTheItemsOfThePeriodBefore() {
    let world = World()
    world.feed(bundle([gold, silver], "1", 100, 1000), by: a, at: 100)
    world.feed(bundle([gold], "2", 1000, 2000), by: a, at: 1000)
    #expect(world.active(a, at: 1001) == ["gold", "member"])
    world.tick(1001)
    #expect(world.published(a) == ["gold", "member"])
  }

  @Test func graceHoldsForEveryItem() {
    let world = World()
    world.notify(
      bundle([gold, silver], "1", 100, 1000, signed: 1000), "N", "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD",
      renewal: SampleRenewal("1", "generic.subscription", signed: 1000, grace: 2000), at: 1001)
    #expect(world.active(a, at: 1999) == ["gold", "member", "silver"])
  }

  @Test func unknownSKUWaitsAlone() {
    let world = World()
    #expect(
      gists(world.feed(bundle([gold, SampleItem("later")]), by: a, at: 100)) == ["granted gold", "granted member"])
    #expect(world.permits(a).map(\.permit.reason) == ["unknown-product"])
    #expect(world.view(a, at: 101)?.waitingFor.map(\.text) == ["later"])
    #expect(world.quarantined.count == 1 && world.quarantined[0].contains("later"))
    world.relearn(
      Samples.catalogue(
        #"""
        {"version": "2", "products": [
          {"id": "gold.monthly", "type": "auto-renewable", "group": "m", "level": 1, "entitlements": ["gold", "member"]},
          {"id": "later", "type": "auto-renewable", "group": "l", "level": 1, "entitlements": ["more"]}]}
        """#))
    #expect(gists(world.tick(200)) == ["granted more", "finishable granted"])
  }

  /// One-time charges: credits by SKU, each with its own refund.
  @Test func creditsByItem() throws {
    func charge(_ items: [SampleItem], signed: Int64, revoked: Int64? = nil) -> SampleTransaction {
      var sample = SampleTransaction(
        "5", "generic.charge", .consumable, signed: signed, purchased: 5, revoked: revoked, token: a)
      sample.items = items
      return sample
    }
    let (coins, gems) = (SampleItem("coins.100"), SampleItem("gems.7"))
    let world = World()
    #expect(
      gists(world.feed(charge([coins, gems], signed: 10), by: a, at: 20))
        == ["added 100 coins", "added 7 gems", "finishable granted"])
    #expect(gists(world.feed(charge([coins, gems], signed: 11), by: a, at: 21)) == ["finishable already-granted"])
    let refunded = charge([coins, SampleItem("gems.7", revoked: 28, refunded: 990)], signed: 30)
    #expect(gists(world.notify(refunded, "N", "REFUND", at: 31)) == ["removed 7 gems"])
    // A statement that lists the coins no more takes them back, and one that lists them again gives them.
    world.notify(charge([gems], signed: 40), "N2", "ANY", at: 41)
    #expect(world.balance(a) == 0 && world.balance(a, "gems") == 7)
    let row = try #require(world.row(a))
    #expect(try AccountRow(row.row) == row)
    world.notify(charge([coins, gems], signed: 50), "N3", "ANY", at: 51)
    #expect(world.balance(a) == 100 && world.balance(a, "gems") == 7)
    world.notify(charge([coins, gems], signed: 60, revoked: 55), "N4", "REFUND", at: 61)
    #expect(world.balance(a) == 0 && world.balance(a, "gems") == 0)
  }

  /// A receipt lists the generic product: it is the same purchase, and its items stay.
  @Test func receiptTakesNoItemsAway() {
    var listed = bundle([], signed: 500)
    for order in [[bundle([gold, silver]), listed], [listed, bundle([gold, silver])]] {
      let world = World()
      for statement in order { world.feed(statement, by: a, at: 600) }
      #expect(world.published(a) == ["gold", "member", "silver"])
      #expect(world.row(a)?.isWaiting == false)
      #expect(world.permits(a).allSatisfy { $0.permit.status == .finishable })
    }
    listed.revoked = 490
    let world = World()
    world.feed(bundle([gold]), by: a, at: 100)
    world.feed(listed, by: a, at: 501)
    #expect(world.published(a) == [])
  }

  @Test func itemsSurviveTheStore() throws {
    let world = World()
    world.feed(bundle([gold, SampleItem("silver.monthly", revoked: 90)], signed: 200), by: a, at: 200)
    let row = try #require(world.row(a))
    #expect(try AccountRow(row.row) == row)
    #expect(row.state.facts.purchases[0].rank.isRevoked && !row.state.facts.purchases[0].isRevoked)
  }
}
