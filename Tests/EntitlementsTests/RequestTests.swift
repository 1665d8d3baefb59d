import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Spends, claims and operators' orders: decided once, answered for good.
@Suite struct RequestTests {
  private let a = "aaaaaaaa-0000-4000-8000-000000000001"

  private func coins(_ id: String = "5", signed: Int64 = 10, revoked: Int64? = nil) -> SampleTransaction {
    SampleTransaction(id, "coins.100", .consumable, signed: signed, purchased: 5, revoked: revoked)
  }

  private func pro(_ id: String = "1") -> SampleTransaction {
    SampleTransaction(id, "pro.lifetime", .nonConsumable, signed: 10, purchased: 5)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  // MARK: Spends (W1, W15)

  @Test("one idempotency key is one spend, whatever unit or amount comes under it later")
  func oneKeyOneSpend() {
    let world = World()
    world.feed(coins(), by: a, at: 20)
    world.feed(SampleTransaction("6", "gems.7", .consumable, signed: 10, purchased: 5), by: a, at: 21)
    #expect(gists(world.spend(30, "k", by: a, at: 30)) == ["removed 30 coins"])
    for (amount, unit) in [(30, "coins"), (3, "gems"), (31, "coins"), (1000, "gems")] as [(Int64, String)] {
      #expect(world.spend(amount, "k", unit, by: a, at: 31).isEmpty)
    }
    #expect(world.balance(a) == 70 && world.balance(a, "gems") == 7)
    #expect(world.answer("spend:k", of: a) == "done spent: coins 30")
    let row = world.answerRow("spend:k", of: a)
    #expect(row?.isConflict(with: "coins 30") == false)
    #expect(row?.isConflict(with: "gems 3") == true && row?.isConflict(with: "coins 31") == true)
    // A refusal is kept as well, and no permit tells of either.
    #expect(world.spend(8, "r", "gems", by: a, at: 32).isEmpty)
    #expect(world.spend(7, "r", "gems", by: a, at: 33).isEmpty)
    #expect(world.spend(70, "r", by: a, at: 34).isEmpty)
    #expect(world.answer("spend:r", of: a) == "refused insufficient-funds: gems 8")
    #expect(world.permits(a).allSatisfy { !$0.permit.proof.hasPrefix("spend:") })
    #expect(world.row(a)?.version == world.answerRow("spend:r", of: a)?.version)
  }

  // MARK: Claims (W15)

  @Test("a claim is answered, whether it moves the purchase or not")
  func claimsAreAnswered() {
    let world = World(policy: .transfer)
    world.feed(pro(), by: "u1", at: 20)
    world.claim("1", "c1", by: "u2", at: 30)
    #expect(world.answer("claim:c1", of: "u2") == "done owner: 1")
    #expect(world.active("u2", at: 40) == ["pro"] && world.active("u1", at: 40) == [])
    // Before the purchase is known.
    world.claim("77", "c2", by: "u3", at: 31)
    #expect(world.answer("claim:c2", of: "u3") == "done owner: 77")

    let keeping = World()
    keeping.feed(pro(), by: "u1", at: 20)
    keeping.claim("1", "c1", by: "u2", at: 30)
    keeping.claim("1", "c1", by: "u1", at: 31)
    #expect(keeping.answer("claim:c1", of: "u2") == "refused another-account: 1")
    #expect(keeping.answer("claim:c1", of: "u1") == "done owner: 1")
  }

  @Test("credits are not shared with an account that claimed before the purchase came")
  func creditsAreNotShared() {
    let world = World(policy: .share)
    world.claim("5", "c1", by: "u1", at: 10)
    world.claim("5", "c2", by: "u2", at: 11)
    world.notify(coins(), "N", "ONE_TIME_CHARGE", at: 20)
    #expect(world.balance("u1") == 100 && world.balance("u2") == 0)
  }

  // MARK: Adjustments

  @Test("an operator adds and takes credits, once per order, into debt too")
  func adjustments() {
    let world = World()
    #expect(gists(world.order(.adjust(CreditUnit("coins")!, amount: 50), "o1", on: a, at: 20)) == ["added 50 coins"])
    #expect(world.order(.adjust(CreditUnit("coins")!, amount: 50), "o1", on: a, at: 21).isEmpty)
    #expect(world.order(.adjust(CreditUnit("coins")!, amount: 60), "o1", on: a, at: 22).isEmpty)
    #expect(world.answer("order:o1", of: a) == "done ordered: adjust coins 50")
    #expect(gists(world.order(.adjust(CreditUnit("coins")!, amount: -80), "o2", on: a, at: 23)) == ["removed 80 coins"])
    #expect(world.balance(a) == -30)
    #expect(world.ledger().map(\.text) == ["\(a) coins order:o1 operator 50", "\(a) coins order:o2 operator -80"])
  }

  // MARK: Orders about access

  @Test("a grant is reversed from then on, and once")
  func reversedGrant() {
    let world = World()
    let pro = EntitlementID("pro")!
    #expect(gists(world.order(.grant(pro, until: nil), "o1", on: "u1", at: 100)) == ["granted pro"])
    #expect(gists(world.order(.reverse(orderID: "o1"), "o2", on: "u1", at: 200)) == ["revoked pro"])
    #expect(world.active("u1", at: 199) == ["pro"] && world.active("u1", at: 200) == [])
    for (id, reversed) in [("o3", "o1"), ("o4", "never"), ("o5", "o2")] {
      #expect(world.order(.reverse(orderID: reversed), id, on: "u1", at: 300).isEmpty)
    }
    #expect(world.answer("order:o3", of: "u1") == "refused is-over: reverse o1")
    #expect(world.answer("order:o4", of: "u1") == "refused unknown-order: reverse never")
    #expect(world.answer("order:o5", of: "u1") == "refused not-reversible: reverse o2")
    #expect(world.order(.grant(pro, until: Instant(milliseconds: 300)), "o6", on: "u1", at: 300).isEmpty)
    #expect(world.answer("order:o6", of: "u1") == "refused is-over: grant pro until 1970-01-01T00:00:00.300Z")
  }

  @Test("a revocation ends what began before it, until its end or its reversal")
  func revocationWithAnEnd() {
    let world = World()
    let entitlement = EntitlementID("pro")!
    world.feed(pro(), by: "u1", at: 20)
    #expect(
      gists(world.order(.revoke(entitlement, until: Instant(milliseconds: 500)), "o1", on: "u1", at: 100))
        == ["revoked pro"])
    // A second one over the end of the first.
    world.order(.revoke(entitlement, until: Instant(milliseconds: 800)), "o2", on: "u1", at: 200)
    #expect(world.tick(500).isEmpty)
    #expect(world.active("u1", at: 99) == ["pro"] && world.active("u1", at: 600) == [])
    #expect(gists(world.tick(800)) == ["granted pro"])
    #expect(gists(world.order(.revoke(entitlement, until: nil), "o3", on: "u1", at: 900)) == ["revoked pro"])
    #expect(gists(world.order(.reverse(orderID: "o3"), "o4", on: "u1", at: 950)) == ["granted pro"])
    #expect(world.active("u1", at: 949) == [] && world.active("u1", at: 950) == ["pro"])
    #expect(world.row("u1").map { (try? AccountRow($0.row)) == $0 } == true)
  }

