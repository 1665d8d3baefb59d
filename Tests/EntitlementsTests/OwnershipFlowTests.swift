import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// What whose a purchase is does to access and credits: both stages, one behind the other.
@Suite struct OwnershipFlowTests {
  private let token = "aaaaaaaa-0000-4000-8000-00000000000a"
  private let key = "Production/1"

  private let pro = SampleTransaction("1", "pro.lifetime", .nonConsumable, signed: 10, purchased: 5)
  private let coins = SampleTransaction("1", "coins.100", .consumable, signed: 10, purchased: 5)

  private func claim(_ account: String, attempt: String) -> VerifiedEvent {
    VerifiedEvent(
      fact: .claimed(
        PurchaseClaimed(
          environment: .production, account: Account(account)!, originalTransaction: OriginalTransactionID("1")!,
          attempt: attempt)))
  }

  private func order(_ order: AccessOrdered.Order, _ account: String, id: String) -> VerifiedEvent {
    VerifiedEvent(
      fact: .ordered(
        AccessOrdered(
          environment: .production, account: Account(account)!, order: order, orderID: id, operatorName: "op",
          reason: "ticket")))
  }

  private func merge(_ account: String, into target: String, id: String) -> VerifiedEvent {
    order(.merge(into: Account(target)!), account, id: id)
  }

  /// What entitlements sent back to the beginning, as it comes round through verification.
  private func comeRound(_ world: World, at: Int64) {
    for (index, record) in world.returned.enumerated() {
      let event = VerifiedEvent.noted(FactNoted(type: .accessOrdered, data: record.record.value ?? []))
      world.feed(event, key: String(decoding: record.record.key ?? [], as: UTF8.self), at: at + Int64(index))
    }
  }

  // MARK: Credits

  @Test(arguments: RestorePolicy.allCases)
  func twoClaimsOfAConsumableAreOneCredit(_ policy: RestorePolicy) {
    let world = World(policy: policy)
    world.feed(claim("u1", attempt: "x"), key: key, at: 20)
    world.feed(claim("u2", attempt: "y"), key: key, at: 21)
    world.notify(coins, "N", "ONE_TIME_CHARGE", at: 30)
    #expect(world.balance("u1") == 100 && world.balance("u2") == 0)
  }

  @Test(arguments: RestorePolicy.allCases)
  func spentCreditsAreNotRestoredByAnotherAccount(_ policy: RestorePolicy) {
    let world = World(policy: policy)
    world.feed(coins, by: "u1", at: 20)
    let spend = SpendRequested(
      environment: .production, account: Account("u1")!, unit: CreditUnit("coins")!, amount: 80, idempotencyKey: "k")
    world.feed(VerifiedEvent(fact: .spendRequested(spend)), key: "Production/u1", at: 30)
    let answer = world.feed(coins, by: "u2", as: .paymentRestored, at: 40)
    #expect(answer.map(\.gist) == ["finishable none"])
    #expect(world.balance("u1") == 20 && world.balance("u2") == 0)
    #expect(world.permits("u2").map(\.permit.reason) == ["another-account"])
  }

  // MARK: Sharing

  @Test func whoSharesHasAccessUntilATokenBindsIt() {
    let world = World(policy: .share)
    world.feed(pro, by: "u1", at: 20)
    world.feed(pro, by: "u2", as: .paymentRestored, at: 30)
    #expect(world.active("u1", at: 40) == ["pro"] && world.active("u2", at: 40) == ["pro"])
    var bound = pro
    (bound.signed, bound.token) = (50, token)
    world.notify(bound, "N", "ANY", at: 60)
    #expect(world.active("u1", at: 70) == [] && world.active("u2", at: 70) == [])
    #expect(world.active(token, at: 70) == ["pro"])
  }

  @Test func aShareGoesWithAMergedAccount() {
    let world = World(policy: .share)
    world.feed(pro, by: "u1", at: 20)
    world.feed(pro, by: "guest", as: .paymentRestored, at: 30)
    world.feed(merge("guest", into: "known", id: "m"), key: "Production/guest", at: 40)
    comeRound(world, at: 50)
    #expect(world.active("guest", at: 60) == [] && world.active("known", at: 60) == ["pro"])
    #expect(world.active("u1", at: 60) == ["pro"])
  }

  /// Who shared a purchase once and owns it now hands it over whole.
  @Test func aFormerSharerThatOwnsThePurchaseTakesItIntoAMerge() {
    let world = World(policy: .share)
    world.feed(pro, by: "u1", at: 20)
    world.feed(pro, by: "guest", as: .paymentRestored, at: 30)
    world.feed(order(.transfer(OriginalTransactionID("1")!, to: Account("guest")!), "u1", id: "t"), key: key, at: 35)
    #expect(world.active("guest", at: 36) == ["pro"] && world.active("u1", at: 36) == [])
    world.feed(merge("guest", into: "known", id: "m"), key: "Production/guest", at: 40)
    comeRound(world, at: 50)
    #expect(world.active("guest", at: 60) == [] && world.active("known", at: 60) == ["pro"])
  }

  /// More than one order may move is moved by several, up or down.
  @Test(arguments: [Int64(1), -1])
  func aMergeMovesMoreThanOneOrderMay(_ sign: Int64) {
    let world = World()
    let most = sign * AccessOrdered.maximumAdjustment
    for id in ["a", "b"] {
      world.feed(order(.adjust(CreditUnit("coins")!, amount: most), "guest", id: id), key: "Production/guest", at: 20)
    }
    world.feed(
      order(.adjust(CreditUnit("coins")!, amount: sign * 7), "guest", id: "c"), key: "Production/guest", at: 21)
    #expect(world.balance("guest") == 2 * most + sign * 7)
    world.feed(merge("guest", into: "known", id: "m"), key: "Production/guest", at: 40)
    comeRound(world, at: 50)
    #expect(world.balance("guest") == 0 && world.balance("known") == 2 * most + sign * 7)
  }

  @Test func aShareEndsWhereItsAccountIsMergedIntoTheOwner() {
    let world = World(policy: .share)
    world.feed(pro, by: "u1", at: 20)
    world.feed(pro, by: "guest", as: .paymentRestored, at: 30)
    world.feed(merge("guest", into: "u1", id: "m"), key: "Production/guest", at: 40)
    comeRound(world, at: 50)
    #expect(world.active("guest", at: 60) == [] && world.active("u1", at: 60) == ["pro"])
  }

  // MARK: Merging

  @Test func anAnonymousAccountsPurchasesFollowItIntoTheKnownOne() {
    let world = World()
    world.feed(pro, by: "guest", at: 20)
    world.feed(merge("guest", into: "known", id: "m"), key: "Production/guest", at: 30)
    comeRound(world, at: 40)
    #expect(world.active("guest", at: 50) == [] && world.active("known", at: 50) == ["pro"])
    // Whatever comes under the old name later is the known account's, the permit too.
    var later = SampleTransaction("2", "pro.lifetime", .nonConsumable, signed: 60, purchased: 55)
    later.original = "2"
    #expect(world.feed(later, by: "guest", at: 61).map(\.gist) == ["finishable granted"])
    #expect(world.permits("known").map(\.permit.transaction?.text) == ["2"])
    #expect(world.row("known")?.state.facts.purchases.count == 2)
  }
}
