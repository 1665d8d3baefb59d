import PurchasesContracts
import PurchasesCore

extension Storyteller {
  /// Periods are short, as in the sandbox, so that a day holds several.
  static let periodMinutes = 120
  static let graceMinutes = 45

  /// One subscriber's day: what each renewal brings is drawn anew until it ends.
  mutating func tellOfASubscription() {
    let product = random.chance(50) ? DemoCatalogue.gold : DemoCatalogue.silver
    let at = minute(random.within(Self.beginnings))
    let attempt = attempt()
    report(.payment(payment(.paymentAdded, attempt, product, at: at)), at: at)
    var period = self.period(product, at: after(at, minutes: 1), original: nil)
    var renewal = StoreRenewal(transaction: period, next: product)
    show(period, attempt, at: period.purchased)
    notify("SUBSCRIBED", "INITIAL_BUY", at: after(period.purchased, minutes: 2), transaction: period, renewal: renewal)

    while true {
      let middle = after(period.purchased, minutes: Self.periodMinutes / 2)
      let ends = after(period.purchased, minutes: Self.periodMinutes)
      // What may follow a period's end must fit into the day; the last renewal lasts beyond it.
      guard after(ends, minutes: Self.graceMinutes + 60) < lastDelivery else {
        guard ends < lastDelivery else { return }
        renew(&period, &renewal, at: ends)
        notify("DID_RENEW", at: ends, transaction: period, renewal: renewal)
        return
      }
      switch random.below(100) {
      case 0..<12: return cancel(period, renewal, at: middle, ends: ends)
      case 12..<18:
        guard recovers(&period, &renewal, ends: ends) else { return }
        continue
      case 18..<24 where period.product.id == DemoCatalogue.silver.id:
        upgrade(&period, &renewal, at: middle)
        continue
      case 24..<30 where period.product.id == DemoCatalogue.gold.id:
        renewal.next = DemoCatalogue.silver
        notify("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: middle, transaction: period, renewal: renewal)
      case 30..<34:
        refund(period, at: middle, renewal: renewal)
        return
      case 34..<38:
        // Turned off and on again within the period.
        var off = renewal
        off.renews = false
        notify(
          "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: middle, transaction: period, renewal: off)
        notify(
          "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: after(middle, minutes: 20), transaction: period,
          renewal: renewal)
      default: break
      }
      renew(&period, &renewal, at: ends)
      notify("DID_RENEW", at: ends, transaction: period, renewal: renewal)
      // The device hears of some renewals too, and finishes them.
      if random.chance(30) { show(period, self.attempt(), at: after(ends, minutes: 3)) }
    }
  }

  private mutating func period(_ product: Product, at: Instant, original: StoreTransaction?) -> StoreTransaction {
    var period = newTransaction(product, at: at, original: original)
    period.expires = after(at, minutes: Self.periodMinutes)
    period.lineItem = "9" + period.id
    period.isRenewal = original != nil
    return period
  }

  private mutating func renew(_ period: inout StoreTransaction, _ renewal: inout StoreRenewal, at: Instant) {
    period = self.period(renewal.next, at: at, original: period)
    renewal = StoreRenewal(transaction: period, next: renewal.next)
  }

  private mutating func cancel(_ period: StoreTransaction, _ renewal: StoreRenewal, at: Instant, ends: Instant) {
    var off = renewal
    off.renews = false
    notify("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: at, transaction: period, renewal: off)
    off.expirationIntent = 1
    notify("EXPIRED", "VOLUNTARY", at: after(ends, minutes: 1), transaction: period, renewal: off)
  }

  /// The card is refused: grace, then recovery or the end. True where the subscription goes on.
  private mutating func recovers(
    _ period: inout StoreTransaction, _ renewal: inout StoreRenewal, ends: Instant
  ) -> Bool {
    var retry = renewal
    retry.isInBillingRetry = true
    retry.expirationIntent = 2
    let hasGrace = random.chance(70)
    if hasGrace { retry.grace = after(ends, minutes: Self.graceMinutes) }
    notify(
      "DID_FAIL_TO_RENEW", hasGrace ? "GRACE_PERIOD" : nil, at: ends, transaction: period, renewal: retry)
    if random.chance(60) {
      // Paid within the grace or after it; the new period begins with the payment.
      let paid = after(ends, minutes: random.chance(50) ? 20 : Self.graceMinutes + 30)
      renew(&period, &renewal, at: paid)
      notify("DID_RENEW", "BILLING_RECOVERY", at: paid, transaction: period, renewal: renewal)
      return true
    }
    if hasGrace {
      notify("GRACE_PERIOD_EXPIRED", at: after(ends, minutes: Self.graceMinutes), transaction: period, renewal: retry)
    }
    var over = retry
    over.renews = false
    over.isInBillingRetry = false
    notify(
      "EXPIRED", "BILLING_RETRY", at: after(ends, minutes: Self.graceMinutes + 40), transaction: period, renewal: over)
    return false
  }

  /// Takes effect at once: the lower period ends where the higher begins.
  private mutating func upgrade(_ period: inout StoreTransaction, _ renewal: inout StoreRenewal, at: Instant) {
    var old = period
    old.isUpgraded = true
    period = self.period(DemoCatalogue.gold, at: at, original: old)
    period.isRenewal = false
    renewal = StoreRenewal(transaction: period, next: DemoCatalogue.gold)
    show(period, attempt(), at: at)
    notify("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: after(at, minutes: 1), transaction: period, renewal: renewal)
    // Whether or not the store ever says so of the old period.
    if random.chance(50) { show(old, attempt(), at: after(at, minutes: 30), finishes: false) }
  }
}
