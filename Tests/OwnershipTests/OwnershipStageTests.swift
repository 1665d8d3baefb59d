import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesOwnership
import PurchasesTestKit
import Testing

@Suite struct OwnershipStageTests {
  private static let tokenA = "aaaaaaaa-0000-4000-8000-00000000000a"
  private static let tokenB = "bbbbbbbb-0000-4000-8000-00000000000b"

  /// One ownership stage and the log before it.
  private final class Bench {
    let stage: InMemoryStage
    var places = InMemoryPlaces(partitions: 2)
    private(set) var quarantined: [(reason: String, alarm: QuarantineAlarm?)] = []

    init(_ settings: OwnershipSettings = OwnershipSettings()) { stage = InMemoryStage(OwnershipStage(settings)) }

    /// What comes out, as key and event.
    func feed(_ event: VerifiedEvent, key: String = "Production/1", at: Int64 = 100) -> [(
      key: String, event: OwnedEvent
    )] {
      let stored = places.place(event.record(key: key, at: at))
      let actions = stage.actions(stored)
      for action in actions {
        if case .quarantine(let reason, let alarm) = action { quarantined.append((reason, alarm)) }
      }
      return stage.records(stored, actions).map { produced in
        do {
          let type = try Envelope(reading: produced.record).type
          let event = try OwnedEvent(type: type, data: produced.record.value ?? [])
          #expect(event.data == produced.record.value)
          return (String(decoding: produced.record.key ?? [], as: UTF8.self), event)
        } catch { preconditionFailure("\(error)") }
      }
    }

    var chain: ChainRow? {
      stage.tables.row(ChainRow.key(.production, OriginalTransactionID("1")!)).flatMap { try? ChainRow($0) }
    }
  }

  private func pro(
    _ transaction: String = "1", signed: Int64 = 10, token: String? = nil, revoked: Int64? = nil
  ) -> SampleTransaction {
    SampleTransaction(
      transaction, original: "1", "pro", .nonConsumable, signed: signed, purchased: 5, revoked: revoked, token: token)
  }

  private func gist(_ out: [(key: String, event: OwnedEvent)]) -> [String] {
    out.map { key, event in
      switch event {
      case .owned(let event):
        "\(key) owned \(event.basis.rawValue) \(event.parts.count)\(event.report == nil ? "" : " reported")"
      case .transferred(let event):
        "\(key) \(event.from)>\(event.to) \(event.basis.rawValue) \(event.parts.count)\(event.report == nil ? "" : " reported")"
      case .unowned(let event): "\(key) unowned \(event.parts.count)"
      case .ticked: "\(key) ticked"
      case .consentRescinded(let event): "\(key) rescinded \(event.appTransaction) \(event.bundleID)"
      case .noted(let event): "\(key) noted \(event.fact.type.rawValue) \(event.outcome.rawValue)"
      }
    }
  }

  // MARK: C29