  @Test("more orders than an account takes are refused and answered")
  func tooManyOrders() {
    let world = World()
    for number in 0..<AccountFacts.maximumOrders {
      world.order(.grant(EntitlementID("e")!, until: Instant(milliseconds: 999)), "o\(number)", on: "u1", at: 100)
    }
    world.order(.grant(EntitlementID("f")!, until: nil), "late", on: "u1", at: 101)
    #expect(world.answer("order:late", of: "u1") == "refused too-many-orders: grant f")
    #expect(world.active("u1", at: 102) == ["e"] && world.quarantined.isEmpty)
  }

  @Test("a transfer is answered to the account that gives")
  func transfersAreAnswered() {
    let world = World()
    world.feed(pro(), by: "u1", at: 20)
    let to2 = AccessOrdered.Order.transfer(OriginalTransactionID("1")!, to: Account("u2")!)
    world.order(to2, "o1", on: "u1", at: 30)
    world.order(.transfer(OriginalTransactionID("1")!, to: Account("u3")!), "o1", on: "u2", at: 31)
    world.order(to2, "o2", on: "u1", at: 32)
    #expect(world.active("u2", at: 40) == ["pro"])
    #expect(world.answer("order:o1", of: "u1") == "done ordered: transfer 1 to u2")
    #expect(world.answer("order:o1", of: "u2") == "refused decided-before: transfer 1 to u3")
    #expect(world.answer("order:o2", of: "u1") == "refused another-account: transfer 1 to u2")
  }
}

