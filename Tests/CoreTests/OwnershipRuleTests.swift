import PurchasesCore
import Testing

@Suite struct OwnershipRuleTests {
  private let a = Account("a")!
  private let b = Account("b")!

  private let now = Instant(milliseconds: 100)

  private func rank(_ signed: Int64, _ digest: String = "d") -> RevisionRank {
    RevisionRank(signedDate: Instant(milliseconds: signed), isRevoked: false, source: .client, digest: digest)
  }

  private func claim(_ account: Account, _ source: String) -> Ownership.Claim {
    Ownership.Claim(account: account, source: source)
  }

  @Test func newestTokenInAnyOrder() {
    let orders: [[(Account, Int64)]] = [[(a, 1), (b, 2)], [(b, 2), (a, 1)]]
    for order in orders {
      var ownership = Ownership()
      for (account, signed) in order { ownership.note(account, rank(signed)) }
      ownership.note(nil, rank(3))
      #expect(ownership.owner?.account == b)
      #expect(ownership.owner?.basis == .token)
    }
  }

  @Test func tokenOverClaimWhicheverComesFirst() {
    var ownership = Ownership()
    _ = ownership.claim(claim(a, "1"), at: now, isRestore: false, isRestorable: true, RestoreRules(.keep))
    #expect(ownership.owner?.account == a)
    ownership.note(b, rank(1))
    #expect(ownership.owner?.account == b)
  }

  @Test func restorePolicies() {
    var keep = Ownership()
    var transfer = Ownership()
    var share = Ownership()
    for step in [claim(a, "1"), claim(b, "2"), claim(a, "1")] {
      _ = keep.claim(step, at: now, isRestore: true, isRestorable: true, RestoreRules(.keep))
      _ = transfer.claim(step, at: now, isRestore: true, isRestorable: true, RestoreRules(.transfer))
      _ = share.claim(step, at: now, isRestore: true, isRestorable: true, RestoreRules(.share))
    }
    #expect(keep.owner?.account == a)
    // The first claim came again: no second effect.
    #expect(transfer.owner?.account == b)
    #expect(share.owner?.account == a)
    #expect(share.sharers == [b])
    var bought = Ownership()
    _ = bought.claim(claim(a, "1"), at: now, isRestore: false, isRestorable: true, RestoreRules(.transfer))
    _ = bought.claim(claim(b, "2"), at: now, isRestore: false, isRestorable: true, RestoreRules(.transfer))
    #expect(bought.owner?.account == a)
    var credits = Ownership()
    _ = credits.claim(claim(a, "1"), at: now, isRestore: true, isRestorable: false, RestoreRules(.share))
    _ = credits.claim(claim(b, "2"), at: now, isRestore: true, isRestorable: false, RestoreRules(.share))
    _ = credits.claim(claim(b, "3"), at: now, isRestore: true, isRestorable: false, RestoreRules(.transfer))
    #expect(credits.sharers.isEmpty && credits.owner?.account == a)
    // What a token comes to bind is its account's alone.
    share.note(a, rank(1))
    #expect(share.sharers(isRestorable: true).isEmpty)
    _ = share.claim(claim(Account("c")!, "4"), at: now, isRestore: true, isRestorable: true, RestoreRules(.share))
    #expect(share.sharers == [b])
  }

  @Test func ordersHoldUntilAppleNamesAnotherAccount() {
    let c = Account("c")!
    var ownership = Ownership()
    ownership.note(a, rank(1))
    let isFirst = ownership.transfer(to: b, orderID: "o", at: Instant(milliseconds: 10))
    #expect(isFirst)
    ownership.note(a, rank(20))
    #expect(ownership.owner?.account == b)
    ownership.note(c, rank(30))
    #expect(ownership.owner?.account == c)
    let isNew = ownership.transfer(to: b, orderID: "o", at: Instant(milliseconds: 40))
    #expect(!isNew)
  }

  // MARK: Damping

  private let day = CalendarDuration(milliseconds: 86_400_000)

  private func restore(
    _ ownership: inout Ownership, _ account: Account, _ source: String, at milliseconds: Int64,
    _ damping: CalendarDuration?
  ) -> Bool {
    ownership.claim(
      claim(account, source), at: Instant(milliseconds: milliseconds), isRestore: true, isRestorable: true,
      RestoreRules(.transfer, damping: damping))
  }

  @Test func twoAccountsMoveAPurchaseOnceInAPeriod() {
    var ownership = Ownership()
    var moves = 0
    // Each restores every hour for ten days, with new bytes each time.
    for hour in 0..<240 as Range<Int64> {
      for (offset, account) in [(0 as Int64, a), (1, b)] {
        let before = ownership.claimant
        _ = restore(&ownership, account, "\(hour)", at: hour * 3_600_000 + offset, day)
        if let before, before != ownership.claimant { moves += 1 }
      }
    }
    #expect(moves == 10)
    #expect(ownership.claims.count == Ownership.maximumClaims)
  }

  @Test func theSameBytesCountAgainWhenThePeriodIsOver() {
    var ownership = Ownership()
    let outcomes = [
      restore(&ownership, a, "1", at: 0, day), restore(&ownership, b, "2", at: 1, day),
      restore(&ownership, a, "1", at: 86_400_000, day),
    ]
    #expect(outcomes == [true, true, false])
    #expect(ownership.owner?.account == b)
    let isMoved = restore(&ownership, a, "1", at: 86_400_001, day)
    #expect(isMoved && ownership.owner?.account == a)
  }

  @Test func anAttemptIsDecidedOnceAndForAll() {
    var ownership = Ownership()
    let outcomes = [
      restore(&ownership, a, "attempt:1", at: 0, day), restore(&ownership, b, "attempt:2", at: 1, day),
      restore(&ownership, a, "attempt:3", at: 2, day),
    ]
    #expect(outcomes == [true, true, false])
    let later = 10 * 86_400_000 as Int64
    // Late copies of what was decided before.
    _ = restore(&ownership, a, "attempt:1", at: later, day)
    _ = restore(&ownership, a, "attempt:3", at: later, day)
    #expect(ownership.owner?.account == b)
    let isMoved = restore(&ownership, a, "attempt:4", at: later, day)
    #expect(isMoved && ownership.owner?.account == a)
  }

  @Test func withoutDampingEachClaimMovesItOnce() {
    var ownership = Ownership()
    for (account, source) in [(a, "1"), (b, "2"), (a, "3"), (b, "2"), (a, "1")] {
      let isHeard = restore(&ownership, account, source, at: 5, nil)
      #expect(isHeard)
    }
    #expect(ownership.owner?.account == a)
  }
}
