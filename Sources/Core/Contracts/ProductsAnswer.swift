import PurchasesCore
import PurchasesJSON

/// What StoreKit's products request answers, from the catalogue: the products that can be bought, the identifiers that are
/// invalid, and beyond StoreKit why.
public struct ProductsAnswer: Sendable {
  public let environment: Environment
  public let at: Instant
  public let catalogueVersion: String
  /// In the order asked for.
  public let products: [CatalogueProduct]
  /// In the order asked for; each with all that is in the way.
  public let invalid: [(id: String, obstacles: [CatalogueProduct.Obstacle])]

  /// - Parameter ids: those asked for, each answered once; nil: all that the catalogue knows.
  public init(_ catalogue: Catalogue, ids: [String]?, in environment: Environment, at instant: Instant) {
    self.environment = environment
    at = instant
    catalogueVersion = catalogue.version
    var products: [CatalogueProduct] = []
    var invalid: [(id: String, obstacles: [CatalogueProduct.Obstacle])] = []
    var seen: Set<String> = []
    for id in ids ?? catalogue.all.map(\.id.text) where seen.insert(id).inserted {
      guard let product = ProductID(id).flatMap({ catalogue[$0] }) else {
        invalid.append((id, [.unknown]))
        continue
      }
      let obstacles = product.obstacles(in: environment, at: instant)
      if obstacles.isEmpty { products.append(product) } else { invalid.append((id, obstacles)) }
    }
    self.products = products
    self.invalid = invalid
  }

  public func write(_ json: inout JSONWriter) {
    json.field("environment", environment.rawValue)
    json.field("at", rfc3339: at)
    json.field("catalogueVersion", catalogueVersion)
    json.field("products", array: { json in for product in products { product.write(&json) } })
    json.field("invalidProductIdentifiers", array: { json in for (id, _) in invalid { json.element(id) } })
    json.field(
      "notSellable",
      array: { json in
        for (id, obstacles) in invalid {
          json.object { json in
            json.field("id", id)
            json.field("reasons", array: { json in for obstacle in obstacles { json.element(obstacle.rawValue) } })
          }
        }
      })
  }

  public var json: [UInt8] {
    var writer = JSONWriter()
    writer.object { write(&$0) }
    return writer.bytes
  }
}
