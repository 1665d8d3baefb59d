import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

/// What another catalogue would give and take, told before it comes into force.
@Suite struct CatalogueDiffTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"

  private func catalogue(_ version: String, _ products: String...) -> Catalogue {
    Samples.catalogue(#"{"version": "\#(version)", "products": [\#(products.joined(separator: ", "))]}"#)
  }

  private let pass = #"{"id": "pass", "type": "non-consumable", "entitlements": ["old", "same"]}"#
  private let season = #"{"id": "season", "type": "non-renewing", "duration": "PT1S", "entitlements": ["season"]}"#
  private let coins = #"{"id": "coins", "type": "consumable", "credits": {"unit": "coins", "amount": 100}}"#

  @Test func accountsAndProductsThatWouldChange() throws {
    let world = World(catalogue("1", pass, season, coins))
    func buy(_ id: String, _ product: String, _ type: ProductType, quantity: Int64? = nil) {
      world.notify(
        SampleTransaction(
          id, product, type, signed: 10, purchased: 5, quantity: quantity, token: a), "N\(id)", "ONE_TIME_CHARGE",
        at: 20)
    }
    buy("1", "pass", .nonConsumable)
    buy("2", "season", .nonRenewing)
    buy("3", "coins", .consumable)
    buy("4", "gems", .consumable, quantity: 3)
    let next = catalogue(
      "2", #"{"id": "pass", "type": "non-consumable", "entitlements": ["new", "same"]}"#,
      #"{"id": "season", "type": "non-renewing", "duration": "PT2S", "entitlements": ["season"]}"#,
      #"{"id": "gems", "type": "consumable", "credits": {"unit": "gems", "amount": 7}}"#)
    let diff = CatalogueDiff(world.history, next: next, at: Instant(milliseconds: 100))
    #expect(diff.products.map(\.id.text) == ["coins", "gems", "pass", "season"])
    #expect(diff.products.map { $0.before == nil } == [false, true, false, false])
    #expect(diff.products.map { $0.after == nil } == [true, false, false, false])
    let account = diff.account(try #require(world.row(a)))
    #expect(
      account.changes.map { "\($0.entitlement) \($0.step.rawValue)" } == ["new gains", "old loses", "season ends"])
    #expect(account.changes.map { $0.product?.text } == ["pass", "pass", "season"])
    #expect(account.changes[2].before?.endsAt?.milliseconds == 1005)
    #expect(account.changes[2].after?.endsAt?.milliseconds == 2005)
    // What was booked stays, though the product is gone; what waited is worth something now.
    #expect(account.credits.map { "\($0.amount) \($0.unit)" } == ["21 gems"])
    #expect(account.waitsFor == [] && account.waitsNoLonger.map(\.text) == ["gems"])

    // And so it comes when it is in force.
    world.relearn(next, from: 100)
    let gists = world.tick(100).map(\.gist)
    #expect(gists == ["added 21 gems", "granted new", "revoked old", "extended season"])
    #expect(world.balance(a) == 100 && world.balance(a, "gems") == 21)

    var writer = JSONWriter()
    account.write(&writer)
    let json = try JSON(parsing: writer.bytes)
    #expect(json["changes"]?.array?.count == 3 && json["account"]?.string == a)
    #expect(json["changes"]?.array?.first?["after"]?["productId"]?.string == "pass")
  }

  @Test func theSameCatalogueChangesNothing() throws {
    let world = World(catalogue("1", pass, coins))
    world.feed(
      SampleTransaction("1", "coins", .consumable, signed: 10, purchased: 5, token: a), by: a, at: 20)
    // Another amount counts for what is bought from then on.
    let dearer = coins.replacing("100", with: "200")
    let diff = CatalogueDiff(world.history, next: catalogue("2", pass, dearer), at: Instant(milliseconds: 100))
    #expect(diff.products.map(\.id.text) == ["coins"])
    #expect(diff.account(try #require(world.row(a))).isEmpty)
    #expect(CatalogueDiff(world.history, next: catalogue("2", pass, coins), at: .distantFuture).products.isEmpty)
  }
}
