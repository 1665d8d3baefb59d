import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesTestKit
import Testing

@Suite struct EntitlementsStageTests {
  private let a = "aaaaaaaa-0000-4000-8000-00000000000a"
  private let b = "bbbbbbbb-0000-4000-8000-00000000000b"

  private func pro(
    _ transaction: String = "1", signed: Int64 = 10, token: String? = nil, revoked: Int64? = nil,
    product: String = "pro.lifetime"
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: "1", product, .nonConsumable, signed: signed, purchased: 5, revoked: revoked, token: token)
  }

  private func coins(
    _ transaction: String = "1", signed: Int64 = 10, quantity: Int64? = nil, revoked: Int64? = nil,
    percentage: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, "coins.100", .consumable, signed: signed, purchased: 5, quantity: quantity, revoked: revoked,
      percentage: percentage, token: a)
  }

  private func gold(
    _ transaction: String, _ start: Int64, _ end: Int64, signed: Int64? = nil, revoked: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: "1", "gold.monthly", .autoRenewable, signed: signed ?? start, purchased: start,
      expires: end, lineItem: "9\(transaction)", revoked: revoked, token: a)
  }

  private func gists(_ events: [EntitlementEvent]) -> [String] { events.map(\.gist) }

  // MARK: C23

  @Test func revocationUnderASeenTransactionEndsAccessOnce() {
    let world = World()
    #expect(gists(world.feed(pro(token: a), by: a, at: 20)) == ["granted pro", "finishable granted"])
    // Another statement about the same transaction is another proof, with its own permit: without content.
    #expect(
      gists(world.feed(pro(signed: 30, token: a, revoked: 25), by: a, at: 40)) == ["revoked pro", "finishable none"])
    #expect(world.notify(pro(signed: 31, token: a, revoked: 25), "N1", "REFUND", at: 50).isEmpty)
    let later = 25 + 11 * 86_400_000 as Int64
    #expect(world.notify(pro(signed: 60, token: a, revoked: later), "N2", "REFUND", at: 60).isEmpty)
    #expect(world.active(a, at: 100) == [])
    #expect(world.row(a)?.state.facts.purchases.first?.revocationDate?.milliseconds == later)
  }

  @Test func refundThatComesFirstIsATombstone() {
    let world = World()
    #expect(world.notify(pro(signed: 30, token: a, revoked: 25), "N1", "REFUND", at: 40).isEmpty)
    #expect(gists(world.feed(pro(token: a), by: a, at: 50)) == ["finishable none"])
    #expect(world.permits(a).map(\.permit.reason) == ["revoked"])
    #expect(world.active(a, at: 60) == [])
  }

  @Test func reversedRefundGrantsAgainWithoutARuleOfItsOwn() {
    let world = World()
    world.feed(pro(token: a), by: a, at: 20)
    world.notify(pro(signed: 30, token: a, revoked: 25), "N1", "REFUND", at: 40)
    let events = world.notify(pro(signed: 50, token: a), "N2", "REFUND_REVERSED", at: 60)
    #expect(gists(events) == ["granted pro"])
    guard case .entitlement(let change) = events[0].content else { return }
    #expect(change.rule == .refundReversal)
  }

  // MARK: C24

  @Test func graceAndRecovery() {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    let failing = gold("1", 100, 1000, signed: 1000)
    let out = world.notify(
      failing, "N1", "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1000, grace: 2000), at: 1001)
    #expect(gists(out) == ["extended gold", "extended member"])
    #expect(world.tick(1999).isEmpty)
    #expect(world.published(a) == ["gold", "member"])
    // Recovered in time: no gap, and nothing expires.
    let recovered = world.notify(
      gold("2", 1800, 4800), "N2", "DID_RENEW", subtype: "BILLING_RECOVERY",
      renewal: SampleRenewal("1", "gold.monthly", signed: 1800), at: 1801)
    #expect(gists(recovered) == ["extended gold", "extended member"])
    #expect(world.tick(2000).isEmpty)
    #expect(gists(world.tick(4800)) == ["expired gold", "expired member"])
  }

  @Test func graceThatRunsOutExpiresAtItsEnd() {
    let world = World()
    world.notify(
      gold("1", 100, 1000), "N1", "SUBSCRIBED", renewal: SampleRenewal("1", "gold.monthly", signed: 1000, grace: 2000),
      at: 1001)
    #expect(world.row(a)?.state.dueAt == Instant(milliseconds: 2000))
    #expect(gists(world.tick(2000)) == ["expired gold", "expired member"])
    #expect(world.row(a)?.state.dueAt == nil)
    // Out of grace, the chain stays open: a late recovery restores at once.
    #expect(
      gists(world.notify(gold("2", 2500, 5500), "N2", "DID_RENEW", at: 2501)) == ["granted gold", "granted member"])
  }

  // MARK: C19, C26

  @Test func expiredNotificationNeverEndsTheNextPeriod() {
    let world = World()
    world.notify(gold("1", 1000, 5000), "N1", "SUBSCRIBED", at: 1000)
    world.notify(gold("2", 5000, 9000), "N2", "DID_RENEW", at: 5001)
    #expect(world.notify(gold("1", 1000, 5000, signed: 5000), "N3", "EXPIRED", at: 5002).isEmpty)
    #expect(world.tick(5003).isEmpty)
    #expect(world.active(a, at: 5003) == ["gold", "member"])
  }

  @Test func autoRenewOffIsNoCancellation() {
    let world = World()
    world.notify(gold("1", 1000, 5000), "N1", "SUBSCRIBED", at: 1000)
    let out = world.notify(
      gold("1", 1000, 5000, signed: 2000), "N2", "DID_CHANGE_RENEWAL_STATUS", subtype: "AUTO_RENEW_DISABLED",
      renewal: SampleRenewal("1", "gold.monthly", signed: 2000, autoRenews: false), at: 2001)
    #expect(out.isEmpty)
    #expect(world.active(a, at: 4999) == ["gold", "member"])
    #expect(world.active(a, at: 5000) == [])
  }

  @Test func refundedAndBoughtAgain() {
    let world = World()
    world.feed(pro(token: a), by: a, at: 20)
    world.notify(pro(signed: 30, token: a, revoked: 25), "N1", "REFUND", at: 40)
    let second = SampleTransaction("2", "pro.lifetime", .nonConsumable, signed: 50, purchased: 50, token: a)
    #expect(gists(world.feed(second, by: a, at: 60)) == ["granted pro", "finishable granted"])
  }

  // MARK: C30, C31

  @Test func oneConsumableIsCreditedOnceWhoeverSendsIt() {
    let world = World()
    let sale = SampleTransaction("1", "coins.100", .consumable, signed: 10, purchased: 5)
    for round in 0..<50 {
      world.feed(sale, by: "u1", at: Int64(20 + round))
      world.feed(sale, by: "u2", at: Int64(20 + round))
      world.notify(sale, "N", "ONE_TIME_CHARGE", at: Int64(20 + round))
    }
    #expect(world.balance("u1") == 100)
    #expect(world.balance("u2") == 0)
    #expect(world.permits("u1").map(\.permit.content) == [.granted])
    #expect(world.permits("u2").map(\.permit.reason) == ["another-account"])
    #expect(world.entitlements.tables.rows(.ledger).count == 1)
    // One credit and one permit; one permit without content.
    #expect(world.row("u1")?.version == 2)
    #expect(world.row("u2")?.version == 1)
  }

  @Test func quantities() {
    let world = World()
    world.feed(coins("1", quantity: 3), by: a, at: 20)
    #expect(world.balance(a) == 300)
    world.feed(coins("2"), by: a, at: 21)
    world.feed(coins("3"), by: a, at: 22)
    #expect(world.balance(a) == 500)
  }

  // MARK: C32

  private func spend(_ amount: Int64, _ key: String, _ unit: String = "coins") -> VerifiedEvent {
    VerifiedEvent(
      fact: .spendRequested(
        SpendRequested(
          environment: .production, account: Account(a)!, unit: CreditUnit(unit)!, amount: amount, idempotencyKey: key))
    )
  }

  @Test func refundsOfSpentCredits() {
    let world = World()
    let key = "Production/\(a)"
    world.feed(coins(), by: a, at: 20)
    #expect(gists(world.feed(spend(80, "s1"), key: key, at: 30)) == ["removed 80 coins"])
    for round in 0..<3 { world.notify(coins(signed: 40, revoked: 35), "R1", "REFUND", at: Int64(41 + round)) }
    #expect(world.balance(a) == -80)
    for round in 0..<2 { world.notify(coins(signed: 50), "R2", "REFUND_REVERSED", at: Int64(51 + round)) }
    #expect(world.balance(a) == 20)
    world.notify(coins(signed: 60, revoked: 55), "R3", "REFUND", at: 61)
    world.notify(coins(signed: 55), "R4", "REFUND_DECLINED", at: 62)
    #expect(world.balance(a) == -80)
    let lines = world.entitlements.tables.rows(.ledger)
    #expect(lines.count == 5)
    #expect(lines.reduce(0) { $0 + ($1["credit"].text == "account" ? 1 : -1) * ($1["amount"].integer ?? 0) } == -80)
    #expect(lines.allSatisfy { $0["debit"].text != $0["credit"].text && ($0["amount"].integer ?? 0) > 0 })
  }

  @Test func refundOfAShare() {
    let world = World()
    world.feed(coins(quantity: 3), by: a, at: 20)
    #expect(
      gists(world.notify(coins(signed: 30, quantity: 3, revoked: 25, percentage: 33_333), "R", "REFUND", at: 31))
        == ["removed 100 coins"])
    #expect(world.balance(a) == 200)
  }

  @Test func refundOfAnUnseenConsumableLeavesATombstone() {
    let world = World()
    #expect(world.notify(coins(signed: 30, revoked: 25), "R", "REFUND", at: 31).isEmpty)
    #expect(gists(world.feed(coins(), by: a, at: 40)) == ["finishable none"])
    #expect(world.balance(a) == 0)
    #expect(world.entitlements.tables.rows(.ledger).isEmpty)
  }

  @Test func spendsAreDecidedOnceAndNeverBelowZero() {
    let world = World()
    let key = "Production/\(a)"
    #expect(world.feed(spend(1, "s0"), key: key, at: 10).isEmpty)
    #expect(world.permits(a).isEmpty)
    #expect(world.answer("spend:s0", of: a) == "refused insufficient-funds: coins 1")
    world.feed(coins(), by: a, at: 20)
    // Refused once, refused for good; another key is another spend.
    #expect(world.feed(spend(1, "s0"), key: key, at: 30).isEmpty)
    #expect(gists(world.feed(spend(100, "s1"), key: key, at: 31)) == ["removed 100 coins"])
    #expect(world.feed(spend(100, "s1"), key: key, at: 32).isEmpty)
    #expect(world.feed(spend(1, "s2"), key: key, at: 33).isEmpty)
    #expect(world.balance(a) == 0)
    #expect(world.feed(spend(1, "s1", "gems"), key: key, at: 34).isEmpty)
  }

  // MARK: C35, C36: permits

  @Test func onePermitPerProof() {
    let world = World()
    var events: [EntitlementEvent] = []
    for round in 0..<100 { events += world.feed(pro(token: a), by: a, at: Int64(20 + round)) }
    #expect(gists(events) == ["granted pro", "finishable granted"])
    #expect(events.map(\.version) == [1, 2])
    #expect(world.permits(a).map(\.permit.status) == [.finishable])
  }

  @Test func whatIsOwnedAlreadyIsFinishedWithoutNewContent() {
    let world = World()
    world.notify(pro(token: a), "N", "ONE_TIME_CHARGE", at: 20)
    #expect(gists(world.feed(pro(token: a), by: a, at: 30)) == ["finishable already-granted"])
    #expect(
      gists(world.feed(pro("7", signed: 40, token: a), by: a, as: .paymentRestored, at: 41)) == [
        "finishable already-granted"
      ])
    #expect(gists(world.feed(coins(), by: a, at: 50)) == ["added 100 coins", "finishable granted"])
  }

  @Test func expiredPeriodIsFinishedWithoutContent() {
    let world = World()
    #expect(gists(world.feed(gold("1", 100, 1000), by: a, at: 5000)) == ["finishable none"])
    #expect(world.permits(a).map(\.permit.reason) == ["expired"])
    // Nothing will change by time: nothing is due.
    #expect(world.row(a)?.state.dueAt == nil)
  }

  @Test func failedPaymentsMayBeFinishedAtOnce() {
    let world = World()
    var failed = PaymentReported(type: .paymentFailed, environment: .production, account: Account("u1"), attempt: "t7")
    failed.product = ProductID("pro.lifetime")
    failed.failure = PaymentFailure(domain: "SKErrorDomain", code: 2, userCancelled: true)
    let event = VerifiedEvent(fact: .payment(failed))
    #expect(gists(world.feed(event, key: "Production/u1", at: 20)) == ["finishable none"])
    #expect(world.feed(event, key: "Production/u1", at: 21).isEmpty)
    #expect(world.permits("u1").map(\.permit.proof) == ["attempt:t7"])
  }

  @Test func addedDeferredAndFinishedAreNoPermits() {
    let world = World()
    for type in [EventType.paymentAdded, .paymentDeferred, .paymentFinished] {
      var event = PaymentReported(type: type, environment: .production, account: Account("u1"), attempt: type.rawValue)
      event.product = ProductID("pro.lifetime")
      #expect(world.feed(VerifiedEvent(fact: .payment(event)), key: "Production/u1", at: 20).isEmpty)
    }
    #expect(world.permits("u1").isEmpty)
    #expect(world.row("u1") == nil)
  }

  @Test func rejectedAndPendingAnswers() {
    let world = World()
    let report = Report(type: .paymentPurchased, account: Account("u1"), attempt: "x", transaction: TransactionID("9"))
    let pending = VerifiedEvent.pending(
      PurchasePending(
        environment: .production, proof: "p", reason: "outage", attempt: 1, nextTry: Instant(milliseconds: 9),
        report: report))
    let rejected = VerifiedEvent.rejected(
      PurchaseRejected(
        environment: .production, proof: "p", reason: "untrusted-chain", explanation: "x", report: report,
        evidence: .null))
    #expect(world.feed(pending, key: "Production/1", at: 20).isEmpty)
    #expect(world.permits("u1").map(\.permit.status) == [.pending])
    #expect(world.feed(rejected, key: "Production/1", at: 30).isEmpty)
    #expect(world.feed(pending, key: "Production/1", at: 40).isEmpty)
    #expect(world.permits("u1").map(\.permit.reason) == ["untrusted-chain"])
    #expect(world.permits("u1").map(\.permit.status) == [.refused])
    #expect(world.view("u1", at: 50)?.permits.count == 1)
  }

  @Test func pendingProofIsAnsweredWhenItsVerdictComes() {
    let world = World()
    let sale = pro(token: a)
    let pending = VerifiedEvent.pending(
      PurchasePending(
        environment: .production, proof: sale.part().digest, reason: "outage", attempt: 1,
        nextTry: Instant(milliseconds: 9), report: Report(type: .paymentPurchased, account: Account(a))))
    world.feed(pending, key: "Production/1", at: 20)
    #expect(gists(world.feed(sale, by: a, at: 30)) == ["granted pro", "finishable granted"])
    world.feed(pending, key: "Production/1", at: 40)
    #expect(world.permits(a).map(\.permit.status) == [.finishable])
  }

  // MARK: The catalogue

  @Test func unknownProductWaitsForTheCatalogue() {
    let world = World()
    let sale = pro(token: a, product: "pro.next")
    #expect(world.feed(sale, by: a, at: 20).isEmpty)
    #expect(world.feed(sale, by: a, at: 21).isEmpty)
    #expect(world.quarantined.count == 1)
    #expect(world.permits(a).map(\.permit.status) == [.pending])
    #expect(world.view(a, at: 30)?.waitingFor.map(\.text) == ["pro.next"])
    #expect(world.tick(30).isEmpty)
    world.relearn(
      Samples.catalogue(
        #"{"version": "2", "products": [{"id": "pro.next", "type": "non-consumable", "entitlements": ["pro"]}]}"#))
    let events = world.tick(40)
    #expect(gists(events) == ["granted pro", "finishable granted"])
    #expect(events.allSatisfy { $0.catalogueVersion == "2" })
    #expect(world.tick(50).isEmpty)
    #expect(world.row(a)?.isWaiting == false)
  }

  @Test func stillUnknownIsAskedOncePerCatalogue() {
    let world = World()
    world.feed(pro(token: a, product: "pro.next"), by: a, at: 20)
    world.relearn(Samples.catalogue(#"{"version": "2", "products": []}"#))
    #expect(world.tick(30).isEmpty)
    let now = Instant(milliseconds: 40)
    for partition in 0..<world.topics.partitions {
      let place = TopicPartition(world.topics.name(.owned), partition)
      #expect(world.entitlements.scheduled(place, now: now, workedOff: now).isEmpty)
    }
  }

  // MARK: The clock

  @Test func nothingIsWrittenWhileNothingIsDue() {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    let before = world.records.count
    world.tick(999)
    #expect(world.records.count == before)
    #expect(gists(world.tick(1000)) == ["expired gold", "expired member"])
    let after = world.records.count
    world.tick(5000)
    #expect(world.records.count == after)
  }

  @Test func laggingPartitionNeverTakesAwayARenewalThatItHasNotRead() {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    // Long after the end in log time, and no tick yet: the account keeps what it has.
    #expect(world.feed(coins("5"), by: a, at: 3000).map(\.gist) == ["added 100 coins", "finishable granted"])
    #expect(world.published(a) == ["gold", "member"])
    #expect(
      gists(world.notify(gold("2", 1000, 9000), "N", "DID_RENEW", at: 3001)) == ["extended gold", "extended member"])
    #expect(world.tick(4000).isEmpty)
  }

  @Test func accessThatBeginsLaterIsGrantedByATickAndThePermitWithIt() {
    let world = World()
    // Our clock is behind Apple's.
    #expect(world.feed(gold("1", 2000, 9000), by: a, at: 1000).isEmpty)
    #expect(world.permits(a).map(\.permit.reason) == ["not-begun"])
    #expect(world.tick(1999).isEmpty)
    #expect(gists(world.tick(2000)) == ["granted gold", "granted member", "finishable granted"])
  }

  @Test func upgradeReducesTheLowerLevel() {
    let world = World()
    var silver = gold("1", 100, 9000)
    silver.product = "silver.monthly"
    world.feed(silver, by: a, at: 100)
    let events = world.feed(gold("2", 500, 9500), by: a, at: 500)
    #expect(gists(events) == ["granted gold", "extended member", "reduced silver", "finishable granted"])
    #expect(gists(world.tick(501)) == ["expired silver"])
    #expect(world.active(a, at: 501) == ["gold", "member"])
  }

  @Test func oneUnreadableRowHoldsUpNobody() throws {
    let world = World(partitions: 1)
    for account in ["u1", "u2"] {
      var period = gold("1", 100, 1000)
      period.token = nil
      period.original = "1\(account)"
      world.feed(period, by: account, at: 100)
    }
    let key = AccountRow.key(.production, Account("u1")!)
    var row = try #require(world.entitlements.tables.row(key))
    row.values[Table.account.index("document")] = .bytes([0])
    world.entitlements.tables.put(row)
    #expect(gists(world.tick(1000)) == ["expired gold", "expired member"])
    #expect(world.quarantined.count == 1 && world.quarantined[0].hasPrefix("unreadable"))
    #expect(world.tick(1001).isEmpty)
    #expect(world.quarantined.count == 1)
  }

  // MARK: Transfers and orders

  @Test func transferMovesAccessAndCredits() {
    let world = World()
    world.feed(pro(token: a), by: a, at: 20)
    world.feed(coins("5"), by: a, at: 21)
    var moved = coins("5", signed: 30)
    moved.token = b
    #expect(gists(world.feed(moved, by: b, at: 31)) == ["removed 100 coins", "added 100 coins", "finishable granted"])
    #expect(
      gists(world.feed(pro(signed: 40, token: b), by: b, at: 41)) == [
        "revoked pro", "granted pro", "finishable granted",
      ])
    #expect(world.balance(a) == 0 && world.balance(b) == 100)
    #expect(world.active(a, at: 50) == [] && world.active(b, at: 50) == ["pro"])
  }

  private func order(_ order: AccessOrdered.Order, _ account: String, _ id: String) -> VerifiedEvent {
    VerifiedEvent(
      fact: .ordered(
        AccessOrdered(
          environment: .production, account: Account(account)!, order: order, orderID: id, operatorName: "op",
          reason: "ticket")))
  }

  @Test func manualOrdersAreDecidedOnce() {
    let world = World()
    let key = "Production/u1"
    let grant = order(.grant(EntitlementID("pro")!, until: Instant(milliseconds: 500)), "u1", "o1")
    #expect(gists(world.feed(grant, key: key, at: 100)) == ["granted pro"])
    #expect(
      gists(world.feed(order(.revoke(EntitlementID("pro")!, until: nil), "u1", "o2"), key: key, at: 200)) == [
        "revoked pro"
      ])
    #expect(world.feed(grant, key: key, at: 300).isEmpty)
    #expect(world.active("u1", at: 300) == [])
  }

  @Test func mergeHandsEachChainOver() {
    let world = World()
    world.feed(pro(), by: "u1", at: 20)
    world.feed(SampleTransaction("5", "coins.100", .consumable, signed: 10, purchased: 5), by: "u1", at: 21)
    #expect(world.feed(order(.merge(into: Account("u2")!), "u1", "m1"), key: "Production/u1", at: 30).isEmpty)
    #expect(world.returned.count == 2)
    // As they come round through verification.
    for (index, record) in world.returned.enumerated() {
      let event = VerifiedEvent.noted(FactNoted(type: .accessOrdered, data: record.record.value ?? []))
      world.feed(event, key: String(decoding: record.record.key ?? [], as: UTF8.self), at: Int64(40 + index))
    }
    #expect(world.active("u1", at: 50) == [] && world.active("u2", at: 50) == ["pro"])
    #expect(world.balance("u1") == 0 && world.balance("u2") == 100)
  }

  // MARK: The record of it all

  @Test func eachEventHasItsRowsAndItsState() throws {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    world.tick(1000)
    let changes = world.entitlements.tables.rows(.change)
    let events = world.records.filter { $0.coordinates.topic == world.topics.name(.entitlements) }
    #expect(changes.count == events.count)
    for (change, event) in zip(changes, events) {
      #expect(change["event"].text == event.record.headerText("ce_id"))
      #expect(change["type"].text.map { "\($0).v1" } == event.record.headerText("ce_type"))
    }
    let states = world.records.filter { $0.coordinates.topic == world.topics.name(.entitlementState) }
    #expect(
      states.map { String(decoding: $0.record.key ?? [], as: UTF8.self) }.suffix(2) == [
        "Production/\(a)/gold", "Production/\(a)/member",
      ])
    let row = try #require(
      world.entitlements.tables.row(RowKey(.entitlement, [.text("Production"), .text(a), .text("gold")])))
    #expect(row["active"].integer == 0)
    #expect(row["document"].bytes == states[states.count - 2].record.value)
  }

  @Test func eventsSurviveTheWire() {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    world.feed(coins("5"), by: a, at: 110)
    world.tick(1000)
    for record in world.records where record.coordinates.topic == world.topics.name(.entitlements) {
      #expect(Samples.event(record).data == record.record.value)
    }
  }

  @Test func accountRowsSurviveTheStore() throws {
    let world = World()
    world.feed(gold("1", 100, 1000), by: a, at: 100)
    world.notify(
      gold("1", 100, 1000, signed: 200), "N", "ANY",
      renewal: SampleRenewal("1", "gold.monthly", signed: 200, grace: 3000),
      at: 210)
    world.feed(coins("5", quantity: 2, revoked: 9, percentage: 500), by: a, at: 110)
    world.feed(pro("77", token: a, product: "later"), by: a, at: 120)
    world.feed(order(.grant(EntitlementID("x")!, until: nil), a, "o1"), key: "Production/\(a)", at: 130)
    world.feed(order(.revoke(EntitlementID("y")!, until: nil), a, "o2"), key: "Production/\(a)", at: 131)
    world.tick(3000)
    let row = try #require(world.row(a))
    #expect(try AccountRow(row.row) == row)
    #expect(row.isWaiting && row.state.openPermits.count == 1 && row.state.facts.orders.count == 2)
  }

  /// 7.6: the same partition again gives the same bytes.
  @Test func replayIsByteIdentical() {
    let first = World()
    var dice = SeededRandom(seed: 7)
    let items = (1...20).flatMap { History(number: $0, &dice).items }
    for (index, item) in items.enumerated() {
      first.feed(item.event, key: item.key, at: Int64(index) * 100)
      if index.isMultiple(of: 10) { first.tick(Int64(index) * 100) }
    }
    let owned = first.records.filter { $0.coordinates.topic == first.topics.name(.owned) }
    let shadow = InMemoryStage(EntitlementsStage(catalogue: first.catalogue), topics: first.topics)
    var places = InMemoryPlaces(partitions: first.topics.partitions)
    let replayed = owned.flatMap { stored in shadow.feed(stored).map { places.place($0) } }
    let live = first.records.filter { $0.coordinates.topic != first.topics.name(.owned) }
    #expect(!live.isEmpty)
    #expect(replayed == live)
    #expect(shadow.tables.rows(.account) == first.entitlements.tables.rows(.account))
  }

  @Test func misroutedAndUnreadableRecordsAreAlarms() {
    let stage = InMemoryStage(EntitlementsStage(catalogue: Samples.catalogue))
    var places = InMemoryPlaces(partitions: 1)
    let tick = OwnedEvent.noted(
      AccountFact(
        environment: .production, account: Account("u1")!, fact: FactNoted(type: .paymentAdded, data: Array("{}".utf8)))
    )
    for (key, data) in [("Production/u2", tick.data), ("Production/u1", Array("[]".utf8))] {
      let envelope = Envelope(id: "x", source: "/test", type: .factNoted)
      let record = ProducedRecord(
        topic: "purchases.owned",
        record: Record(
          key: Array(key.utf8), value: data, headers: envelope.headers, timestamp: Instant(milliseconds: 1)))
      guard case .quarantine(_, alarm: .unreadable)? = stage.actions(places.place(record)).first else {
        Issue.record("not an alarm: \(key)")
        continue
      }
    }
  }
}
