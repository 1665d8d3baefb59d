import PurchasesContracts
import PurchasesCore

/// Purchases of each type, and what becomes of them.
extension RandomHistory {
  mutating func purchase(_ id: String) {
    let environment: Environment = dice.chance(8) ? .sandbox : .production
    chains.append((environment, id))
    switch dice.roll(1...9) {
    case 1...2: consumables(id, environment)
    case 3: lifetime(id, environment)
    case 4...5: season(id, environment)
    default: subscription(id, environment)
    }
  }

  private mutating func sale(
    _ id: String, of original: String? = nil, _ product: String, _ type: ProductType, _ environment: Environment,
    at date: Int64
  ) -> AppleTransaction {
    var sale = AppleTransaction(id, of: original ?? id, product, type, purchased: date, originally: date)
    sale.environment = environment
    sale.signed = later(date + dice.roll(0...1) * 12 * Self.hour)
    instants.append(date)
    return sale
  }

  /// Refunded, in whole or in part, or not any more, at a date that may be the same; or told of once more.
  private mutating func revise(_ sale: inout AppleTransaction, isProrated: Bool) {
    sale.signed = later(sale.signed + dice.roll(0...3) * 12 * Self.hour)
    guard !dice.chance(4) else { return tell(sale, "CONSUMPTION_REQUEST") }
    if sale.revoked == nil {
      sale.revoked = max(sale.purchased, sale.signed - dice.roll(0...2) * 6 * Self.hour)
      sale.percentage = isProrated && dice.chance(2) ? pick([33_333, 50_000, 0, 100_000, 12_345, 67_932]) : nil
      sale.revocationType = sale.percentage == nil ? "REFUND_FULL" : "REFUND_PRORATED"
      instants.append(sale.revoked ?? 0)
      tell(sale, "REFUND")
    } else {
      sale.revoked = nil
      sale.percentage = nil
      sale.revocationType = nil
      tell(sale, "REFUND_REVERSED")
    }
  }

  private mutating func consumables(_ id: String, _ environment: Environment) {
    let product = pick(["coins.100", "coins.33", "gems.7", "coins.100", "coins.unheard"])
    var one = sale(id, product, .consumable, environment, at: instant(0...80))
    one.token = token()
    one.quantity = pick([nil, 1, 2, 3])
    tell(one, "ONE_TIME_CHARGE")
    for _ in 0..<dice.roll(0...3) { revise(&one, isProrated: true) }
  }

  private mutating func lifetime(_ id: String, _ environment: Environment) {
    var one = sale(id, "pro.lifetime", dice.chance(10) ? .consumable : .nonConsumable, environment, at: instant(0...80))
    one.token = token()
    if one.type == .nonConsumable, dice.chance(5) { one.ownership = "FAMILY_SHARED" }
    tell(one, "ONE_TIME_CHARGE")
    for copy in 0..<dice.roll(0...3) {
      if one.type == .nonConsumable, dice.chance(3) {
        // A restore mints a new transaction id and keeps the original date.
        one.transaction = "\(id)9\(copy)"
        one.signed = later(one.signed + 12 * Self.hour)
        one.purchased = one.signed
        report(one)
      } else {
        revise(&one, isProrated: one.type == .consumable)
      }
    }
  }

  private mutating func season(_ id: String, _ environment: Environment) {
    // Two seasons of one instant would have no order that Apple tells: each chain has its own minute.
    let minute = Int64(chains.count) * 60_000
    var one = sale(
      id, pick(["season.month", "season.week"]), .nonRenewing, environment, at: instant(0...80) + minute)
    one.token = token()
    one.quantity = pick([nil, nil, 1, 2])
    let length = (one.product == "season.month" ? 30 : 7) * Self.day
    for pieces in 1...3 as ClosedRange<Int64> { instants.append(one.purchased + pieces * length) }
    tell(one, "ONE_TIME_CHARGE")
    for _ in 0..<dice.roll(0...2) { revise(&one, isProrated: true) }
  }

  // MARK: Subscriptions

  private mutating func subscription(_ id: String, _ environment: Environment) {
    var date = instant(0...60)
    let first = date
    var token = token()
    var product = pick(["gold.monthly", "gold.weekly", "silver.weekly"])
    let hasSeats = dice.chance(8)
    let hasLineItems = !dice.chance(5)
    var isChanged = false
    var number = 0
    let last = dice.roll(0...3)
    while date < Self.horizon, number <= last || isChanged {
      var period = sale(
        number == 0 ? id : "\(id)0\(number)", of: id, product, .autoRenewable, environment, at: date)
      period.originallyPurchased = first
      period.expires = date + (product == "gold.monthly" ? 14 : 7) * Self.day
      period.lineItem = hasLineItems ? "7\(id)\(number)" : nil
      period.token = token
      if hasSeats {
        period.seats = 0
        period.quantity = dice.roll(1...5)
      }
      instants.append(period.expires ?? 0)
      // That a period was upgraded says that there is another one: some day we hear of it.
      tell(period, number == 0 ? "SUBSCRIBED" : "DID_RENEW", surely: isChanged)
      if hasSeats { seats(&period) }
      date = follow(&period, &product)
      isChanged = period.isUpgraded
      if token != nil, dice.chance(6) { token = pick([accounts[0], accounts[1]]) }
      number += 1
    }
  }

