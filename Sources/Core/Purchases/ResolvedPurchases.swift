/// The purchases of an account as access, credits and permits are computed from them. Where several statements speak of one
/// purchase and don't all tell enough to name it, they are joined here; which of them came first is not in it.
struct ResolvedPurchases: Sendable {
  /// Where the facts keep what a purchase was made of.
  struct Origin: Sendable {
    var keys: [BusinessKey]
    /// Of one that was sold among others under a generic product.
    var sku: ProductID?
  }

  /// The purchases of a chain are neighbours.
  var purchases: [Purchase]
  /// Of each purchase; nil where each is kept under its own key: then the purchases are in order of it.
  private var origins: [Origin]?

  /// Purchases that need no joining, in order of their keys.
  init(plain purchases: [Purchase]) { self.purchases = purchases }

  /// Purchases of which some may tell less than others, in order of their keys.
  init(joining all: [Purchase], _ catalogue: Catalogue) {
    purchases = []
    purchases.reserveCapacity(all.count)
    origins = []
    var start = 0
    while start < all.count {
      var end = start + 1
      while end < all.count, all[end].key.originalTransaction == all[start].key.originalTransaction { end += 1 }
      join(all[start..<end], catalogue)
      start = end
    }
  }

  /// Whether a purchase is the one, or one of those, that a statement under that key is about.
  func isAbout(_ index: Int, _ key: BusinessKey) -> Bool {
    purchases[index].key == key || origins?[index].keys.contains(key) == true
  }

  /// The places of those that a statement under that key is about.
  func places(of key: BusinessKey) -> [Int] {
    guard origins == nil else { return purchases.indices.filter { isAbout($0, key) } }
    var low = 0
    var high = purchases.count
    while low < high {
      let middle = (low + high) / 2
      if purchases[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low < purchases.count && purchases[low].key == key ? [low] : []
  }

  func origin(of index: Int) -> Origin { origins?[index] ?? Origin(keys: [purchases[index].key]) }

  // MARK: Joining

  /// One chain. What tells less joins what tells more: a receipt knows of no seats and no items, and may not say of what
  /// type a purchase is; without a signed transaction that does, the catalogue says it.
  private mutating func join(_ chain: ArraySlice<Purchase>, _ catalogue: Catalogue) {
    var joined: [(purchase: Purchase, keys: [BusinessKey])] = []
    func add(_ purchase: Purchase, under key: BusinessKey, to place: Int?) {
      guard let place else { return joined.append((purchase, [key])) }
      joined[place].purchase.join(purchase)
      joined[place].keys.append(key)
    }
    for purchase in chain where purchase.hasDetails { add(purchase, under: purchase.key, to: nil) }
    let detailed = joined.count
    for purchase in chain where !purchase.hasDetails && purchase.type != .untold {
      let place =
        joined[..<detailed].firstIndex { $0.purchase.transaction == purchase.transaction }
        ?? joined[..<detailed].firstIndex { $0.purchase.key.part.hasPrefix(purchase.key.part + "/") }
      add(purchase, under: purchase.key, to: place)
    }
    let told = joined.count
    for var purchase in chain where !purchase.hasDetails && purchase.type == .untold {
      let key = purchase.key
      var place =
        joined[..<told].firstIndex { $0.purchase.transaction == purchase.transaction }
        ?? joined[..<told].firstIndex { $0.purchase.isOneTime }
      if place == nil, let type = catalogue.type(of: purchase), purchase.canBe(type) {
        purchase.type = type
        purchase.key = BusinessKey(
          originalTransaction: key.originalTransaction, type, purchase.transaction, lineItem: nil,
          purchased: purchase.begins)
        place = joined[told...].firstIndex { $0.purchase.key == purchase.key }
      }
      add(purchase, under: key, to: place)
    }
    for (purchase, keys) in joined {
      for (part, sku) in purchase.apart() {
        purchases.append(part)
        origins?.append(Origin(keys: keys, sku: sku))
      }
    }
  }
}

extension Purchase {
  /// Of which a chain has one, however many transactions speak of it.
  var isOneTime: Bool { type == .nonConsumable || type == .nonRenewing }

  /// Whether a purchase whose type nobody told can be of that one: a subscription can't, without an end; nor can a restored
  /// purchase be a consumable, which nobody restores.
  fileprivate func canBe(_ type: ProductType) -> Bool {
    switch type {
    case .nonConsumable, .nonRenewing: true
    case .consumable: transaction.text == key.originalTransaction.text
    case .autoRenewable, .unknown: false
    }
  }

  /// Takes in another statement about the same purchase that tells less than this one: if it is newer, whether the purchase
  /// is revoked is what it says.
  fileprivate mutating func join(_ other: Purchase) {
    booking = booking ?? other.booking
    guard rank < other.rank else { return }
    rank = other.rank
    revocationDate = other.revocationDate
    revocationPercentage = other.revocationPercentage
    if isOneTime { begins = other.begins }
    if type == .autoRenewable, let end = other.expires { expires = end }
  }
}

extension Catalogue {
  /// The type of a purchase's product: also of a consumable that is not in the catalogue any more.
  fileprivate func type(of purchase: Purchase) -> ProductType? {
    self[purchase.product]?.terms.type
      ?? (credits(purchase.product, boughtAt: purchase.begins) == nil ? nil : .consumable)
  }
}

extension AccountFacts {
  func resolved(_ catalogue: Catalogue) -> ResolvedPurchases {
    purchases.contains(where: \.needsJoining)
      ? ResolvedPurchases(joining: purchases, catalogue) : ResolvedPurchases(plain: purchases)
  }

  /// The purchases as access and credits are computed from them: each of the type that a statement or the catalogue tells.
  public func purchases(_ catalogue: Catalogue) -> [Purchase] { resolved(catalogue).purchases }

  /// Products that purchases wait for until the catalogue knows them.
  public func missing(_ catalogue: Catalogue) -> Set<ProductID> {
    Set(purchases(catalogue).filter { catalogue.isMissing($0) }.map(\.product))
  }
}
