import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// A subscription that is bought for several people: a transaction for each time that seats were added, all of one period.
/// The purchaser has access until every one of them is revoked.
@Suite struct SeatTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"

  private func seats(
    _ transaction: String, _ start: Int64, _ end: Int64, signed: Int64? = nil, lineItem: String = "91",
    quantity: Int64 = 5, revokedSeats: Int64 = 0, adds: Bool = false, revoked: Int64? = nil,
    product: String = "gold.monthly"
  ) -> SampleTransaction {
    var sample = SampleTransaction(
      transaction, original: "1", product, .autoRenewable, signed: signed ?? start, purchased: start, expires: end,
      quantity: quantity, lineItem: lineItem, revoked: revoked, token: a)
    sample.revokedSeats = revokedSeats
    sample.addsSeats = adds
    return sample
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  @Test func refundOfSomeSeatsRevokesNobody() {
    let world = World()
    world.feed(seats("1", 100, 9000), by: a, at: 100)
    let out = world.notify(
      seats("1", 100, 9000, signed: 500, revokedSeats: 2), "N", "REFUND", subtype: "SEATS", at: 501)
    #expect(out.isEmpty)
    #expect(world.active(a, at: 600) == ["gold", "member"])
  }

  /// In every order, whether the addition shares the line item of the period or has its own.
  @Test(arguments: ["91", "92"])
  func refundOfAddedSeatsLeavesTheOthers(_ lineItem: String) {
    let statements = [
      seats("1", 100, 9000), seats("2", 500, 9000, lineItem: lineItem, adds: true),
      seats("1", 100, 9000, signed: 510, adds: true),
      seats("2", 500, 9000, signed: 700, lineItem: lineItem, adds: true, revoked: 690),
    ]
    for first in statements.indices {
      for order in [
        Array(statements[first...] + statements[..<first]),
        Array(statements[first...] + statements[..<first]).reversed(),
      ] {
        let world = World()
        for (index, statement) in order.enumerated() {
          world.notify(statement, "N\(index)", "ANY", at: Int64(800 + index))
        }
        #expect(world.published(a) == ["gold", "member"])
        #expect(world.active(a, at: 8999) == ["gold", "member"])
        // The last transaction of the period goes as well: now the access does.
        let out = world.notify(
          seats("1", 100, 9000, signed: 900, adds: true, revoked: 890), "N9", "REFUND", at: 901)
        #expect(gists(out) == ["revoked gold", "revoked member"])
        #expect(world.active(a, at: 902) == [])
        // And comes back with either of them.
        let back = world.notify(
          seats("2", 500, 9000, signed: 950, lineItem: lineItem, adds: true), "N10", "REFUND_REVERSED", at: 951)
        #expect(gists(back) == ["granted gold", "granted member"])
      }
    }
  }

  @Test func refundOfTheFirstTransactionLeavesTheAddedSeats() {
    let world = World()
    world.feed(seats("1", 100, 9000), by: a, at: 100)
    world.feed(seats("2", 500, 9000, lineItem: "92", adds: true), by: a, at: 500)
    #expect(world.notify(seats("1", 100, 9000, signed: 700, revoked: 690), "N", "REFUND", at: 701).isEmpty)
    #expect(world.active(a, at: 702) == ["gold", "member"])
  }

  /// An extension that only one of the two has heard of.
  @Test func additionGoesOnBesideAnExtendedPeriod() {
    let world = World()
    world.feed(seats("1", 100, 9000), by: a, at: 100)
    world.feed(seats("2", 500, 9000, lineItem: "92", adds: true), by: a, at: 500)
    world.notify(seats("1", 100, 9500, signed: 600, adds: true), "N", "RENEWAL_EXTENDED", at: 601)
    #expect(world.active(a, at: 9499) == ["gold", "member"])
    world.notify(seats("2", 500, 9000, signed: 700, lineItem: "92", adds: true, revoked: 690), "N2", "REFUND", at: 701)
    #expect(world.active(a, at: 9499) == ["gold", "member"])
  }

  @Test func graceHoldsForAllOfThePeriod() {
    let world = World()
    world.feed(seats("1", 100, 1000), by: a, at: 100)
    world.feed(seats("2", 500, 1000, lineItem: "92", adds: true), by: a, at: 500)
    world.notify(
      seats("1", 100, 1000, signed: 1000, adds: true), "N", "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1000, grace: 2000), at: 1001)
    world.notify(
      seats("2", 500, 1000, signed: 1100, lineItem: "92", adds: true, revoked: 1090), "N2", "REFUND", at: 1101)
    #expect(world.active(a, at: 1999) == ["gold", "member"])
    #expect(world.active(a, at: 2000) == [])
  }

  @Test func upgradeAndRenewalEndAllOfThePeriod() {
    let world = World()
    world.feed(seats("1", 100, 9000, product: "silver.monthly"), by: a, at: 100)
    world.feed(seats("2", 500, 9000, lineItem: "92", adds: true, product: "silver.monthly"), by: a, at: 500)
    world.feed(seats("3", 800, 9800, lineItem: "93"), by: a, at: 800)
    #expect(world.active(a, at: 801) == ["gold", "member"])
    #expect(world.active(a, at: 799) == ["member", "silver"])
  }

  /// A receipt knows of no seats: what it lists is the same transaction.
  @Test func receiptAndTransactionAreOnePurchase() {
    var listed = seats("1", 100, 9000, signed: 200)
    listed.revokedSeats = nil
    for order in [[listed, seats("1", 100, 9000)], [seats("1", 100, 9000), listed]] {
      let world = World()
      for statement in order { world.feed(statement, by: a, at: 300) }
      #expect(gists(world.notify(seats("1", 100, 9000, signed: 400, revoked: 390), "N", "REFUND", at: 401)).count == 2)
      #expect(world.active(a, at: 402) == [])
    }
    // And a receipt that says it is cancelled is believed where it is the newest.
    let world = World()
    world.feed(seats("1", 100, 9000), by: a, at: 100)
    listed.revoked = 190
    #expect(gists(world.feed(listed, by: a, at: 201)) == ["revoked gold", "revoked member", "finishable none"])
  }

  @Test func seatsSurviveTheStore() throws {
    let world = World()
    world.feed(seats("1", 100, 9000, revokedSeats: 2), by: a, at: 100)
    world.feed(seats("2", 500, 9000, lineItem: "92", adds: true), by: a, at: 500)
    let row = try #require(world.row(a))
    #expect(try AccountRow(row.row) == row)
    #expect(
      row.state.facts.purchases.map(\.seats) == [
        Seats(revoked: 2, isAddition: false), Seats(revoked: 0, isAddition: true),
      ])
  }
}
