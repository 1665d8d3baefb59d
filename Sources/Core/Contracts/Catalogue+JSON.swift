import PurchasesCore
import PurchasesJSON

/// What is wrong with a catalogue, and where.
public struct CatalogueFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The product's id, or its place in the list where it has none; nil for the catalogue as a whole.
  public let product: String?
  /// nil where it is no member that is wrong, but the text as a whole.
  public let field: String?
  public let reason: String

  public init(product: String?, field: String?, reason: String) {
    self.product = product
    self.field = field
    self.reason = reason
  }

  /// Without the catalogue's name: whoever read it knows where it stands.
  public var description: String {
    (product.map { "product \($0): " } ?? "") + (field.map { "\($0): " } ?? "") + reason
  }
}

/// A catalogue as a file holds it.
public struct CatalogueDocument: Sendable, Hashable {
  public let catalogue: Catalogue
  /// When it comes into force at the earliest; nil: as soon as it is handed in.
  public let from: Instant?
}

extension CatalogueDocument {
  /// Reads a catalogue:
  ///
  ///     {"version": "2026-11", "from": "2026-11-30T00:00:00Z", "products": [
  ///       {"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
  ///       {"id": "pro.lifetime", "type": "non-consumable", "entitlements": ["pro"]},
  ///       {"id": "gold.monthly", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold"]},
  ///       {"id": "season", "type": "non-renewing", "duration": "P30D", "entitlements": ["season"]}]}
  ///
  /// Members that it doesn't know are refused, since a misspelt one would sell what nobody gets.
  public init(parsing bytes: [UInt8]) throws(CatalogueFailure) {
    func read<T>(_ product: String?, _ body: () throws(FieldFailure) -> T) throws(CatalogueFailure) -> T {
      do throws(FieldFailure) { return try body() } catch {
        throw CatalogueFailure(product: product, field: error.field, reason: error.reason)
      }
    }
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(parsing: bytes) } catch {
      throw CatalogueFailure(
        product: nil, field: nil, reason: "is not JSON (byte \(error.offset): \(error.reason))")
    }
    if let name = document.firstDuplicateMember() {
      throw CatalogueFailure(product: nil, field: name, reason: "stands twice in one object")
    }
    guard document.root.kind == .object else {
      throw CatalogueFailure(product: nil, field: nil, reason: "must be a JSON object")
    }
    let fields = try read(nil) { () throws(FieldFailure) in try Fields(document.root, path: "") }
    for member in fields.view.members where !["version", "from", "products"].contains(member.name) {
      throw CatalogueFailure(product: nil, field: member.name, reason: "is not a member of a catalogue")
    }
    let version = try read(nil) { () throws(FieldFailure) in
      try fields.requiredText("version", maximumBytes: 128)
    }
    let from = try read(nil) { () throws(FieldFailure) in try fields.instant("from") }
    guard let list = fields.member("products"), list.kind == .array else {
      throw CatalogueFailure(product: nil, field: "products", reason: "must be an array")
    }
    var products: [CatalogueProduct] = []
    var seen: Set<ProductID> = []
    for (index, view) in list.elements.enumerated() {
      let name = view["id"]?.string ?? "number \(index + 1)"
      guard view.kind == .object else {
        throw CatalogueFailure(product: name, field: nil, reason: "must be a JSON object")
      }
      let product = try read(name) { () throws(FieldFailure) in try CatalogueProduct(Fields(view, path: "")) }
      guard seen.insert(product.id).inserted else {
        throw CatalogueFailure(product: name, field: "id", reason: "stands twice")
      }
      products.append(product)
    }
    self.init(catalogue: Catalogue(version: version, products: products), from: from)
  }
}

extension Catalogue {
  public init(parsing bytes: [UInt8]) throws(CatalogueFailure) {
    self = try CatalogueDocument(parsing: bytes).catalogue
  }

  public var json: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("version", version)
      json.field("products", array: { json in for product in all { product.write(&json) } })
    }
    return writer.bytes
  }
}

extension CatalogueProduct {
  init(_ fields: Fields) throws(FieldFailure) {
    let id: ProductID = try fields.required("id")
    let type = try fields.requiredText("type")
    let known: Set<String>
    let terms: Terms
    switch type {
    case "consumable":
      known = ["id", "type", "credits"]
      guard let credits = try fields.object("credits") else { throw fields.failure("credits", "is missing") }
      guard let amount = try credits.integer("amount") else { throw credits.failure("amount", "is missing") }
      guard (1...Self.maximumCredits).contains(amount) else {
        throw credits.failure("amount", "must be 1 to \(Self.maximumCredits)")
      }
      terms = .consumable(try credits.required("unit"), amount: amount)
    case "non-consumable":
      known = ["id", "type", "entitlements"]
      terms = .nonConsumable
    case "auto-renewable":
      known = ["id", "type", "entitlements", "group", "level"]
      guard let level = try fields.integer("level") else { throw fields.failure("level", "is missing") }
      guard (1...1000).contains(level) else { throw fields.failure("level", "must be 1 (the highest) to 1000") }
      terms = .autoRenewable(group: try fields.requiredText("group", maximumBytes: 128), level: level)
    case "non-renewing":
      known = ["id", "type", "entitlements", "duration"]
      guard let duration = CalendarDuration(iso8601: try fields.requiredText("duration")) else {
        throw fields.failure("duration", "must be a duration as ISO 8601 writes it, such as P30D, P1M or P1Y")
      }
      terms = .nonRenewing(duration)
    default:
      throw fields.failure("type", "must be consumable, non-consumable, auto-renewable or non-renewing")
    }
    for member in fields.view.members where !known.contains(member.name) {
      throw FieldFailure(member.name, "is not a member of a product of type \(type)")
    }
    var entitlements: [EntitlementID] = []
    if known.contains("entitlements") {
      guard let list = fields.member("entitlements"), list.kind == .array, list.count > 0 else {
        throw fields.failure("entitlements", "must be an array of one name or more")
      }
      for element in list.elements {
        guard let name = element.string.flatMap({ EntitlementID($0) }) else {
          throw fields.failure("entitlements", "must be names without spaces, control characters or '/'")
        }
        guard !entitlements.contains(name) else { throw fields.failure("entitlements", "\(name) stands twice") }
        entitlements.append(name)
      }
    }
    self.init(id: id, terms: terms, entitlements: entitlements)
  }

  public func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("id", id.text)
      switch terms {
      case .consumable(let unit, let amount):
        json.field("type", "consumable")
        json.field(
          "credits",
          object: { json in
            json.field("unit", unit.text)
            json.field("amount", amount)
          })
      case .nonConsumable: json.field("type", "non-consumable")
      case .autoRenewable(let group, let level):
        json.field("type", "auto-renewable")
        json.field("group", group)
        json.field("level", level)
      case .nonRenewing(let duration):
        json.field("type", "non-renewing")
        json.field("duration", duration.description)
      }
      if !entitlements.isEmpty {
        json.field("entitlements", array: { json in for name in entitlements { json.element(name.text) } })
      }
    }
  }
}
