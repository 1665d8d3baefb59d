/// Time in which one purchase or order lets an account use one entitlement: `start <= t < end`.
public struct AccessInterval: Sendable, Hashable {
  public var entitlement: EntitlementID
  public var start: Instant
  /// `distantFuture`: without end.
  public var end: Instant
  /// A revoked one ends with the revocation and counts for the past only.
  public var isRevoked: Bool
  /// nil for an operator's grant.
  public var key: BusinessKey?
  public var product: ProductID?
  /// Of what is left after a revocation with an end: when the whole of it began.
  var began: Instant?
}

/// What an account may use of one entitlement at an instant.
public struct EntitlementState: Sendable, Hashable {
  public var isActive: Bool
  /// When access ends as things stand, over all that follows without a gap; nil: without end, or not active.
  public var endsAt: Instant?
  /// The purchase that lasts longest; nil for an operator's grant.
  public var product: ProductID?
  public var originalTransaction: OriginalTransactionID?

  public static let inactive = EntitlementState(isActive: false)

  public init(
    isActive: Bool, endsAt: Instant? = nil, product: ProductID? = nil,
    originalTransaction: OriginalTransactionID? = nil
  ) {
    self.isActive = isActive
    self.endsAt = endsAt
    self.product = product
    self.originalTransaction = originalTransaction
  }
}

/// Access as a function of facts, catalogue and time: the order in which the facts arrived is not in it.
public enum Access {
  /// All intervals, those of an entitlement side by side, in order of start, end and purchase.
  public static func intervals(_ facts: AccountFacts, _ catalogue: Catalogue) -> [AccessInterval] {
    intervals(facts.purchases(catalogue), facts, catalogue)
  }

  /// - Parameter purchases: those of the facts, as the catalogue has them.
  static func intervals(
    _ purchases: [Purchase], _ facts: AccountFacts, _ catalogue: Catalogue
  ) -> [AccessInterval] {
    var intervals: [AccessInterval] = []
    var stacked: [(Purchase, CatalogueProduct, CalendarDuration)] = []
    var index = 0
    while index < purchases.count {
      let chain = purchases[index].key.originalTransaction
      var periods: [Purchase] = []
      while index < purchases.count, purchases[index].key.originalTransaction == chain {
        let purchase = purchases[index]
        index += 1
        if purchase.type == .autoRenewable {
          periods.append(purchase)
        } else if let product = catalogue.product(purchase.product, as: purchase.type) {
          switch product.terms {
          case .nonConsumable: add(purchase, product, from: purchase.begins, until: .distantFuture, &intervals)
          case .nonRenewing(let duration): stacked.append((purchase, product, duration))
          case .consumable, .autoRenewable: break
          }
        }
      }
      if !periods.isEmpty { add(periods, facts.renewal(of: chain), catalogue, &intervals) }
    }
    if !stacked.isEmpty { add(stacked, &intervals) }
    apply(facts.orders, &intervals)
    intervals.sort(by: isBefore)
    return intervals
  }

  /// The states of all entitlements that are active at that instant, in order.
  public static func active(
    _ facts: AccountFacts, _ catalogue: Catalogue, at instant: Instant
  ) -> [(entitlement: EntitlementID, state: EntitlementState)] {
    var states: [(EntitlementID, EntitlementState)] = []
    forEachEntitlement(intervals(facts, catalogue)) { entitlement, intervals in
      if let state = state(intervals, isCurrent: { $0.start <= instant && instant < $0.end }) {
        states.append((entitlement, state))
      }
    }
    return states
  }

  /// The state that current intervals make, and whatever touches or overlaps them; nil without any. The intervals are of
  /// one entitlement and in order.
  static func state(
    _ intervals: ArraySlice<AccessInterval>, isCurrent: (AccessInterval) -> Bool
  ) -> EntitlementState? {
    var last: AccessInterval?
    for interval in intervals where isCurrent(interval) {
      if last.map({ outlasts(interval, $0) }) ?? true { last = interval }
    }
    guard var last else { return nil }
    // In order of start, so that one pass finds all that follows without a gap.
    for interval in intervals where interval.start <= last.end && outlasts(interval, last) { last = interval }
    return EntitlementState(
      isActive: true, endsAt: last.end == .distantFuture ? nil : last.end, product: last.product,
      originalTransaction: last.key?.originalTransaction)
  }

  /// Calls the body with the intervals of each entitlement.
  static func forEachEntitlement(
    _ intervals: [AccessInterval], _ body: (EntitlementID, ArraySlice<AccessInterval>) -> Void
  ) {
    var start = 0
    while start < intervals.count {
      var end = start + 1
      while end < intervals.count, intervals[end].entitlement == intervals[start].entitlement { end += 1 }
      body(intervals[start].entitlement, intervals[start..<end])
      start = end
    }
  }

  private static func outlasts(_ a: AccessInterval, _ b: AccessInterval) -> Bool {
    if a.end != b.end { return a.end > b.end }
    // Of two that end together the smaller key stands, and a purchase rather than an order: any rule, but one.
    switch (a.key, b.key) {
    case (let a?, let b?): return a < b
    case (.some, nil): return true
    default: return false
    }
  }

