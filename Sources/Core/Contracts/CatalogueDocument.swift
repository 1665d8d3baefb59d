import PurchasesCore
import PurchasesJSON

/// What is wrong with a catalogue, and where.
public struct CatalogueFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The line of the member that is wrong, or of what it is missing in; counted from 1.
  public let line: Int
  /// The product's id, or its place in the list where it has none; nil for the catalogue as a whole.
  public let product: String?
  /// nil where it is no member that is wrong, but the text as a whole.
  public let field: String?
  public let reason: String

  /// Without the catalogue's name: whoever read it knows where it stands.
  public var description: String {
    "line \(line): " + (product.map { "product \($0): " } ?? "") + (field.map { "\($0): " } ?? "") + reason
  }
}

/// A catalogue as a file holds it.
public struct CatalogueDocument: Sendable, Hashable {
  public let catalogue: Catalogue
  /// When it comes into force at the earliest; nil: as soon as it is handed in.
  public let from: Instant?

  /// Reads a catalogue:
  ///
  ///     {"version": "2026-11", "from": "2026-11-30T00:00:00Z", "products": [
  ///       {"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
  ///       {"id": "pro.lifetime", "type": "non-consumable", "entitlements": ["pro"], "sellable": false},
  ///       {"id": "gold.monthly", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold"]},
  ///       {"id": "season", "type": "non-renewing", "duration": "P30D", "entitlements": ["season"],
  ///        "sellable": {"from": "2026-12-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"}}]}
  ///
  /// Members that it doesn't know are refused, since a misspelt one would sell what nobody gets.
  public init(parsing bytes: [UInt8]) throws(CatalogueFailure) {
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(parsing: bytes) } catch {
      throw CatalogueFailure(
        line: JSONPlaces.line(ofByte: error.offset, in: bytes), product: nil, field: nil,
        reason: "is not JSON (byte \(error.offset): \(error.reason))")
    }
    if let name = document.firstDuplicateMember() {
      throw CatalogueFailure(
        line: JSONPlaces.line(ofSecond: name, in: bytes) ?? 1, product: nil, field: name,
        reason: "stands twice in one object")
    }
    /// - Parameter index: of the product in the list.
    func failure(
      in product: (index: Int, name: String)? = nil, _ field: String?, _ reason: String
    ) -> CatalogueFailure {
      var path: [JSONPlaces.Step] = []
      if let product { path += [.member("products"), .element(product.index)] }
      for name in field?.split(separator: ".") ?? [] { path.append(.member(String(name))) }
      return CatalogueFailure(
        line: JSONPlaces.line(of: path, in: bytes), product: product?.name, field: field, reason: reason)
    }
    func read<T>(
      in product: (index: Int, name: String)? = nil, _ body: () throws(FieldFailure) -> T
    ) throws(CatalogueFailure) -> T {
      do throws(FieldFailure) { return try body() } catch { throw failure(in: product, error.field, error.reason) }
    }
    guard document.root.kind == .object else { throw failure(nil, "must be a JSON object") }
    let fields = try read { () throws(FieldFailure) in try Fields(document.root, path: "") }
    for member in fields.view.members where !["version", "from", "products"].contains(member.name) {
      throw failure(member.name, "is not a member of a catalogue")
    }
    let version = try read { () throws(FieldFailure) in try fields.requiredText("version", maximumBytes: 128) }
    let from = try read { () throws(FieldFailure) in try fields.instant("from") }
    guard let list = fields.member("products"), list.kind == .array else {
      throw failure("products", "must be an array")
    }
    var products: [CatalogueProduct] = []
    var seen: Set<ProductID> = []
    for (index, view) in list.elements.enumerated() {
      let place = (index: index, name: view["id"]?.string ?? "number \(index + 1)")
      guard view.kind == .object else { throw failure(in: place, nil, "must be a JSON object") }
      let product = try read(in: place) { () throws(FieldFailure) in try CatalogueProduct(Fields(view, path: "")) }
      guard seen.insert(product.id).inserted else { throw failure(in: place, "id", "stands twice") }
      products.append(product)
    }
    catalogue = Catalogue(version: version, products: products)
    self.from = from
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
