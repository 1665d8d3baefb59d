import PurchasesCore
import PurchasesJSON

/// Data of `catalogue.published`, of the topic `catalogue`: the catalogues that decide, each with the time from which on it
/// does. Of several of one version the first in the log counts.
public struct CataloguePublished: Sendable, Hashable {
  /// All catalogues have one key, so that they stand in one order.
  public static let key = "catalogue"

  public var catalogue: Catalogue
  /// Log time; the first catalogue there is holds for what was before it, too.
  public var from: Instant
  /// Who published it by hand; nil where a service did that was started with it.
  public var operatorName: String?

  public init(catalogue: Catalogue, from: Instant, operatorName: String? = nil) {
    self.catalogue = catalogue
    self.from = from
    self.operatorName = operatorName
  }

  public init(type: EventType, data: [UInt8]) throws(FieldFailure) {
    guard type == .cataloguePublished else {
      throw FieldFailure("type", "\(type.rawValue) is not an event of the topic catalogue")
    }
    let fields = try Fields(parsing: data)
    guard let document = fields.member("catalogue"), document.kind == .object else {
      throw fields.failure("catalogue", "must be a JSON object")
    }
    let catalogue: Catalogue
    do throws(CatalogueFailure) { catalogue = try Catalogue(parsing: document.text) } catch {
      throw fields.failure("catalogue", error.description)
    }
    guard try fields.requiredText("version") == catalogue.version else {
      throw fields.failure("version", "is not that of the catalogue")
    }
    guard let from = try fields.instant("from") else { throw fields.failure("from", "is missing") }
    self.init(catalogue: catalogue, from: from, operatorName: try fields.text("operator"))
  }

  public var data: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("version", catalogue.version)
      json.field("from", rfc3339: from)
      json.field("operator", operatorName)
      json.field("catalogue", raw: catalogue.json)
    }
    return writer.bytes
  }
}