  private static func isBefore(_ a: AccessInterval, _ b: AccessInterval) -> Bool {
    if a.entitlement != b.entitlement { return a.entitlement < b.entitlement }
    if a.start != b.start { return a.start < b.start }
    if a.end != b.end { return a.end < b.end }
    switch (a.key, b.key) {
    case (let a?, let b?): return a < b
    case (.some, nil): return true
    default: return false
    }
  }

  /// Where access through a revoked purchase ended: at the revocation, and never later than the day Apple said so, however
  /// the date itself is moved afterwards.
  private static func end(_ purchase: Purchase, _ natural: Instant) -> Instant {
    guard let revoked = purchase.revocationDate else { return natural }
    return min(natural, revoked, purchase.rank.signedDate)
  }

  private static func add(
    _ purchase: Purchase, _ product: CatalogueProduct, from start: Instant, until natural: Instant,
    _ intervals: inout [AccessInterval]
  ) {
    let end = end(purchase, natural)
    guard start < end else { return }
    for entitlement in product.entitlements {
      intervals.append(
        AccessInterval(
          entitlement: entitlement, start: start, end: end, isRevoked: purchase.isRevoked, key: purchase.key,
          product: purchase.product))
    }
  }

  /// The periods of one chain. A later one ends an earlier one at its purchase date, whether it is paid, refunded or of a
  /// product nobody knows, and whether or not `isUpgraded` is ever said: one level of a group is active at a time. Only a
  /// transaction that adds seats to a period goes on beside it.
  private static func add(
    _ chain: [Purchase], _ renewal: Renewal?, _ catalogue: Catalogue, _ intervals: inout [AccessInterval]
  ) {
    let periods = chain.sorted { $0.begins == $1.begins ? $0.key < $1.key : $0.begins < $1.begins }
    // Grace belongs to the period that was the last one when Apple granted it.
    let inGrace = renewal.flatMap { renewal in periods.lastIndex { $0.begins <= renewal.rank.signedDate } }
    for (index, period) in periods.enumerated() {
      guard var end = period.expires, let product = catalogue.product(period.product, as: period.type) else { continue }
      if let inGrace, let grace = renewal?.graceEnds {
        let last = periods[inGrace]
        // With the last period all that goes on beside it.
        if index == inGrace || last.transaction == period.transaction || last.adds(to: period) { end = max(end, grace) }
      }
      if let next = periods[(index + 1)...].first(where: { $0.begins > period.begins && !$0.adds(to: period) }) {
        end = min(end, next.begins)
      }
      add(period, product, from: period.begins, until: end, &intervals)
    }
  }

  /// Non-renewing subscriptions of one entitlement follow one another: each begins at the later of its purchase and the end
  /// of those before. A refunded one has used up what lay before its refund.
  private static func add(
    _ purchases: [(Purchase, CatalogueProduct, CalendarDuration)], _ intervals: inout [AccessInterval]
  ) {
    var ends: [EntitlementID: Instant] = [:]
    let inOrder = purchases.sorted { $0.0.begins == $1.0.begins ? $0.0.key < $1.0.key : $0.0.begins < $1.0.begins }
    for (purchase, product, duration) in inOrder {
      for entitlement in product.entitlements {
        let start = max(purchase.begins, ends[entitlement] ?? .distantPast)
        let end = end(purchase, duration.end(from: start, times: purchase.quantity))
        guard start < end else { continue }
        ends[entitlement] = end
        intervals.append(
          AccessInterval(
            entitlement: entitlement, start: start, end: end, isRevoked: purchase.isRevoked, key: purchase.key,
            product: purchase.product))
      }
    }
  }

  private static func apply(_ orders: [ManualOrder], _ intervals: inout [AccessInterval]) {
    // Grants made to accounts that were merged into this one, by place: what those accounts' revocations take.
    var grants: [(index: Int, origin: Account?)] = []
    for order in orders {
      switch order.kind {
      case .grant:
        guard order.at < order.end else { continue }
        grants.append((intervals.count, order.origin))
        intervals.append(
          AccessInterval(
            entitlement: order.entitlement, start: order.at, end: order.end, isRevoked: order.isCutShort, key: nil,
            product: nil))
      case .revoke:
        let places =
          order.origin == nil ? Array(intervals.indices) : grants.filter { $0.origin == order.origin }.map(\.index)
        for index in places
        where intervals[index].entitlement == order.entitlement
          && (intervals[index].began ?? intervals[index].start) < order.at
        {
          let before = intervals[index]
          guard before.start < order.end else { continue }
          intervals[index].end = max(before.start, min(before.end, order.at))
          intervals[index].isRevoked = true
          // A revocation with an end leaves the rest as it was.
          guard !before.isRevoked, order.end < before.end else { continue }
          var rest = before
          rest.began = before.began ?? before.start
          rest.start = order.end
          if before.key == nil, let origin = grants.first(where: { $0.index == index })?.origin {
            grants.append((intervals.count, origin))
          }
          intervals.append(rest)
        }
      }
    }
  }
}
