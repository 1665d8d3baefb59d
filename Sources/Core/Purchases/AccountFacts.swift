/// All that is known about one account's access: what it is computed from, and nothing that was computed.
public struct AccountFacts: Sendable, Hashable {
  /// The newest revision of each purchase, in order of their keys: the purchases of a chain are neighbours.
  public private(set) var purchases: [Purchase] = []
  /// The newest renewal info of each chain, in order of original transaction.
  public private(set) var renewals: [Renewal] = []
  /// In recorded order: a later one works on what the earlier ones left.
  public private(set) var orders: [ManualOrder] = []

  public init() {}

  /// What a store kept; the order is restored, whoever wrote it.
  public init(purchases: [Purchase], renewals: [Renewal], orders: [ManualOrder]) {
    self.purchases = purchases
    self.renewals = renewals
    self.orders = orders
    if !isSorted {
      self.purchases.sort { $0.key < $1.key }
      self.renewals.sort { $0.originalTransaction < $1.originalTransaction }
    }
  }

  private var isSorted: Bool {
    zip(purchases, purchases.dropFirst()).allSatisfy { $0.key < $1.key }
      && zip(renewals, renewals.dropFirst()).allSatisfy { $0.originalTransaction < $1.originalTransaction }
  }

  public var isEmpty: Bool { purchases.isEmpty && renewals.isEmpty && orders.isEmpty }

  public subscript(_ key: BusinessKey) -> Purchase? { place(of: key).found.map { purchases[$0] } }

  public func renewal(of chain: OriginalTransactionID) -> Renewal? {
    renewals.first { $0.originalTransaction == chain }
  }

  /// What a revision did to the facts.
  public struct Folded: Sendable, Hashable {
    /// False for a statement that a newer one had overtaken, and for a copy.
    public var isNewest: Bool
    /// The purchase as it was known before.
    public var before: Purchase?
  }

  /// Takes a revision in, whatever order revisions come in.
  public mutating func fold(_ revision: TransactionRevision) -> Folded {
    var purchase = Purchase(revision)
    let (found, insertion) = place(of: purchase.key)
    guard let found else {
      purchases.insert(purchase, at: insertion)
      return Folded(isNewest: true, before: nil)
    }
    let before = purchases[found]
    guard before.rank < purchase.rank else { return Folded(isNewest: false, before: before) }
    purchase.takeBookings(of: before)
    purchases[found] = purchase
    return Folded(isNewest: true, before: before)
  }

  /// Takes renewal info in; false for one that a newer one had overtaken, and for a copy.
  public mutating func fold(_ revision: RenewalRevision) -> Bool {
    let renewal = Renewal(revision)
    let index = renewals.firstIndex { !($0.originalTransaction < renewal.originalTransaction) } ?? renewals.count
    guard index < renewals.count, renewals[index].originalTransaction == renewal.originalTransaction else {
      renewals.insert(renewal, at: index)
      return true
    }
    guard renewals[index].rank < renewal.rank else { return false }
    renewals[index] = renewal
    return true
  }

  /// More orders about one account than this are nobody's daily work.
  public static let maximumOrders = 256

  /// Takes an operator's order in. False if it is there already; the caller has seen to it that there is room.
  public mutating func fold(_ order: ManualOrder) -> Bool {
    guard place(ofOrder: order.orderID, origin: order.origin) == nil else { return false }
    orders.append(order)
    return true
  }

  /// An order that was taken in, by its id and the account that it was given about.
  public func order(_ id: String, origin: Account?) -> ManualOrder? {
    place(ofOrder: id, origin: origin).map { orders[$0] }
  }

  /// From that instant on the order has no effect; what it did until then stays.
  public mutating func end(order id: String, origin: Account?, at instant: Instant) {
    guard let place = place(ofOrder: id, origin: origin), instant < orders[place].end else { return }
    orders[place].ended = instant
  }

  private func place(ofOrder id: String, origin: Account?) -> Int? {
    orders.firstIndex { $0.orderID == id && $0.origin == origin }
  }

  /// Takes a chain out (it is somebody else's now) and answers its purchases.
  public mutating func remove(chain: OriginalTransactionID) -> [Purchase] {
    let gone = purchases.filter { $0.key.originalTransaction == chain }
    purchases.removeAll { $0.key.originalTransaction == chain }
    renewals.removeAll { $0.originalTransaction == chain }
    return gone
  }

  /// Notes what the ledger holds of a purchase that is kept under these keys: under the one where it is noted already, so
  /// that it is never noted twice.
  mutating func book(_ booking: Booking, of keys: [BusinessKey], sku: ProductID?) {
    let places = keys.compactMap { place(of: $0).found }
    if let sku {
      for place in places {
        guard let index = purchases[place].items.firstIndex(where: { $0.sku == sku }) else { continue }
        purchases[place].items[index].booking = booking
        return
      }
    }
    if let index = places.first(where: { purchases[$0].booking != nil }) ?? places.first {
      purchases[index].booking = booking
    }
  }

  private func place(of key: BusinessKey) -> (found: Int?, insertion: Int) {
    var low = 0
    var high = purchases.count
    while low < high {
      let middle = (low + high) / 2
      if purchases[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return (low < purchases.count && purchases[low].key == key ? low : nil, low)
  }
}