  @Test func tokensCompareWithoutRegardToCase() {
    let bench = Bench()
    #expect(
      gist(bench.feed(pro(token: Self.tokenA.uppercased()).reported(by: Self.tokenA)))
        == ["Production/\(Self.tokenA) owned token 1 reported"])
  }

  @Test func withoutTokenAndOwnerItWaits() {
    let bench = Bench()
    #expect(gist(bench.feed(pro().notified("N1", "ONE_TIME_CHARGE"), at: 100)) == ["Production/1 unowned 1"])
    #expect(bench.chain?.unownedSince == Instant(milliseconds: 100))
    #expect(bench.chain?.account == nil)
    // A later statement about another part of the chain doesn't move the date.
    _ = bench.feed(pro(signed: 11).notified("N2", "ANY"), at: 200)
    #expect(bench.chain?.unownedSince == Instant(milliseconds: 100))
    let claim = ReceivedEvent.claimed(
      PurchaseClaimed(
        environment: .production, account: Account("u1")!, originalTransaction: OriginalTransactionID("1")!,
        attempt: "a"))
    #expect(
      gist(bench.feed(VerifiedEvent(fact: claim), at: 300)) == [
        "Production/u1 owned claim 1", "Production/u1 noted purchase.claimed owner",
      ])
    #expect(bench.chain?.unownedSince == nil)
    // Known now: what has no token goes to the bound account.
    #expect(gist(bench.feed(pro(signed: 12).notified("N3", "ANY"))) == ["Production/u1 owned claim 1"])
    #expect(gist(bench.feed(VerifiedEvent(fact: claim), at: 400)) == ["Production/u1 noted purchase.claimed owner"])
  }

  @Test func claimBeforeThePurchaseIsKept() {
    let bench = Bench()
    let claim = ReceivedEvent.claimed(
      PurchaseClaimed(
        environment: .production, account: Account("u1")!, originalTransaction: OriginalTransactionID("1")!,
        attempt: "a"))
    #expect(gist(bench.feed(VerifiedEvent(fact: claim))) == ["Production/u1 noted purchase.claimed owner"])
    #expect(gist(bench.feed(pro().notified("N1", "ANY"))) == ["Production/u1 owned claim 1"])
  }

  @Test func anotherAccountsTokenGivesTheSenderNothing() {
    let bench = Bench()
    #expect(
      gist(bench.feed(pro(token: Self.tokenA).reported(by: "u2")))
        == ["Production/\(Self.tokenA) owned token 1", "Production/u2 noted payment.purchased another-account"])
  }

  @Test func changedTokenIsATransferUnderBothAccounts() {
    let bench = Bench()
    _ = bench.feed(pro(token: Self.tokenA).reported(by: Self.tokenA))
    let out = bench.feed(pro("2", signed: 20, token: Self.tokenB).reported(by: Self.tokenB, as: .paymentRestored))
    #expect(
      gist(out) == [
        "Production/\(Self.tokenA) \(Self.tokenA)>\(Self.tokenB) token 0",
        "Production/\(Self.tokenB) \(Self.tokenA)>\(Self.tokenB) token 1 reported",
      ])
    // The older statement, late: it is the new owner's, and the old sender learns so.
    #expect(
      gist(bench.feed(pro(token: Self.tokenA).reported(by: Self.tokenA)))
        == [
          "Production/\(Self.tokenB) owned token 1",
          "Production/\(Self.tokenA) noted payment.purchased another-account",
        ])
  }

  /// Both sides and whose it is now come of one record, hence in one transaction of the store and one of the log.
  @Test func aTransferIsOneDecisionWithBothSides() throws {
    let stage = InMemoryStage(OwnershipStage())
    var places = InMemoryPlaces(partitions: 2)
    for event in [pro(token: Self.tokenA), pro("2", signed: 20, token: Self.tokenB)] {
      let stored = places.place(event.notified(event.transaction, "ANY").record(key: "Production/1", at: 100))
      let actions = stage.actions(stored)
      guard event.transaction == "2" else { continue }
      var sides: [PurchaseTransferred] = []
      var owners: [String?] = []
      for action in actions {
        switch action {
        case .emit(let out):
          guard case .transferred(let side) = try OwnedEvent(type: out.type, data: out.data) else { continue }
          sides.append(side)
        case .write(.put(let row)) where row.key.table == .chain: owners.append(row["account"].text)
        default: continue
        }
      }
      #expect(sides.map(\.account.text) == [Self.tokenA, Self.tokenB])
      #expect(sides.allSatisfy { $0.from.text == Self.tokenA && $0.to.text == Self.tokenB })
      #expect(owners == [Self.tokenB])
    }
  }

  @Test(arguments: ["user-123", "00000000-0000-0000-0000-000000000000", ""])
  func malformedTokensCountAsAbsent(_ token: String) {
    let bench = Bench()
    #expect(gist(bench.feed(pro(token: token).reported(by: "u1"))) == ["Production/u1 owned claim 1 reported"])
    _ = bench.feed(pro(signed: 11, token: token).notified("N", "ANY"))
    // People are told once, without an alarm.
    #expect(bench.quarantined.map(\.alarm) == [nil])
    #expect(bench.quarantined.first?.reason.contains("token") == true)
  }

  // MARK: C30

  @Test func firstWriterOwnsWhatHasNoToken() {
    let bench = Bench()
    let sale = SampleTransaction("1", "coins", .consumable, signed: 10, purchased: 5)
    #expect(gist(bench.feed(sale.reported(by: "u1"))) == ["Production/u1 owned claim 1 reported"])
    for _ in 0..<3 {
      #expect(
        gist(bench.feed(sale.reported(by: "u2")))
          == ["Production/u1 owned claim 1", "Production/u2 noted payment.purchased another-account"])
    }
  }

  @Test func restorePolicies() {
    let restore = pro("2", signed: 20).reported(by: "u2", as: .paymentRestored)
    let keep = Bench()
    _ = keep.feed(pro().reported(by: "u1"))
    #expect(
      gist(keep.feed(restore)) == [
        "Production/u1 owned claim 1", "Production/u2 noted payment.restored another-account",
      ])
    let transfer = Bench(OwnershipSettings(restorePolicy: .transfer))
    _ = transfer.feed(pro().reported(by: "u1"))
    #expect(gist(transfer.feed(restore)) == ["Production/u1 u1>u2 claim 0", "Production/u2 u1>u2 claim 1 reported"])
    let share = Bench(OwnershipSettings(restorePolicy: .share))
    _ = share.feed(pro().reported(by: "u1"))
    #expect(gist(share.feed(restore)) == ["Production/u1 owned claim 1", "Production/u2 owned share 1 reported"])
    #expect(share.chain?.account == Account("u1"))
  }

  /// A restore as the account that the owner was merged into takes nothing from anybody, and so damps nothing.
  @Test func whoWasMergedDoesNotPullAtTheirOwn() {
    let bench = Bench(
      OwnershipSettings(restorePolicy: .transfer, restoreDamping: CalendarDuration(milliseconds: 1_000)))
    _ = bench.feed(pro().reported(by: "guest"), at: 100)
    _ = bench.feed(order(.merge(into: Account("known")!), "guest"), key: "Production/guest", at: 110)
    #expect(
      gist(bench.feed(pro().reported(by: "known", as: .paymentRestored), at: 120))
        == ["Production/guest guest>known claim 0", "Production/known guest>known claim 1 reported"])
    #expect(bench.chain?.ownership.movedAt == nil)
    #expect(
      gist(bench.feed(pro().reported(by: "u2", as: .paymentRestored), at: 130))
        == ["Production/known known>u2 claim 0", "Production/u2 known>u2 claim 1 reported"])
  }

  @Test func twoAccountsThatPullBackAndForthAreDamped() throws {
    let bench = Bench(
      OwnershipSettings(restorePolicy: .transfer, restoreDamping: CalendarDuration(milliseconds: 1_000)))
    _ = bench.feed(pro().reported(by: "u1"), at: 100)
    let here = pro("2", signed: 20).reported(by: "u1", as: .paymentRestored)
    let there = pro("3", signed: 30).reported(by: "u2", as: .paymentRestored)
    #expect(
      gist(bench.feed(there, at: 200)) == ["Production/u1 u1>u2 claim 0", "Production/u2 u1>u2 claim 1 reported"])
    for at in [201, 1199] as [Int64] {
      let out = bench.feed(here, at: at)
      #expect(gist(out) == ["Production/u2 owned claim 1", "Production/u1 noted payment.restored another-account"])
      guard case .noted(let fact) = try #require(out.last).event else {
        Issue.record("not a fact")
        return
      }
      #expect(fact.reason == Permit.Reason.movedRecently)
    }
    #expect(
      gist(bench.feed(claim("u1", attempt: "x"), at: 300)) == ["Production/u1 noted purchase.claimed another-account"])
    let chain = try #require(bench.chain)
    #expect(try ChainRow(chain.row) == chain && chain.ownership.movedAt == Instant(milliseconds: 200))
    #expect(
      gist(bench.feed(here, at: 1200)) == ["Production/u2 u2>u1 claim 0", "Production/u1 u2>u1 claim 2 reported"])
  }

  private func claim(_ account: String, attempt: String) -> VerifiedEvent {
    VerifiedEvent(
      fact: .claimed(
        PurchaseClaimed(
          environment: .production, account: Account(account)!, originalTransaction: OriginalTransactionID("1")!,
          attempt: attempt)))
  }

  private let coins = SampleTransaction("1", "coins", .consumable, signed: 10, purchased: 5)

  /// StoreKit restores no consumables: who restores one holds the buyer's bytes.
  @Test(arguments: RestorePolicy.allCases)
  func consumablesAreNeverRestoredByAnotherAccount(_ policy: RestorePolicy) {
    let bench = Bench(OwnershipSettings(restorePolicy: policy))
    _ = bench.feed(coins.reported(by: "u1"))
    let refused = ["Production/u1 owned claim 1", "Production/u2 noted payment.restored another-account"]
    #expect(gist(bench.feed(coins.reported(by: "u2", as: .paymentRestored))) == refused)
    #expect(gist(bench.feed(claim("u2", attempt: "x"))) == ["Production/u2 noted purchase.claimed another-account"])
    #expect(bench.chain?.account == Account("u1"))
  }

  /// Before anything is known of it, it may be a consumable: the first claim stands.
  @Test(arguments: RestorePolicy.allCases)
  func whatIsNotKnownYetIsTheFirstClaimants(_ policy: RestorePolicy) {
    let bench = Bench(OwnershipSettings(restorePolicy: policy))
    #expect(gist(bench.feed(claim("u1", attempt: "x"))) == ["Production/u1 noted purchase.claimed owner"])
    #expect(gist(bench.feed(claim("u2", attempt: "y"))) == ["Production/u2 noted purchase.claimed another-account"])
    #expect(gist(bench.feed(coins.notified("N", "ONE_TIME_CHARGE"))) == ["Production/u1 owned claim 1"])
  }

  /// A receipt that doesn't tell the type may list a consumable.
  @Test func whatHasNoToldTypeIsNotMovedByPolicy() {
    let bench = Bench(OwnershipSettings(restorePolicy: .transfer))
    let untold = SampleTransaction("1", "coins", .unknown("not told"), signed: 10, purchased: 5)
    _ = bench.feed(untold.reported(by: "u1"))
    _ = bench.feed(untold.reported(by: "u2", as: .paymentRestored))
    #expect(bench.chain?.account == Account("u1"))
  }

  @Test func whatATokenBindsIsNotShared() {
    let bench = Bench(OwnershipSettings(restorePolicy: .share))
    _ = bench.feed(pro(token: Self.tokenA).reported(by: Self.tokenA))
    #expect(
      gist(bench.feed(pro(token: Self.tokenA).reported(by: "u2", as: .paymentRestored)))
        == [
          "Production/\(Self.tokenA) owned token 1", "Production/u2 noted payment.restored another-account",
        ])
  }

  @Test func sharingEndsWhenATokenBindsThePurchase() {
    let bench = Bench(OwnershipSettings(restorePolicy: .share))
    _ = bench.feed(pro().reported(by: "u1"))
    _ = bench.feed(pro().reported(by: "u2", as: .paymentRestored))
    #expect(
      gist(bench.feed(pro(signed: 20, token: Self.tokenA).notified("N", "ANY")))
        == [
          "Production/u1 u1>\(Self.tokenA) token 0", "Production/\(Self.tokenA) u1>\(Self.tokenA) token 1",
          "Production/u2 u2>\(Self.tokenA) token 0",
        ])
    // Once.
    #expect(
      gist(bench.feed(pro(signed: 21, token: Self.tokenA).notified("N2", "ANY")))
        == ["Production/\(Self.tokenA) owned token 1"])
  }

  /// The token in a family member's copy is the purchaser's, if there is one: the copy is the member's who claims it.
  @Test(arguments: ["FAMILY_SHARED", "ASSIGNED"])
  func membersCopiesFollowNoToken(_ ownership: String) {
    let bench = Bench()
    var copy = pro(token: Self.tokenA)
    copy.ownershipType = ownership
    #expect(gist(bench.feed(copy.reported(by: "member"))) == ["Production/member owned claim 1 reported"])
    #expect(gist(bench.feed(copy.reported(by: nil))) == ["Production/member owned claim 1"])
  }

  @Test func reportWithoutSenderAnswersTheAccountThatTheProofNames() {
    let bench = Bench()
    #expect(
      gist(bench.feed(pro(token: Self.tokenA).reported(by: nil))) == [
        "Production/\(Self.tokenA) owned token 1 reported"
      ])
    _ = bench.feed(pro(signed: 20, token: Self.tokenB).notified("N", "ANY"))
    #expect(
      gist(bench.feed(pro(token: Self.tokenA).reported(by: nil)))
        == [
          "Production/\(Self.tokenB) owned token 1",
          "Production/\(Self.tokenA) noted payment.purchased another-account",
        ])
  }

  // MARK: C20, C21, C24

  @Test func secondBodyUnderOneUUIDIsAnAlarmAndStillCounts() {
    let bench = Bench()
    let first = pro(token: Self.tokenA).notified("ABCD", "ONE_TIME_CHARGE")
    for _ in 0..<3 { _ = bench.feed(first) }
    #expect(bench.quarantined.isEmpty)
    let other = pro(signed: 20, token: Self.tokenA, revoked: 15).notified("abcd", "REFUND")
    #expect(gist(bench.feed(other)) == ["Production/\(Self.tokenA) owned token 1"])
    #expect(bench.quarantined.map(\.alarm) == [.contradiction])
    #expect(bench.chain?.kept.first?.rank.isRevoked == true)
  }

  // MARK: C19, C23

  private func standings(_ out: [(key: String, event: OwnedEvent)]) -> [[SignedPart.Standing?]] {
    out.map { _, event in
      switch event {
      case .owned(let event): event.parts.map(\.standing)
      case .unowned(let event): event.parts.map(\.standing)
      case .transferred(let event): event.parts.map(\.standing)
      case .ticked, .consentRescinded, .noted: []
      }
    }
  }

  @Test func whatChangesNothingSaysWhy() {
    let bench = Bench()
    let renewal = SampleRenewal("1", "pro", signed: 9)
    #expect(standings(bench.feed(pro(signed: 20, revoked: 15).notified("N1", "REFUND"))) == [[nil]])
    // The purchase, late, with news of another kind.
    #expect(standings(bench.feed(pro(signed: 10).notified("N2", "ANY", renewal: renewal))) == [[.superseded, nil]])
    #expect(standings(bench.feed(pro(signed: 20, revoked: 15).notified("N3", "REFUND"))) == [[.copy]])
    // The same bytes from a client, who ranks below; whoever gets all that is known gets the newest.
    #expect(
      standings(bench.feed(pro(signed: 20, revoked: 15).reported(by: "u1", as: .paymentRestored))) == [[nil, nil]])
    #expect(standings(bench.feed(pro(signed: 10).reported(by: "u1"))) == [[.superseded]])
    #expect(bench.chain?.kept.allSatisfy { $0.signed.standing == nil } == true)
  }

  /// A client's copy first: the notification's ranks above it, and says the same.
  @Test func theSameBytesFromABetterSourceAreACopy() {
    let bench = Bench()
    _ = bench.feed(pro().reported(by: "u1"))
    #expect(standings(bench.feed(pro().notified("N", "ANY"))) == [[.copy]])
    #expect(bench.chain?.kept.first?.rank.source == .notification)
  }

  @Test func eventsWithoutTransactionHaveNoEffect() {
    let bench = Bench()
    let test = VerifiedEvent.verified(
      PurchaseVerified(
        environment: .production, kind: .notification, proof: "p", signedDate: Instant(milliseconds: 1), parts: [],
        notification: NotificationFacts(
          uuid: "U", type: "TEST", subtype: nil, version: "2.0", signedDate: Instant(milliseconds: 1)),
        report: Report(type: .storeNotified), evidence: .null))
    #expect(bench.feed(test, key: "Production/U").isEmpty)
    #expect(bench.quarantined.isEmpty)
    #expect(bench.stage.tables.rows(.chain).isEmpty)
  }

  @Test func graceWithoutRenewalInfoIsLookedAtByAPerson() {
    let bench = Bench()
    let period = SampleTransaction(
      "1", "gold", .autoRenewable, signed: 10, purchased: 5, expires: 50, lineItem: "9", token: Self.tokenA)
    #expect(bench.feed(period.notified("N", "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD")).count == 1)
    #expect(bench.quarantined.map(\.alarm) == [nil])
  }

  // MARK: Facts, verdicts, orders

  @Test func factsGoToTheirAccounts() {
    let bench = Bench()
    var failed = PaymentReported(type: .paymentFailed, environment: .sandbox, account: Account("u1"), attempt: "a")
    failed.product = ProductID("pro")
    failed.failure = PaymentFailure(domain: "SKErrorDomain", code: 2, userCancelled: true)
    #expect(
      gist(bench.feed(VerifiedEvent(fact: .payment(failed)), key: "Sandbox/u1"))
        == ["Sandbox/u1 noted payment.failed passed"])
    let acted = ReceivedEvent.operatorActed(
      OperatorActed(actID: "x", operatorName: "o", reason: "r", action: "replay", arguments: []))
    #expect(bench.feed(VerifiedEvent(fact: acted), key: "operator/x").isEmpty)
  }

  @Test func rejectedAndPendingProofsAreAnsweredToTheirSender() {
    let bench = Bench()
    let report = Report(type: .paymentPurchased, account: Account("u1"), attempt: "a")
    let rejected = VerifiedEvent.rejected(
      PurchaseRejected(
        environment: nil, proof: "p", reason: "untrusted-chain", explanation: "x", report: report, evidence: .null))
    let out = bench.feed(rejected)
    #expect(gist(out) == ["Production/u1 noted payment.purchased rejected"])
    guard case .noted(let fact) = out[0].event else { return }
    #expect(fact.reason == "untrusted-chain" && fact.proof == "p")
    let pending = VerifiedEvent.pending(
      PurchasePending(
        environment: .production, proof: "p", reason: "outage", attempt: 1, nextTry: Instant(milliseconds: 5),
        report: report))
    #expect(gist(bench.feed(pending)) == ["Production/u1 noted payment.purchased pending"])
  }

  private func order(_ order: AccessOrdered.Order, _ account: String = "u1", id: String = "o1") -> VerifiedEvent {
    VerifiedEvent(
      fact: .ordered(
        AccessOrdered(
          environment: .production, account: Account(account)!, order: order, orderID: id, operatorName: "op",
          reason: "ticket 7")))
  }

  @Test func operatorsTransferIsDecidedOnce() {
    let bench = Bench()
    _ = bench.feed(pro().reported(by: "u1"))
    let transfer = order(.transfer(OriginalTransactionID("1")!, to: Account("u2")!))
    #expect(
      gist(bench.feed(transfer)) == [
        "Production/u1 u1>u2 order 0", "Production/u2 u1>u2 order 1", "Production/u1 noted access.ordered passed",
      ])
    #expect(bench.feed(transfer).map(\.key) == ["Production/u1"])
    #expect(bench.chain?.account == Account("u2"))
    // Not the owner's to give any more.
    let again = order(.transfer(OriginalTransactionID("1")!, to: Account("u3")!), id: "o2")
    #expect(gist(bench.feed(again)) == ["Production/u1 noted access.ordered refused"])
  }

  @Test func mergedAccountsAreLookedUp() {
    let bench = Bench()
    _ = bench.feed(pro().reported(by: "u1"))
    #expect(
      gist(bench.feed(order(.merge(into: Account("u2")!)), key: "Production/u1"))
        == ["Production/u1 noted access.ordered passed"])
    #expect(
      gist(bench.feed(order(.merge(into: Account("u1")!), "u2", id: "o2"), key: "Production/u2"))
        == ["Production/u2 noted access.ordered refused"])
    // What comes next takes the purchase over.
    #expect(
      gist(bench.feed(pro(signed: 30).notified("N", "ANY")))
        == ["Production/u1 u1>u2 claim 0", "Production/u2 u1>u2 claim 1"])
    // A second merge: the token of the first account leads to the third.
    _ = bench.feed(order(.merge(into: Account("u3")!), "u2", id: "o3"), key: "Production/u2")
    #expect(
      gist(bench.feed(pro(signed: 40).reported(by: "u1")))
        == ["Production/u2 u2>u3 claim 0", "Production/u3 u2>u3 claim 1 reported"])
  }

  // MARK: What must never happen

  @Test func unreadableAndMisroutedRecordsAreAlarms() {
    let bench = Bench()
    #expect(bench.feed(pro().reported(by: "u1"), key: "Production/2").isEmpty)
    #expect(bench.quarantined.map(\.alarm) == [.unreadable])
    let envelope = Envelope(id: "x", source: "/test", type: .purchaseVerified)
    let broken = ProducedRecord(
      topic: "purchases.verified",
      record: Record(
        key: Array("Production/1".utf8), value: Array("{".utf8), headers: envelope.headers,
        timestamp: Instant(milliseconds: 1)))
    let actions = bench.stage.actions(bench.places.place(broken))
    guard actions.count == 1, case .quarantine(_, alarm: .unreadable) = actions[0] else {
      Issue.record("not an alarm")
      return
    }
  }

  @Test func environmentsNeverMeet() {
    let bench = Bench()
    _ = bench.feed(pro(token: Self.tokenA).reported(by: Self.tokenA))
    var sandbox = pro(token: Self.tokenB)
    sandbox.environment = .sandbox
    #expect(
      gist(bench.feed(sandbox.reported(by: Self.tokenB), key: "Sandbox/1"))
        == ["Sandbox/\(Self.tokenB) owned token 1 reported"])
    #expect(bench.chain?.account?.text == Self.tokenA)
  }

  @Test func chainRowsSurviveTheStore() throws {
    let bench = Bench(OwnershipSettings(restorePolicy: .share))
    _ = bench.feed(pro().reported(by: "u1"))
    _ = bench.feed(pro("2", signed: 20).reported(by: "u2", as: .paymentRestored))
    _ = bench.feed(
      SampleTransaction(
        "3", original: "1", "gold", .autoRenewable, signed: 10, purchased: 5, expires: 50, lineItem: "9",
        token: Self.tokenA
      ).notified("N", "ANY", renewal: SampleRenewal("1", "gold", signed: 11)))
    _ = bench.feed(order(.transfer(OriginalTransactionID("1")!, to: Account("u9")!), Self.tokenA))
    let chain = try #require(bench.chain)
    #expect(try ChainRow(chain.row) == chain)
    #expect(chain.kept.count == 3 && chain.ownership.order != nil)
  }

  // MARK: Consent

  /// A notification about the app, with the app transaction that Apple signed in it.
  private func rescinded(_ app: String?, uuid: String = "N1", type: String = "RESCIND_CONSENT") -> VerifiedEvent {
    let payload = Array((app ?? "").utf8)
    let part = SignedPart(
      kind: .appTransaction, digest: SHA256.digest(payload).hex, source: .notification, payload: payload)
    let signed = Instant(milliseconds: 50)
    return .verified(
      PurchaseVerified(
        environment: .production, kind: .notification, proof: SHA256.digest(payload + Array(uuid.utf8)).hex,
        signedDate: signed, parts: app == nil ? [] : [part],
        notification: NotificationFacts(uuid: uuid, type: type, subtype: nil, version: "2.0", signedDate: signed),
        report: Report(type: .storeNotified), evidence: .null))
  }

  @Test func rescindedConsentIsAnEventOfItsOwnOnce() throws {
    let bench = Bench()
    let app = #"{"appTransactionId":"9223372036854775999","bundleId":"com.example.app"}"#
    let out = bench.feed(rescinded(app), key: "Production/N1")
    #expect(gist(out) == ["Production/9223372036854775999 rescinded 9223372036854775999 com.example.app"])
    guard case .consentRescinded(let event) = try #require(out.first).event else {
      Issue.record("it is another event")
      return
    }
    #expect(event.notification.type == "RESCIND_CONSENT" && event.notification.uuid == "N1")
    #expect(event.signedDate == Instant(milliseconds: 50))
    #expect(bench.feed(rescinded(app), key: "Production/N1").isEmpty, "a copy is nothing new")
    // Another customer, and the same one again later.
    #expect(bench.feed(rescinded(app, uuid: "N2"), key: "Production/N2").count == 1)
    let other = #"{"appTransactionId":"8","bundleId":"com.example.app"}"#
    #expect(gist(bench.feed(rescinded(other, uuid: "N3"))) == ["Production/8 rescinded 8 com.example.app"])
    #expect(bench.quarantined.isEmpty)
  }

  @Test func rescindedConsentOfNobodyIsShownToAPerson() {
    let bench = Bench()
    for (number, app) in [nil, "{}", #"{"appTransactionId":7,"bundleId":"b"}"#, #"{"appTransactionId":"7"}"#]
      .enumerated()
    {
      #expect(bench.feed(rescinded(app, uuid: "N\(number)"), key: "Production/N\(number)").isEmpty)
    }
    #expect(bench.quarantined.count == 4)
    #expect(bench.quarantined.allSatisfy { $0.alarm == nil && $0.reason.contains("no app transaction") })
  }

  @Test func anAppTransactionInAnythingElseRescindsNothing() {
    let bench = Bench()
    let app = #"{"appTransactionId":"7","bundleId":"com.example.app"}"#
    #expect(bench.feed(rescinded(app, type: "BRAND_NEW")).isEmpty)
    #expect(bench.quarantined.isEmpty)
  }
}
