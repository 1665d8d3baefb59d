/// Of a subscription that was bought for several people: what its transaction says beside its quantity, the seats it covers.
public struct Seats: Sendable, Hashable {
  /// Seats that refunds took back. They revoke nothing: the transaction stands for the others.
  public var revoked: Int64
  /// Whether more than one transaction stands for the period, since seats were added to it.
  public var isAddition: Bool

  public init(revoked: Int64, isAddition: Bool) {
    self.revoked = revoked
    self.isAddition = isAddition
  }
}

/// One of the products that a transaction sold under a generic one (Apple's Advanced Commerce API).
public struct PurchasedItem: Sendable, Hashable {
  /// The seller's own identifier: what the catalogue knows.
  public var sku: ProductID
  public var revocationDate: Instant?
  /// Of a consumable: the credits that it came to.
  public var booking: Booking?

  public init(sku: ProductID, revocationDate: Instant? = nil, booking: Booking? = nil) {
    self.sku = sku
    self.revocationDate = revocationDate
    self.booking = booking
  }
}

extension Purchase {
  /// Whether it goes on beside that earlier period of its chain rather than in its place: it added seats to it. Apple says
  /// so in a statement that may not be here yet, so that equal ends count as well; the product is the same, or it is an
  /// upgrade of them all.
  public func adds(to period: Purchase) -> Bool {
    guard let seats, period.seats != nil, product == period.product, let end = period.expires,
      period.begins <= begins, begins < end
    else { return false }
    return expires == end || seats.isAddition
  }

  /// What a newer statement about the purchase leaves of an earlier one: what the ledger holds. An item that the newer one
  /// lists no more is taken back, which is of interest only where there are credits of it.
  mutating func takeBookings(of before: Purchase) {
    booking = before.booking
    for item in before.items {
      guard let booking = item.booking else { continue }
      if let index = items.firstIndex(where: { $0.sku == item.sku }) {
        items[index].booking = booking
      } else {
        items.append(PurchasedItem(sku: item.sku, revocationDate: rank.signedDate, booking: booking))
      }
    }
  }

  /// The purchase as its items, each with its own product and key; itself where it has none.
  func apart() -> [(purchase: Purchase, sku: ProductID?)] {
    guard !items.isEmpty else { return [(self, nil)] }
    var parts: [(purchase: Purchase, sku: ProductID?)] = []
    if booking != nil {
      // Credited as its generic product, by a receipt that knew of no items: it never was that.
      var whole = self
      whole.items = []
      whole.revocationDate = rank.signedDate
      whole.revocationPercentage = nil
      parts.append((whole, nil))
    }
    for item in items {
      var part = self
      part.key = BusinessKey(
        originalTransaction: key.originalTransaction, part: "\(key.part)/sku:\(item.sku.text)")
      part.product = item.sku
      part.items = []
      part.booking = item.booking
      if let date = item.revocationDate {
        part.revocationDate = min(date, revocationDate ?? date)
        part.revocationPercentage = nil
      }
      parts.append((part, item.sku))
    }
    return parts
  }
}
