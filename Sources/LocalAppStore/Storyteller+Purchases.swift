import PurchasesContracts
import PurchasesCore

extension Storyteller {
  /// Coins: bought once or several times, spent, sometimes refunded, sometimes the refund taken back.
  mutating func tellOfCoins() {
    var at = minute(random.within(Self.beginnings))
    var balance: Int64 = 0
    var last: StoreTransaction?
    for _ in 0..<random.within(1...3) {
      let product = random.chance(70) ? DemoCatalogue.coins100 : DemoCatalogue.coins550
      let quantity = Int64(random.chance(20) ? random.within(2...3) : 1)
      let (transaction, finished) = buy(product, at: at, quantity: quantity)
      balance += product.coins * quantity
      last = transaction
      at = after(finished, minutes: random.within(5...60))
    }
    if random.chance(60) {
      // Below what was granted for certain by now, so that no order of arrival refuses it.
      let amount = Int64(random.within(1...8)) * balance / 10
      if amount > 0 {
        spend(amount, at: at, account: account)
        balance -= amount
        at = after(at, minutes: 30)
        steps.append(Step(at: at, action: .seeBalance(environment, account, unit: "coins", amount: balance)))
      }
    }
    guard let last, random.chance(15) else { return }
    refund(last, at: after(at, minutes: random.within(30...120)))
  }

  /// Added, purchased, notified, finished. Answers when the client finished.
  mutating func buy(_ product: Product, at: Instant, quantity: Int64 = 1) -> (StoreTransaction, Instant) {
    let attempt = attempt()
    report(.payment(payment(.paymentAdded, attempt, product, at: at, quantity: quantity)), at: at)
    let bought = after(at, minutes: 1)
    let transaction = newTransaction(product, at: bought, quantity: quantity)
    let finished = show(transaction, attempt, at: bought)
    notify("ONE_TIME_CHARGE", at: after(bought, minutes: random.within(0...25)), transaction: transaction)
    // A launch before the finish shows the same transaction again, signed anew.
    if random.chance(12) { show(transaction, attempt, at: after(bought, minutes: 10)) }
    return (transaction, finished)
  }

  mutating func refund(_ transaction: StoreTransaction, at: Instant, renewal: StoreRenewal? = nil) {
    if random.chance(25) {
      notify("CONSUMPTION_REQUEST", at: after(at, minutes: -20), transaction: transaction, renewal: renewal)
    }
    if random.chance(10) {
      notify("REFUND_DECLINED", at: at, transaction: transaction, renewal: renewal)
      return
    }
    var refunded = transaction
    refunded.revoked = after(at, minutes: -1)
    refunded.revocationReason = random.chance(50) ? 1 : 0
    notify("REFUND", at: at, transaction: refunded, renewal: renewal)
    if random.chance(30) {
      notify(
        "REFUND_REVERSED", at: after(at, minutes: random.within(60...120)), transaction: transaction, renewal: renewal)
    }
  }

  /// Bought for good; restored on a second device, which mints a transaction of its own.
  mutating func tellOfAUnlock() {
    let product = random.chance(50) ? DemoCatalogue.lifetime : DemoCatalogue.skins
    let (transaction, finished) = buy(product, at: minute(random.within(Self.beginnings)))
    var at = after(finished, minutes: random.within(10...120))
    if random.chance(50) {
      restore([transaction], at: at)
      at = after(at, minutes: 60)
    }
    if random.chance(12) { refund(transaction, at: after(at, minutes: 30)) }
  }

  mutating func restore(_ bought: [StoreTransaction], at: Instant, account: Account? = nil) {
    let attempt = attempt()
    let who = account ?? self.account
    func step(_ type: EventType) -> ReceivedEvent {
      var event = RestoreReported(type: type, environment: environment, account: who, attempt: attempt)
      event.occurredAt = at
      return .restore(event)
    }
    report(step(.restoreStarted), at: at)
    if random.chance(10) {
      report(step(.restoreFailed), at: after(at, minutes: 1))
      return
    }
    for (number, original) in bought.enumerated() {
      let copy = newTransaction(
        original.product, at: after(at, minutes: 1), original: original, hasToken: original.token != nil)
      show(copy, "\(attempt)-\(number)", at: after(at, minutes: 1), type: .paymentRestored, account: account)
    }
    report(step(.restoreCompleted), at: after(at, minutes: 2))
  }

  /// Twelve hours of a season; some buy two, which stack.
  mutating func tellOfASeason() {
    let at = minute(random.within(10...300))
    let (first, finished) = buy(DemoCatalogue.season, at: at)
    if random.chance(25) {
      // Not finished by a permit: it begins when the first one ends, and is shown again then.
      let second = newTransaction(DemoCatalogue.season, at: after(finished, minutes: 10))
      let attempt = attempt()
      show(second, attempt, at: after(finished, minutes: 10), finishes: false)
      notify("ONE_TIME_CHARGE", at: after(finished, minutes: 12), transaction: second)
    }
    if random.chance(8) { refund(first, at: after(finished, minutes: 200)) }
  }

  /// Nobody's token in the proof: the first authenticated caller has it, and a later one is turned away.
  mutating func tellOfAPurchaseWithoutToken() {
    let at = minute(random.within(Self.beginnings))
    let transaction = newTransaction(DemoCatalogue.lifetime, at: at, hasToken: false)
    if random.chance(50) {
      // The store tells first: the purchase waits for an owner, who claims it by its number.
      notify("ONE_TIME_CHARGE", at: at, transaction: transaction)
      if random.chance(25) { return }
      guard let original = OriginalTransactionID(transaction.original) else { return }
      report(
        .claimed(
          PurchaseClaimed(
            environment: environment, account: account, originalTransaction: original, attempt: attempt())),
        at: after(at, minutes: 250))
    } else {
      show(transaction, attempt(), at: at)
      // Another user of the same device restores it.
      if random.chance(60) { restore([transaction], at: after(at, minutes: 60), account: named(random.uuid())) }
    }
  }
}