  private func renewal(_ period: AppleTransaction, next: String, signed: Int64) -> AppleRenewal {
    AppleRenewal(
      environment: period.environment, original: period.original, product: period.product, next: next, signed: signed,
      renewal: period.expires ?? 0)
  }

  /// What becomes of a period; answers when the next one begins.
  private mutating func follow(_ period: inout AppleTransaction, _ product: inout String) -> Int64 {
    let end = period.expires ?? 0
    let fate = dice.roll(1...9)
    // What an extension makes of added seats Apple doesn't say; and nothing is above the highest level.
    let isPlain = period.isAddition && fate == 6 || product == "gold.monthly" && fate == 2
    switch isPlain ? 9 : fate {
    case 1:
      // Auto-renew off, and bought again after a while.
      period.signed = later(period.purchased + Self.day)
      var off = renewal(period, next: product, signed: period.signed)
      off.autoRenews = false
      tell(period, "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", renewal: off)
      return end + dice.roll(0...6) * 12 * Self.hour
    case 2:
      // Changed at once for the best one.
      let change = min(end, period.purchased + dice.roll(1...6) * Self.day)
      period.signed = later(change)
      period.isUpgraded = true
      if dice.chance(3) {
        period.revoked = change
        period.revocationType = "REFUND_PRORATED"
      }
      product = "gold.monthly"
      tell(period, "DID_CHANGE_RENEWAL_PREF", "UPGRADE")
      return change
    case 3:
      // A lower level, from the end of the period on.
      period.signed = later(period.purchased + Self.day)
      tell(
        period, "DID_CHANGE_RENEWAL_PREF", "DOWNGRADE",
        renewal: renewal(period, next: "silver.weekly", signed: period.signed))
      product = "silver.weekly"
      return end
    case 4...5: return grace(&period)
    case 6:
      // Extended by us or by Apple: the same transaction, with a later end.
      period.signed = later(min(period.purchased + 2 * Self.day, end))
      period.expires = end + dice.roll(1...6) * Self.day
      instants.append(period.expires ?? 0)
      tell(period, "RENEWAL_EXTENDED", renewal: renewal(period, next: product, signed: period.signed))
      return period.expires ?? 0
    case 7...8:
      for _ in 0...dice.roll(0...2) { revise(&period, isProrated: true) }
      return end + dice.roll(0...4) * 12 * Self.hour
    default: return end
    }
  }

  /// The renewal fails: with or without a grace period, and with or without a recovery.
  private mutating func grace(_ period: inout AppleTransaction) -> Int64 {
    let end = period.expires ?? 0
    guard end < Self.horizon else { return end }
    period.signed = end
    var failed = renewal(period, next: period.product, signed: end)
    failed.isInBillingRetry = true
    if !dice.chance(3) {
      failed.grace = end + dice.roll(1...12) * 12 * Self.hour
      instants.append(failed.grace ?? 0)
    }
    tell(period, "DID_FAIL_TO_RENEW", failed.grace == nil ? nil : "GRACE_PERIOD", renewal: failed)
    let recovery = end + dice.roll(1...16) * 12 * Self.hour
    if let grace = failed.grace, grace < recovery, grace <= Self.horizon, dice.chance(2) {
      period.signed = grace
      failed.signed = grace
      failed.grace = nil
      tell(period, "GRACE_PERIOD_EXPIRED", renewal: failed)
    }
    return recovery
  }

  /// Seats are added in the middle of a period by a transaction beside the first one; then some or all of one of them are
  /// refunded.
  private mutating func seats(_ period: inout AppleTransaction) {
    var added = period
    if dice.chance(2) {
      period.isAddition = true
      period.signed = later(period.purchased + 2 * Self.day)
      tell(period, "DID_RENEW")
      added = period
      added.transaction += "5"
      // Never at one instant with the next period: which of both is the later one Apple doesn't say.
      added.purchased = period.purchased + 2 * Self.day + Self.hour
      added.signed = later(added.purchased)
      added.quantity = dice.roll(1...3)
      if dice.chance(2) { added.lineItem = added.lineItem.map { $0 + "5" } }
      instants.append(added.purchased)
      tell(added, "SUBSCRIBED")
      if dice.chance(2) {
        added.signed = later(added.signed + Self.day)
        added.revoked = added.signed
        instants.append(added.signed)
        tell(added, "REFUND")
      }
    }
    if dice.chance(2) {
      period.signed = later(period.signed + Self.day)
      period.seats = min(1, period.quantity ?? 1)
      tell(period, "REFUND", "SEATS")
    }
  }
}
