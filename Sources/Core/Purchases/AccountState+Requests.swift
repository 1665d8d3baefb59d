/// The account is another one's from an operator's order on.
public struct Merge: Sendable, Hashable {
  public var into: Account
  public var orderID: String
  public var operatorName: String
  public var reason: String

  public init(into: Account, orderID: String, operatorName: String, reason: String) {
    self.into = into
    self.orderID = orderID
    self.operatorName = operatorName
    self.reason = reason
  }
}

extension AccountState {
  /// A spend is decided once, in recorded order; the caller has seen to it that its key is new. nil where the balance
  /// doesn't reach: spending never takes it below zero.
  public mutating func spend(_ amount: Int64, _ unit: CreditUnit, request: String) -> AccountChange? {
    guard amount > 0, balance(of: unit) >= amount else { return nil }
    return .credit(post(-amount, unit, .spent, purchase: nil, request: request, rule: .spend))
  }

  /// An operator adds credits, or takes some away, into debt too. The caller has seen to it that it was not done before.
  public mutating func adjust(_ amount: Int64, _ unit: CreditUnit, request: String) -> AccountChange {
    .credit(post(amount, unit, .operator, purchase: nil, request: request, rule: .order))
  }

  /// What a merged account had beside its purchases; below zero where it had spent of what they gave.
  public mutating func take(_ amount: Int64, _ unit: CreditUnit, request: String) -> AccountChange {
    .credit(post(amount, unit, .transfer, purchase: nil, request: request, rule: .transfer))
  }

  /// Why an order can't be carried out. Codes from a closed list.
  public enum Refusal: String, Sendable, Hashable, CaseIterable {
    /// Its end, or the end of what it takes back, is past.
    case isOver = "is-over"
    /// The account has no such order.
    case unknownOrder = "unknown-order"
    /// What was ordered isn't access: an adjustment, a transfer or a merge is undone by an order of its own.
    case notReversible = "not-reversible"
    case tooManyOrders = "too-many-orders"
  }

  /// An operator's order about access. One that was decided before changes nothing.
  public mutating func apply(
    _ order: ManualOrder, at instant: Instant, _ catalogue: Catalogue
  ) -> Result<[AccountChange], OrderRefused> {
    if facts.order(order.orderID, origin: order.origin) != nil { return .success([]) }
    // What another account had is not refused: it was given once.
    if order.origin == nil {
      guard order.at < order.end else { return .failure(OrderRefused(.isOver)) }
      guard facts.orders.count < AccountFacts.maximumOrders else { return .failure(OrderRefused(.tooManyOrders)) }
    }
    return .success(facts.fold(order) ? settle(at: instant, catalogue, .order).changes : [])
  }

  /// From now on an earlier grant or revocation has no effect. What it did until now stays done.
  public mutating func reverse(
    order id: String, origin: Account?, at instant: Instant, _ catalogue: Catalogue
  ) -> Result<[AccountChange], OrderRefused> {
    guard let order = facts.order(id, origin: origin) else { return .failure(OrderRefused(.unknownOrder)) }
    guard instant < order.end else { return .failure(OrderRefused(.isOver)) }
    facts.end(order: id, origin: origin, at: instant)
    return .success(settle(at: instant, catalogue, .order).changes)
  }

  /// What goes to the other account by way of the log.
  public struct Handover: Sendable, Hashable {
    public var changes: [AccountChange]
    /// Whose each is, is decided by the chain's own writer.
    public var chains: [OriginalTransactionID]
    /// What the balances hold beside what the purchases gave: the purchases take the rest with them.
    public var credits: [Balance]
    /// Grants that are not over, and the revocations that bear on them.
    public var orders: [ManualOrder]
  }

  /// nil where the account was merged before.
  public mutating func merge(
    _ merge: Merge, request: String, at instant: Instant, _ catalogue: Catalogue
  ) -> Handover? {
    guard self.merge == nil, !mergeIDs.contains(merge.orderID) else { return nil }
    self.merge = merge
    mergeIDs.append(merge.orderID)
    var changes: [AccountChange] = []
    var credits: [Balance] = []
    let bookings = facts.purchases.flatMap { $0.apart() }.compactMap(\.purchase.booking)
    for balance in balances {
      let held = bookings.reduce(Int64(0)) { $1.unit == balance.unit ? $0 + $1.booked : $0 }
      let rest = balance.amount - held
      guard rest != 0 else { continue }
      changes.append(take(-rest, balance.unit, request: request))
      credits.append(Balance(unit: balance.unit, amount: rest))
    }
    let grants = facts.orders.filter { $0.isGrant && instant < $0.end }
    let entitlements = Set(grants.map(\.entitlement))
    let orders = facts.orders.filter { order in
      instant < order.end && entitlements.contains(order.entitlement)
    }
    for grant in grants { facts.end(order: grant.orderID, origin: grant.origin, at: instant) }
    changes += settle(at: instant, catalogue, .transfer).changes
    return Handover(
      changes: changes, chains: Set(facts.purchases.map(\.key.originalTransaction)).sorted(), credits: credits,
      orders: orders)
  }
}

public struct OrderRefused: Error, Sendable, Hashable {
  public var reason: AccountState.Refusal

  public init(_ reason: AccountState.Refusal) { self.reason = reason }
}