// MARK: What the tests are written with

extension World {
  @discardableResult
  func spend(_ amount: Int64, _ key: String, _ unit: String = "coins", by account: String, at: Int64)
    -> [EntitlementEvent]
  {
    feed(
      VerifiedEvent(
        fact: .spendRequested(
          SpendRequested(
            environment: .production, account: Account(account)!, unit: CreditUnit(unit)!, amount: amount,
            idempotencyKey: key))),
      key: "Production/\(account)", at: at)
  }

  @discardableResult
  func claim(_ original: String, _ attempt: String, by account: String, at: Int64) -> [EntitlementEvent] {
    feed(
      VerifiedEvent(
        fact: .claimed(
          PurchaseClaimed(
            environment: .production, account: Account(account)!, originalTransaction: OriginalTransactionID(original)!,
            attempt: attempt))),
      key: "Production/\(original)", at: at)
  }

  @discardableResult
  func order(_ order: AccessOrdered.Order, _ id: String, on account: String, at: Int64) -> [EntitlementEvent] {
    let event = ReceivedEvent.ordered(
      AccessOrdered(
        environment: .production, account: Account(account)!, order: order, orderID: id, operatorName: "op",
        reason: "ticket"))
    return feed(VerifiedEvent(fact: event), key: ReceivedRecord(event).key, at: at)
  }

  /// Lets what entitlements sent back to the beginning come round through verification, until nothing more comes.
  func comeRound(at: Int64) {
    while let record = returned.dropFirst(cameRound).first {
      cameRound += 1
      feed(
        .noted(FactNoted(type: .accessOrdered, data: record.record.value ?? [])),
        key: String(decoding: record.record.key ?? [], as: UTF8.self), at: at)
    }
  }

  /// The answer where the account's own writer gave it.
  func answerRow(_ name: String, of account: String) -> AnswerRow? {
    entitlements.tables.row(AnswerRow.key(.production, Account(account)!, name)).flatMap { try? AnswerRow($0) }
  }

  func answer(_ name: String, of account: String) -> String? {
    answerRow(name, of: account).map { "\($0.outcome.rawValue) \($0.reason): \($0.asked ?? "?")" }
  }

  struct Line {
    var account: String
    var unit: String
    var entry: String
    var counterpart: String
    /// Above zero: the account's balance rose.
    var amount: Int64
    var text: String { "\(account) \(unit) \(entry) \(counterpart) \(amount)" }
  }

  func ledger() -> [Line] {
    entitlements.tables.rows(.ledger).map { row in
      let isAddition = row["credit"].text == "account"
      let names = row.key.values.map { $0.text ?? "" }
      return Line(
        account: names[1], unit: names[2], entry: names[3],
        counterpart: row[isAddition ? "debit" : "credit"].text ?? "",
        amount: (row["amount"].integer ?? 0) * (isAddition ? 1 : -1))
    }
  }
}
