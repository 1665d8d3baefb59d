import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Receipts that don't say of what type a purchase is: the catalogue says it until a signed transaction does, and what both
/// speak of is one purchase.
@Suite struct UntoldTypeTests {
  private let u1 = "u1"

  private func sale(
    _ product: String, _ type: ProductType, signed: Int64 = 10, transaction: String = "1", revoked: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: "1", product, type, signed: signed, purchased: 5, revoked: revoked)
  }

  private func listed(
    _ product: String, signed: Int64 = 10, transaction: String = "1", revoked: Int64? = nil
  ) -> SampleTransaction {
    sale(product, .untold, signed: signed, transaction: transaction, revoked: revoked)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  @Test(arguments: [
    ("coins.100", "added 100 coins"), ("pro.lifetime", "granted pro"), ("season", "granted season"),
  ])
  func theCatalogueSaysTheType(_ product: String, _ gist: String) {
    let world = World()
    #expect(gists(world.feed(listed(product), by: u1, at: 20)) == [gist, "finishable granted"])
    #expect(world.quarantined.isEmpty)
    #expect(world.row(u1)?.isWaiting == false)
    // A later receipt that lists it again, and one that calls it cancelled.
    #expect(gists(world.feed(listed(product, signed: 30), by: u1, at: 31)) == ["finishable already-granted"])
    let gone = gists(world.notify(listed(product, signed: 40, revoked: 35), "N", "ANY", at: 41))
    #expect(gone == [gist.replacing("added", with: "removed").replacing("granted", with: "revoked")])
  }

  /// The receipt of a verifyReceipt answer, whose purchases have no type at all.
  @Test func whatAnAnswerListsIsGranted() throws {
    let answer = try VerifyReceiptAnswer(
      parsing: Array(
        #"""
        {"status": 0, "environment": "Production", "receipt": {"bundle_id": "com.example.app", "in_app": [
          {"product_id": "coins.100", "transaction_id": "1", "original_transaction_id": "1", "quantity": "2",
           "purchase_date_ms": "5", "original_purchase_date_ms": "5"}]}}
        """#.utf8), from: .production)
    let entry = try #require(answer.purchases.first)
    var purchase = AppReceipt.Purchase()
    purchase.product = entry.product
    purchase.transaction = entry.transaction
    purchase.originalTransaction = entry.originalTransaction
    purchase.quantity = entry.quantity
    purchase.purchaseDate = entry.purchaseDate
    #expect(purchase.type == .untold)
    var receipt = AppReceipt()
    receipt.purchases = [purchase]
    let date = Instant(milliseconds: 10)
    let parts = try receipt.parts(digest: "d", environment: .production, signed: date, source: .client).map(\.part)
    let event = VerifiedEvent.verified(
      PurchaseVerified(
        environment: .production, kind: .appReceipt, proof: parts[0].digest, signedDate: date, parts: parts,
        notification: nil, report: Report(type: .paymentPurchased, account: Account(u1)), evidence: .null))
    let world = World()
    #expect(gists(world.feed(event, key: "Production/1", at: 20)) == ["added 200 coins", "finishable granted"])
  }

  /// A receipt, the signed transaction, a later receipt and the refund, in any order: one credit and one line for each turn.
  @Test func inAnyOrderOneCredit() {
    let statements = [
      listed("coins.100", signed: 10), sale("coins.100", .consumable, signed: 20), listed("coins.100", signed: 30),
    ]
    let refunds = [
      sale("coins.100", .consumable, signed: 40, revoked: 35), listed("coins.100", signed: 40, revoked: 35),
    ]
    for order in permutations([0, 1, 2]) {
      for refund in refunds {
        let world = World()
        for place in order { world.feed(statements[place], by: u1, at: 50) }
        #expect(world.balance(u1) == 100, "\(order)")
        #expect(world.entitlements.tables.rows(.ledger).count == 1)
        #expect(world.row(u1)?.isWaiting == false)
        #expect(world.permits(u1).count == 3 && world.permits(u1).allSatisfy { $0.permit.status == .finishable })
        world.notify(refund, "N", "REFUND", at: 60)
        for place in order { world.feed(statements[place], by: u1, at: 70) }
        #expect(world.balance(u1) == 0, "\(order)")
        #expect(world.entitlements.tables.rows(.ledger).count == 2)
      }
    }
  }

  private func permutations(_ items: [Int]) -> [[Int]] {
    guard items.count > 1 else { return [items] }
    return items.indices.flatMap { index in
      var rest = items
      let first = rest.remove(at: index)
      return permutations(rest).map { [first] + $0 }
    }
  }

  @Test func aRestoreInAReceiptIsTheSamePurchase() {
    let world = World()
    world.feed(sale("pro.lifetime", .nonConsumable), by: u1, at: 20)
    #expect(
      gists(world.feed(listed("pro.lifetime", signed: 30, transaction: "77"), by: u1, at: 31))
        == ["finishable already-granted"])
    // The receipt is the newest, and calls the restored one cancelled: so is the purchase.
    #expect(
      gists(world.notify(listed("pro.lifetime", signed: 40, transaction: "77", revoked: 39), "N", "ANY", at: 41))
        == ["revoked pro"])
    #expect(
      gists(world.notify(sale("pro.lifetime", .nonConsumable, signed: 50), "N2", "REFUND_REVERSED", at: 51))
        == ["granted pro"])
  }

  @Test func anUnknownProductWaitsAndIsAnsweredWhenItIsLearned() {
    let world = World()
    #expect(world.feed(listed("later"), by: u1, at: 20).isEmpty)
    #expect(world.feed(listed("later", signed: 30), by: u1, at: 31).isEmpty)
    #expect(world.quarantined.count == 1)
    #expect(world.view(u1, at: 32)?.waitingFor.map(\.text) == ["later"])
    world.relearn(
      Samples.catalogue(
        #"{"version": "2", "products": [{"id": "later", "type": "non-consumable", "entitlements": ["pro"]}]}"#))
    #expect(gists(world.tick(40)) == ["granted pro", "finishable granted", "finishable granted"])
    #expect(world.view(u1, at: 41)?.waitingFor.isEmpty == true)
  }

  /// The type that Apple signed counts, whatever the catalogue said before: the product waits as one of another type.
  @Test func aToldTypeOverrulesTheCatalogues() {
    let world = World()
    world.feed(listed("coins.100"), by: u1, at: 20)
    #expect(world.balance(u1) == 100)
    let told = gists(world.notify(sale("coins.100", .nonConsumable, signed: 20), "N", "ANY", at: 30))
    #expect(told == ["removed 100 coins"])
    #expect(world.row(u1)?.isWaiting == true)
    // The other way round it never was credited.
    let other = World()
    other.notify(sale("coins.100", .nonConsumable, signed: 20), "N", "ANY", at: 20)
    other.feed(listed("coins.100"), by: u1, at: 30)
    #expect(other.balance(u1) == 0)
  }

  @Test func nothingWithoutAnEndIsASubscription() {
    let world = World()
    #expect(world.feed(listed("gold.monthly"), by: u1, at: 20).isEmpty)
    #expect(world.permits(u1).map(\.permit.status) == [.pending])
    #expect(world.quarantined.count == 1)
  }

  /// What may be credits is shared no more than credits are.
  @Test func untoldPurchasesAreNotShared() {
    let world = World(policy: .share)
    world.feed(listed("coins.100"), by: u1, at: 20)
    world.feed(listed("coins.100"), by: "u2", as: .paymentRestored, at: 30)
    #expect(world.balance(u1) == 100 && world.balance("u2") == 0)
  }
}
