import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// An account merged into another takes everything along, once, whatever comes late.
@Suite struct MergeTests {
  private func coins(_ id: String = "5", signed: Int64 = 10, revoked: Int64? = nil) -> SampleTransaction {
    SampleTransaction(id, "coins.100", .consumable, signed: signed, purchased: 5, revoked: revoked)
  }

  private func pro(_ id: String = "1", signed: Int64 = 10) -> SampleTransaction {
    SampleTransaction(id, "pro.lifetime", .nonConsumable, signed: signed, purchased: 5)
  }

  private func merge(_ world: World, _ account: String, into: String, _ id: String = "m1", at: Int64) {
    world.order(.merge(into: Account(into)!), id, on: account, at: at)
  }

  @Test("credits that were spent are not given back by a merge (W3)")
  func spentCreditsStaySpent() {
    let world = World()
    world.feed(coins(), by: "u1", at: 20)
    world.spend(80, "k", by: "u1", at: 21)
    merge(world, "u1", into: "u2", at: 30)
    // What was spent is missing before the purchase comes: nobody can spend it twice in between.
    #expect(world.balance("u2") == -80 && world.balance("u1") == 100)
    world.comeRound(at: 40)
    #expect(world.balance("u1") == 0 && world.balance("u2") == 20)
    merge(world, "u1", into: "u2", at: 50)
    merge(world, "u1", into: "u2", "m2", at: 51)
    world.comeRound(at: 52)
    #expect(world.balance("u1") == 0 && world.balance("u2") == 20)
    #expect(world.answer("order:m1", of: "u1") == "done ordered: merge into u2")
    #expect(world.answer("from:u1/order:m2", of: "u2") == "refused same-account: merge into u2")
    #expect(
      Set(world.ledger().filter { $0.counterpart == "transfer" }.map(\.text)) == [
        "u1 coins order:m1 transfer 80", "u2 coins from:u1/order:m1 transfer -80",
      ])
  }

  @Test("adjustments and grants go along; a refund after the merge is the new account's")
  func adjustmentsAndGrants() {
    let world = World()
    world.order(.adjust(CreditUnit("coins")!, amount: 7), "o1", on: "u1", at: 10)
    world.order(.grant(EntitlementID("gold")!, until: Instant(milliseconds: 900)), "o2", on: "u1", at: 11)
    world.order(.grant(EntitlementID("past")!, until: Instant(milliseconds: 20)), "o3", on: "u1", at: 12)
    world.order(.grant(EntitlementID("no")!, until: nil), "o4", on: "u1", at: 13)
    world.order(.revoke(EntitlementID("no")!, until: nil), "o5", on: "u1", at: 14)
    world.order(.grant(EntitlementID("no")!, until: nil), "own", on: "u2", at: 15)
    world.tick(25)
    world.feed(coins(), by: "u1", at: 26)
    merge(world, "u1", into: "u2", at: 30)
    world.comeRound(at: 40)
    #expect(world.balance("u1") == 0 && world.balance("u2") == 107)
    // The revocation bears on what the old account had, not on what the new one had of its own.
    #expect(world.active("u1", at: 50) == [] && world.active("u2", at: 50) == ["gold", "no"])
    #expect(world.published("u2") == ["gold", "no"] && world.published("u1") == [])
    world.notify(coins(signed: 50, revoked: 45), "R", "REFUND", at: 51)
    #expect(world.balance("u1") == 0 && world.balance("u2") == 7)
    // An order about the old account reaches what it granted, where that is now.
    world.order(.reverse(orderID: "o2"), "o6", on: "u1", at: 60)
    #expect(world.active("u2", at: 60) == ["no"])
    #expect(world.answer("from:u1/order:o6", of: "u2") == "done ordered: reverse o2")
    world.tick(1000)
    #expect(world.row("u2").map { (try? AccountRow($0.row)) == $0 } == true)
    #expect(world.row("u1").map { (try? AccountRow($0.row)) == $0 } == true)
  }

  @Test("a spend sent again after the merge is not spent twice, and a new one finds the credits (W14)")
  func spendsAfterTheMerge() {
    let world = World()
    world.feed(coins(), by: "u1", at: 20)
    world.spend(30, "k1", by: "u1", at: 21)
    world.feed(coins("6"), by: "u2", at: 22)
    merge(world, "u1", into: "u2", at: 30)
    world.comeRound(at: 31)
    #expect(world.balance("u2") == 170)
    world.spend(30, "k1", by: "u1", at: 40)
    #expect(world.balance("u2") == 170)
    world.spend(40, "k2", by: "u1", at: 41)
    world.spend(40, "k2", by: "u1", at: 42)
    // The other account's own key of that name is another one.
    world.spend(5, "k2", by: "u2", at: 43)
    #expect(world.balance("u1") == 0 && world.balance("u2") == 125)
    #expect(world.answer("spend:k1", of: "u1") == "done spent: coins 30")
    #expect(world.answer("from:u1/spend:k2", of: "u2") == "done spent: coins 40")
    #expect(world.answer("spend:k2", of: "u2") == "done spent: coins 5")
    // And once more: the answers stay with who gave them.
    merge(world, "u2", into: "u3", "m2", at: 50)
    world.comeRound(at: 51)
    for (key, account) in [("k1", "u1"), ("k2", "u1"), ("k2", "u2")] { world.spend(40, key, by: account, at: 60) }
    #expect(world.balance("u1") == 0 && world.balance("u2") == 0 && world.balance("u3") == 125)
    world.spend(25, "k3", by: "u1", at: 61)
    #expect(world.balance("u3") == 100)
    #expect(world.answer("from:u1/spend:k3", of: "u3") == "done spent: coins 25")
  }

  @Test("a purchase that was decided for the old account and comes after its merge follows (W14)")
  func latePurchase() throws {
    let world = World()
    world.feed(pro(), by: "u1", at: 10)
    // The log as it is when ownership is ahead of entitlements: the purchase stands in `owned` behind the merge.
    merge(world, "u1", into: "u2", at: 30)
    let late = PurchaseOwned(
      environment: .production, account: Account("u1")!, basis: .claim,
      originalTransaction: OriginalTransactionID("9")!,
      proof: nil, signedDate: nil, notification: nil, report: nil, parts: [coins("9").part()])
    world.owned(.owned(late), at: 31)
    #expect(world.balance("u1") == 100)
    #expect(
      world.returned.map { String(decoding: $0.record.key ?? [], as: UTF8.self) } == ["Production/1", "Production/9"])
  }

  @Test("two accounts merged into each other at one time end, and lose nothing")
  func mutualMerge() {
    let world = World()
    world.order(.adjust(CreditUnit("coins")!, amount: 5), "o1", on: "u1", at: 10)
    world.order(.adjust(CreditUnit("coins")!, amount: 7), "o2", on: "u2", at: 11)
    // Each decided before the other's alias was there.
    for (account, into, id) in [("u1", "u2", "m1"), ("u2", "u1", "m2")] {
      let order = ReceivedEvent.ordered(
        AccessOrdered(
          environment: .production, account: Account(account)!, order: .merge(into: Account(into)!), orderID: id,
          operatorName: "op", reason: "r"))
      world.owned(
        .noted(
          AccountFact(
            environment: .production, account: Account(account)!,
            fact: FactNoted(type: .accessOrdered, data: order.data))), at: 20)
    }
    world.spend(12, "k", by: "u1", at: 30)
    #expect(world.balance("u1") + world.balance("u2") == (world.answer("from:u1/spend:k", of: "u1") == nil ? 12 : 0))
  }
}
