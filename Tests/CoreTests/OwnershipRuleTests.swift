import PurchasesCore
import Testing

@Suite struct OwnershipRuleTests {
  private let a = Account("a")!
  private let b = Account("b")!

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
    ownership.claim(claim(a, "1"), isRestore: false, isRestorable: true, .keep)
    #expect(ownership.owner?.account == a)
    ownership.note(b, rank(1))
    #expect(ownership.owner?.account == b)
  }

  @Test func restorePolicies() {
    var keep = Ownership()
    var transfer = Ownership()
    var share = Ownership()
    for step in [claim(a, "1"), claim(b, "2"), claim(a, "1")] {
      keep.claim(step, isRestore: true, isRestorable: true, .keep)
      transfer.claim(step, isRestore: true, isRestorable: true, .transfer)
      share.claim(step, isRestore: true, isRestorable: true, .share)
    }
    #expect(keep.owner?.account == a)
    // The first claim came again: no second effect.
    #expect(transfer.owner?.account == b)
    #expect(share.owner?.account == a)
    #expect(share.sharers == [b])
    var bought = Ownership()
    bought.claim(claim(a, "1"), isRestore: false, isRestorable: true, .transfer)
    bought.claim(claim(b, "2"), isRestore: false, isRestorable: true, .transfer)
    #expect(bought.owner?.account == a)
    var credits = Ownership()
    credits.claim(claim(a, "1"), isRestore: true, isRestorable: false, .share)
    credits.claim(claim(b, "2"), isRestore: true, isRestorable: false, .share)
    credits.claim(claim(b, "3"), isRestore: true, isRestorable: false, .transfer)
    #expect(credits.sharers.isEmpty && credits.owner?.account == a)
    // What a token comes to bind is its account's alone.
    share.note(a, rank(1))
    #expect(share.sharers(isRestorable: true).isEmpty)
    share.claim(claim(Account("c")!, "4"), isRestore: true, isRestorable: true, .share)
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
}
