import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Random claims, restores, reports, tokens and orders about a few purchases, by a few accounts that all want them.
@Suite struct OwnershipPropertyTests {
  private static let histories = 60
  private static let steps = 40
  private static let accounts = ["u1", "u2", "u3"]
  private static let tokens = ["aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"]

  /// Two consumables, one that anybody may restore, one that renews.
  private static let chains: [(id: String, product: String, type: ProductType)] = [
    ("1", "coins.100", .consumable), ("2", "coins.100", .consumable), ("3", "pro.lifetime", .nonConsumable),
    ("4", "gold.monthly", .autoRenewable),
  ]

  private func step(_ dice: inout SeededRandom, _ number: Int64) -> (key: String, event: VerifiedEvent) {
    let chain = Self.chains[Int(dice.roll(0...3))]
    let account = Self.accounts[Int(dice.roll(0...2))]
    let key = "Production/\(chain.id)"
    let token = dice.chance(12) ? Self.tokens[Int(dice.roll(0...1))] : nil
    let revoked: Int64? = dice.chance(10) ? 50 : nil
    let sample = SampleTransaction(
      chain.id, chain.product, chain.type, signed: dice.roll(1...30), purchased: 5,
      expires: chain.type == .autoRenewable ? 1_000_000 : nil, lineItem: chain.type == .autoRenewable ? "9" : nil,
      revoked: revoked, token: token)
    switch dice.roll(1...10) {
    case 1...3: return (key, sample.reported(by: account, as: .paymentRestored))
    case 4...5: return (key, sample.reported(by: account))
    case 6: return (key, sample.notified("n\(number)", "ANY"))
    case 7...8:
      let claim = PurchaseClaimed(
        environment: .production, account: Account(account)!, originalTransaction: OriginalTransactionID(chain.id)!,
        attempt: "\(dice.roll(1...20))")
      return (key, VerifiedEvent(fact: .claimed(claim)))
    case 9:
      let spend = SpendRequested(
        environment: .production, account: Account(account)!, unit: CreditUnit("coins")!, amount: dice.roll(1...60),
        idempotencyKey: "k\(number)")
      return ("Production/\(account)", VerifiedEvent(fact: .spendRequested(spend)))
    default:
      let to = Self.accounts[Int(dice.roll(0...2))]
      let order = AccessOrdered(
        environment: .production, account: Account(account)!,
        order: .transfer(OriginalTransactionID(chain.id)!, to: Account(to)!), orderID: "o\(number)",
        operatorName: "op", reason: "r")
      return (key, VerifiedEvent(fact: .ordered(order)))
    }
  }

  /// Who holds a purchase is who owns or shares it, its credits stand with one account, and none come from nowhere.
  private func check(_ world: World, spent: Int64, _ run: String) {
    let everybody = Self.accounts + Self.tokens
    var worth: Int64 = 0
    for chain in Self.chains {
      let original = OriginalTransactionID(chain.id)!
      let row = world.ownership.tables.row(ChainRow.key(.production, original)).flatMap { try? ChainRow($0) }
      let holders = everybody.filter { account in
        world.row(account)?.state.facts.purchases.contains { $0.key.originalTransaction == original } ?? false
      }
      guard let row, !row.kept.isEmpty, let owner = row.account else {
        #expect(holders.isEmpty, "\(chain.id) of nobody is held by \(holders), \(run)")
        continue
      }
      let sharers = row.ownership.sharers(isRestorable: row.isRestorable).map(\.text).filter { $0 != owner.text }
      #expect(Set(holders) == Set([owner.text] + sharers), "\(chain.id), \(run)")
      if chain.type == .consumable {
        #expect(sharers.isEmpty, "\(chain.id), \(run)")
        if row.kept.first?.rank.isRevoked == false { worth += 100 }
      }
    }
    let balances = everybody.reduce(0) { $0 + world.balance($1) }
    #expect(balances == worth - spent, "\(run)")
  }

  @Test(arguments: RestorePolicy.allCases)
  func oneOwnerAndNoCreditFromNowhere(_ policy: RestorePolicy) {
    let seed = getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 1...UInt64.max)
    print("SEED=\(seed)")
    var dice = SeededRandom(seed: seed)
    for history in 0..<Self.histories {
      let world = World(policy: policy)
      var spent: Int64 = 0
      for number in 1...Int64(Self.steps) {
        let (key, event) = step(&dice, number)
        for change in world.feed(event, key: key, at: 100 + number) {
          if case .credit(let credit) = change.content, credit.rule == .spend { spent += credit.amount }
        }
        check(world, spent: spent, "seed \(seed), history \(history), step \(number)")
      }
    }
  }
}
