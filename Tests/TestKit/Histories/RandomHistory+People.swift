import PurchasesContracts
import PurchasesCore

/// What authenticated callers and operators say.
extension RandomHistory {
  private mutating func say(_ event: ReceivedEvent, key: String) {
    statements.append((key, VerifiedEvent(fact: event), instant(0...120)))
  }

  mutating func spends() {
    var keys: [String] = []
    for number in 0..<dice.roll(1...5) {
      // Now and then a key is used again, for the same or for something else.
      let key = dice.chance(5) ? keys.last ?? "k" : "k\(number)"
      keys.append(key)
      guard let account = Account(dice.chance(5) ? pick(accounts) : accounts[0]),
        let unit = CreditUnit(dice.chance(4) ? "gems" : "coins")
      else { continue }
      say(
        .spendRequested(
          SpendRequested(
            environment: .production, account: account, unit: unit, amount: pick([1, 7, 30, 80, 100, 250]),
            idempotencyKey: key)), key: "Production/\(account.text)")
    }
  }

  mutating func claims() {
    for number in 0..<dice.roll(1...3) {
      let chain = pick(chains)
      guard let account = Account(pick(accounts)), let original = OriginalTransactionID(chain.original) else {
        continue
      }
      say(
        .claimed(
          PurchaseClaimed(
            environment: chain.environment, account: account, originalTransaction: original, attempt: "claim-\(number)")
        ), key: "\(chain.environment.rawValue)/\(chain.original)")
    }
  }

  mutating func orders() {
    for number in 0..<dice.roll(1...2) {
      let chain = pick(chains)
      guard let account = Account(dice.chance(4) ? pick(accounts) : accounts[0]),
        let other = Account(pick(accounts)), let original = OriginalTransactionID(chain.original),
        let entitlement = EntitlementID(pick(["gold", "member", "pro", "season"]))
      else { continue }
      let isTransfer = dice.chance(3)
      let until: Instant? = dice.chance(3) ? nil : Instant(milliseconds: instant(0...160))
      if let until { instants.append(until.milliseconds) }
      let order: AccessOrdered.Order =
        isTransfer
        ? .transfer(original, to: other)
        : dice.chance(2) ? .revoke(entitlement, until: until) : .grant(entitlement, until: until)
      let environment = isTransfer ? chain.environment : .production
      say(
        .ordered(
          AccessOrdered(
            environment: environment, account: account, order: order, orderID: "order-\(number)", operatorName: "kim",
            reason: "a random one")),
        key: isTransfer ? "\(environment.rawValue)/\(chain.original)" : "\(environment.rawValue)/\(account.text)")
    }
  }
}
