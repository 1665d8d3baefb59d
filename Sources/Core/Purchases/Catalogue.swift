/// What products are and what they give. Versioned: each grant names the version that made it.
public struct Catalogue: Sendable, Hashable {
  public let version: String
  private let products: [ProductID: CatalogueProduct]
  /// What consumables were worth, by when they were bought, in order of time: of catalogues that had others before them.
  private let worths: [ProductID: [Worth]]

  /// Credits of one piece.
  public struct Worth: Sendable, Hashable {
    public let unit: CreditUnit
    public let amount: Int64
    /// Holds for what was bought before then.
    fileprivate var until: Instant
  }

  /// Products by their ids; the caller has seen to it that none stands twice.
  public init(version: String, products: [CatalogueProduct]) {
    self.version = version
    self.products = Dictionary(products.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    worths = [:]
  }

  /// The catalogue as it is in force after another one.
  init(_ catalogue: Catalogue, after previous: Catalogue?, from: Instant) {
    version = catalogue.version
    products = catalogue.products
    // What the one before knew holds for what was bought until it ended; what it did not know is worth what this one says.
    var worths = (previous?.worths ?? [:]).mapValues { spans in
      var spans = spans
      spans[spans.count - 1].until = min(spans[spans.count - 1].until, from)
      return spans
    }
    for product in products.values {
      guard case .consumable(let unit, let amount) = product.terms else { continue }
      worths[product.id, default: []].append(Worth(unit: unit, amount: amount, until: .distantFuture))
    }
    self.worths = worths
  }

  public subscript(_ id: ProductID) -> CatalogueProduct? { products[id] }

  /// In order of their ids.
  public var all: [CatalogueProduct] { products.values.sorted { $0.id < $1.id } }

  /// The product as the catalogue knows it, if it is there as the type that Apple says it has. A product of another type is a
  /// mistake in the catalogue: its purchases wait, as those of an unknown one do.
  public func product(_ id: ProductID, as type: ProductType) -> CatalogueProduct? {
    guard let product = products[id], product.terms.type == type else { return nil }
    return product
  }

  /// What a piece of a consumable is worth that was bought then: by the catalogue in force on that day, else by the first
  /// later one that knew it. Later catalogues don't change what was bought, and neither does who has it, or when it is told.
  /// nil: no catalogue has known it since.
  public func credits(_ id: ProductID, boughtAt date: Instant) -> Worth? {
    if let spans = worths[id] { return spans.first { date < $0.until } }
    guard case .consumable(let unit, let amount) = products[id]?.terms else { return nil }
    return Worth(unit: unit, amount: amount, until: .distantFuture)
  }

  /// Whether the purchase's product is known, as the type that it has.
  public func knows(_ purchase: Purchase) -> Bool {
    purchase.type == .consumable
      ? credits(purchase.product, boughtAt: purchase.begins) != nil
      : product(purchase.product, as: purchase.type) != nil
  }

  /// A consumable that was booked is known, whatever later catalogues leave out.
  func isUnknown(_ purchase: Purchase) -> Bool { !purchase.isBooked && !knows(purchase) }

  /// Whether a purchase of which something is left waits for a catalogue that knows it.
  public func isMissing(_ purchase: Purchase) -> Bool { !purchase.isTakenBack && isUnknown(purchase) }
}

public struct CatalogueProduct: Sendable, Hashable {
  /// What goes with the product's type.
  public enum Terms: Sendable, Hashable {
    case consumable(CreditUnit, amount: Int64)
    case nonConsumable
    /// Level 1 is the highest of its group, as in App Store Connect.
    case autoRenewable(group: String, level: Int64)
    case nonRenewing(CalendarDuration)

    public var type: ProductType {
      switch self {
      case .consumable: .consumable
      case .nonConsumable: .nonConsumable
      case .autoRenewable: .autoRenewable
      case .nonRenewing: .nonRenewing
      }
    }
  }

  /// Credits of one piece: with the largest quantity and a share in thousandths of a percent it still fits 64 bits.
  public static let maximumCredits: Int64 = 1_000_000_000

  public let id: ProductID
  public let terms: Terms
  /// What the account may use; empty for a consumable.
  public let entitlements: [EntitlementID]
  /// Whether it is offered. What Apple has sold counts all the same.
  public let sale: Sale

  public init(id: ProductID, terms: Terms, entitlements: [EntitlementID], sale: Sale = .always) {
    self.id = id
    self.terms = terms
    self.entitlements = entitlements
    self.sale = sale
  }
}
