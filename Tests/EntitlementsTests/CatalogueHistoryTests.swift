import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesTestKit
import Testing

/// Which catalogue counts is told by times in the log and in what Apple signed, and not by when a process was started.
@Suite struct CatalogueHistoryTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"
  private let b = "bbbbbbbb-0000-4000-8000-00000000000b"

  private func coins(_ version: String, _ amount: Int64?, unit: String = "coins") -> Catalogue {
    let product = amount.map {
      #"{"id": "coins", "type": "consumable", "credits": {"unit": "\#(unit)", "amount": \#($0)}}"#
    }
    return Samples.catalogue(#"{"version": "\#(version)", "products": [\#(product ?? "")]}"#)
  }

  private func sale(
    _ transaction: String = "1", bought: Int64 = 5, signed: Int64 = 10, token: String? = nil, quantity: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, "coins", .consumable, signed: signed, purchased: bought, quantity: quantity, token: token)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  @Test func transferAfterANewCatalogueMovesWhatWasBought() {
    for newer in [coins("2", 200), coins("2", nil), coins("2", 30, unit: "gems")] {
      let world = World(coins("1", 100))
      world.feed(sale(token: a), by: a, at: 20)
      world.relearn(newer, from: 25)
      #expect(world.balance(a) == 100)
      let moved = gists(world.feed(sale(signed: 30, token: b), by: b, at: 31))
      #expect(moved == ["removed 100 coins", "added 100 coins", "finishable granted"])
      #expect(world.balance(a) == 0 && world.balance(b) == 100)
    }
  }

  @Test func aLateStatementIsWorthWhatItWasWorthOnItsDay() {
    let world = World(coins("1", 100))
    world.relearn(coins("2", 200), from: 25)
    #expect(gists(world.feed(sale("1", bought: 24), by: a, at: 1000)) == ["added 100 coins", "finishable granted"])
    #expect(
      gists(world.feed(sale("2", bought: 25, quantity: 2), by: a, at: 1001)) == [
        "added 400 coins", "finishable granted",
      ])
  }

  @Test func whatNoCatalogueOfItsDayKnewIsWorthWhatTheFirstLaterOneSays() {
    for told in [Int64(30), 50, 70] {
      let world = World(coins("1", nil))
      if told == 30 { world.feed(sale(bought: 28), by: a, at: told) }
      world.relearn(coins("2", 40), from: 40)
      world.tick(45)
      if told == 50 { world.feed(sale(bought: 28), by: a, at: told) }
      world.relearn(coins("3", 99), from: 60)
      world.tick(65)
      if told == 70 { world.feed(sale(bought: 28), by: a, at: told) }
      #expect(world.balance(a) == 40, "told at \(told)")
    }
  }

  /// A withdrawn product that is sold all the same waits; what was bought while it was there stays.
  @Test func aGapInTheCataloguesIsFilledByTheNextOne() {
    let world = World(coins("1", 100))
    world.relearn(coins("2", nil), from: 20)
    world.feed(sale("1", bought: 10), by: a, at: 30)
    #expect(world.balance(a) == 100)
    world.feed(sale("2", bought: 25), by: a, at: 31)
    #expect(world.balance(a) == 100 && world.view(a, at: 32)?.waitingFor.map(\.text) == ["coins"])
    world.relearn(coins("3", 7), from: 40)
    world.tick(50)
    #expect(world.balance(a) == 107 && world.view(a, at: 50)?.waitingFor == [])
  }

  @Test func aRecordIsDecidedByTheCatalogueOfItsTime() {
    let first = #"{"id": "pro", "type": "non-consumable", "entitlements": ["pro"]}"#
    let second = #"{"id": "pro", "type": "non-consumable", "entitlements": ["extra", "pro"]}"#
    let world = World(Samples.catalogue(#"{"version": "1", "products": [\#(first)]}"#))
    world.relearn(Samples.catalogue(#"{"version": "2", "products": [\#(second)]}"#), from: 100)
    func pro(_ transaction: String) -> SampleTransaction {
      SampleTransaction(transaction, "pro", .nonConsumable, signed: 10, purchased: 5, token: a)
    }
    // Kept and known, but not in force yet.
    let before = world.feed(pro("1"), by: a, at: 99)
    #expect(gists(before) == ["granted pro", "finishable granted"] && before.allSatisfy { $0.catalogueVersion == "1" })
    let after = world.feed(pro("2"), by: a, at: 100)
    #expect(gists(after).contains("granted extra") && after.allSatisfy { $0.catalogueVersion == "2" })
    // A record that is a little older comes behind it: no account goes back.
    let late = world.feed(pro("3"), by: a, at: 98)
    #expect(gists(late) == ["finishable granted"] && late[0].catalogueVersion == "2")
    #expect(world.active(a, at: 99) == ["pro"] && world.active(a, at: 100) == ["extra", "pro"])
  }

  // MARK: The sweep

  private func pass(_ version: String, _ pass: [String], _ other: String = "other") -> Catalogue {
    let names = pass.map { #""\#($0)""# }.joined(separator: ", ")
    return Samples.catalogue(
      #"""
      {"version": "\#(version)", "products": [
        {"id": "pass", "type": "non-consumable", "entitlements": [\#(names)]},
        {"id": "else", "type": "non-consumable", "entitlements": ["\#(other)"]}]}
      """#)
  }

  private func account(_ number: Int) -> String { "aaaaaaaa-0000-4000-8000-00000000000\(number)" }

  private func owners(of product: String, _ numbers: Range<Int>, in world: World) {
    for number in numbers {
      let sale = SampleTransaction(
        "\(number + 1)", product, .nonConsumable, signed: 10, purchased: 5, token: account(number))
      world.notify(sale, "N\(number)", "ONE_TIME_CHARGE", at: 20)
    }
  }

  /// Also those that wait for nothing: what they have may mean something else now.
  @Test func aNewCatalogueSettlesAllAccounts() {
    let world = World(pass("1", ["old", "same"]), partitions: 2, atOnce: 2)
    owners(of: "pass", 0..<6, in: world)
    owners(of: "else", 6..<9, in: world)
    world.relearn(pass("2", ["new", "same"]), from: 100)
    #expect(world.tick(99).isEmpty)
    // What is published stands until the sweep has come by, and so says the reading side.
    #expect(world.published(account(0)) == ["old", "same"] && world.active(account(0), at: 100) == ["old", "same"])
    let events = world.tick(100)
    #expect(Set(events.map(\.gist)) == ["granted new", "revoked old"] && events.count == 12)
    for event in events {
      guard case .entitlement(let change) = event.content else { continue }
      #expect(change.rule == .catalogue && event.catalogueVersion == "2")
    }
    for number in 0..<9 {
      #expect(world.row(account(number))?.catalogueVersion == "2")
      #expect(world.published(account(number)) == world.active(account(number), at: 100))
    }
    #expect(world.active(account(0), at: 99) == ["old", "same"])
    let before = world.records.count
    #expect(world.tick(200).isEmpty)
    #expect(world.records.count == before)
  }

  /// What the stages before have not worked off yet is not swept by a catalogue that was not in force then.
  @Test func aSweepWaitsForWhatIsBehind() {
    let world = World(pass("1", ["old"]), partitions: 1)
    owners(of: "pass", 0..<2, in: world)
    world.relearn(pass("2", ["new"]), from: 100)
    let place = TopicPartition(world.topics.name(.owned), 0)
    func scheduled(workedOff: Int64) -> Int {
      world.entitlements.scheduled(
        place, now: Instant(milliseconds: 500), workedOff: Instant(milliseconds: workedOff)
      ).count
    }
    #expect(scheduled(workedOff: 99) == 0 && scheduled(workedOff: 100) == 1)
    // One account is ahead of the sweep already: nothing of it looks outdated to an earlier instant.
    let sale = SampleTransaction("9", "else", .nonConsumable, signed: 10, purchased: 5, token: account(0))
    world.notify(sale, "N9", "ONE_TIME_CHARGE", at: 450)
    #expect(world.published(account(0)) == ["new", "other"] && scheduled(workedOff: 99) == 0)
    world.tick(500)
    #expect(world.published(account(1)) == ["new"])
  }

  /// 7.6: what a stage that was there all along decided, one that knows all catalogues from the start decides as well.
  @Test func aReplayThatKnowsAllCataloguesAgrees() {
    let world = World(coins("1", 100))
    world.feed(sale("1", bought: 5), by: a, at: 20)
    world.relearn(coins("2", nil), from: 25)
    world.feed(sale("2", bought: 28, signed: 28), by: a, at: 30)
    world.tick(31)
    world.relearn(coins("3", 300), from: 40)
    world.feed(sale("1", bought: 5, signed: 41, token: b), by: nil, at: 42)
    world.tick(50)
    world.feed(sale("3", bought: 12), by: a, at: 39)
    let owned = world.records.filter { $0.coordinates.topic == world.topics.name(.owned) }
    let shadow = InMemoryStage(EntitlementsStage(history: world.history), topics: world.topics)
    for record in owned { _ = shadow.feed(record) }
    for table in [Table.account, .balance, .ledger, .change, .permit] {
      #expect(shadow.tables.rows(table) == world.entitlements.tables.rows(table), "\(table.name)")
    }
    #expect(world.balance(a) == 400 && world.balance(b) == 100)
  }

  /// A record that has nothing to do with purchases must not make the account look settled: the sweep passes it by then.
  @Test(arguments: ["spend", "adjustment", "claim", "refused proof"])
  func whatComesBeforeTheSweepFindsTheNewerCatalogue(_ what: String) {
    let world = World(coins("1", nil))
    world.feed(sale("1", bought: 12, token: a), by: a, at: 20)
    #expect(world.view(a, at: 20)?.waitingFor.map(\.text) == ["coins"])
    world.relearn(coins("2", 40), from: 25)
    let events =
      switch what {
      case "spend": world.spend(40, "k", by: a, at: 26)
      case "adjustment":
        world.order(.adjust(CreditUnit("coins")!, amount: -40), "o", on: a, at: 26)
      case "claim": world.claim("1", "c", by: a, at: 26)
      default: world.feed(sale("2", bought: 12, token: b), by: a, at: 26)
      }
    #expect(events.first?.gist == "added 40 coins" && gists(events).contains("finishable granted"), "\(gists(events))")
    world.tick(30)
    let isSpent = what == "spend" || what == "adjustment"
    #expect(world.balance(a) == (isSpent ? 0 : 40) && world.view(a, at: 30)?.waitingFor == [])
    #expect(world.permits(a).allSatisfy { $0.permit.status == .finishable })
  }

  /// A permit is given once: the same proof again, before the sweep has come by, finds the answer that the newer catalogue gave.
  @Test func aProofThatWaitedIsAnsweredOnceWhenItComesAgainBeforeTheSweep() {
    let world = World(coins("1", nil))
    world.feed(sale("1", bought: 12, token: a), by: a, at: 20)
    world.relearn(coins("2", 40), from: 25)
    #expect(
      gists(world.feed(sale("1", bought: 12, token: a), by: a, at: 26)) == ["added 40 coins", "finishable granted"])
    #expect(world.permits(a).map(\.permit.content) == [.granted])
    #expect(world.feed(sale("1", bought: 12, token: a), by: a, at: 27).isEmpty)
  }

  /// The same without a catalogue: what begins later is answered by the record that comes before the tick.
  @Test func aProofThatWaitedForItsBeginningIsAnsweredOnce() {
    let world = World()
    let pro = SampleTransaction("1", "pro.lifetime", .nonConsumable, signed: 10, purchased: 50, token: a)
    #expect(gists(world.feed(pro, by: a, at: 20)) == [])
    #expect(world.permits(a).map(\.permit.status) == [.pending])
    #expect(gists(world.feed(pro, by: a, at: 60)).filter { $0.hasPrefix("finishable") } == ["finishable granted"])
    #expect(world.permits(a).map(\.permit.content) == [.granted])
  }

  // MARK: Any order

  /// Amounts, a unit, a duration and entitlements change, and a product is away for a while: what comes of it is a matter of
  /// days and catalogues, and not of when, in which order and how often it is told.
  @Test func anyOrderEndsTheSameUnderNewerCatalogues() {
    let seed = OrderIndependenceTests.seed
    print("catalogues: SEED=\(seed)")
    let first = String(decoding: OrderIndependenceTests.catalogue.json, as: UTF8.self)
    let second = first.replacing(#""version":"1""#, with: #""version":"2""#).replacing(":100}", with: ":150}")
      .replacing("gems.7", with: "gems.other").replacing(#"["gold","member"]"#, with: #"["gilt","member"]"#)
    let third = first.replacing(#""version":"1""#, with: #""version":"3""#)
      .replacing(#""unit":"gems","amount":7"#, with: #""unit":"jewels","amount":9"#).replacing("PT2S", with: "PT3S")
    for number in 0..<6 {
      var dice = SeededRandom(seed: seed &+ UInt64(number) &* 7_368_787)
      let items = (1...60).flatMap { History(number: $0, &dice).items }
      func play(_ items: [History.Item], partitions: Int32, ticks: Int64) -> World {
        let world = World(Samples.catalogue(first), partitions: partitions)
        world.relearn(Samples.catalogue(second), from: 4_000)
        world.relearn(Samples.catalogue(third), from: 7_000)
        let start = dice.roll(0...OrderIndependenceTests.end)
        for (index, item) in items.enumerated() {
          let now = start + Int64(index) * (OrderIndependenceTests.end - start) / Int64(items.count)
          world.pass(item.event, key: item.key, at: now)
          if ticks > 0, dice.chance(Int64(items.count) / ticks) { world.tick(now) }
        }
        world.tick(OrderIndependenceTests.end)
        return world
      }
      let one = play(items, partitions: 3, ticks: 0)
      let two = play((items + items.prefix(40)).shuffled(using: &dice), partitions: 5, ticks: 6)
      for instant in [OrderIndependenceTests.end / 3, OrderIndependenceTests.end] {
        #expect(
          one.digest(at: instant).hex == two.digest(at: instant).hex,
          "SEED=\(seed) world \(number): \(OrderIndependenceTests.difference(one, two, at: instant))")
      }
      #expect(one.digest(at: OrderIndependenceTests.end).accounts > 30)
    }
  }
}
