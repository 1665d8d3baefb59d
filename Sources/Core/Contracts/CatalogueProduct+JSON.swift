import PurchasesCore
import PurchasesJSON

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
    for member in fields.view.members where !known.contains(member.name) && member.name != "sellable" {
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
    self.init(id: id, terms: terms, entitlements: entitlements, sale: try Self.sale(fields))
  }

  /// `true`, `false`, or when and where.
  private static func sale(_ fields: Fields) throws(FieldFailure) -> Sale {
    guard let value = fields.member("sellable") else { return .always }
    if let flag = value.bool { return flag ? .always : .withdrawn }
    guard value.kind == .object, let sale = try fields.object("sellable") else {
      throw fields.failure("sellable", "must be true, false, or an object of from, until and environments")
    }
    for member in sale.view.members where !["from", "until", "environments"].contains(member.name) {
      throw FieldFailure("sellable.\(member.name)", "is not a member of it")
    }
    let (from, until) = (try sale.instant("from"), try sale.instant("until"))
    if let from, let until, until <= from { throw sale.failure("until", "must be later than from") }
    guard let list = sale.member("environments") else { return Sale(from: from, until: until) }
    var environments: Set<Environment> = []
    for element in list.elements {
      guard let environment = element.string.flatMap(Environment.init(rawValue:)) else {
        throw sale.failure("environments", "must be names of environments, such as Production and Sandbox")
      }
      environments.insert(environment)
    }
    guard !environments.isEmpty else { throw sale.failure("environments", "must be an array of one name or more") }
    return Sale(from: from, until: until, environments: environments)
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
      guard sale != .always else { return }
      guard !sale.isWithdrawn else { return json.field("sellable", false) }
      json.field(
        "sellable",
        object: { json in
          json.field("from", rfc3339: sale.from)
          json.field("until", rfc3339: sale.until)
          guard let environments = sale.environments else { return }
          json.field(
            "environments",
            array: { json in
              for environment in environments.sorted(by: { $0.rawValue < $1.rawValue }) {
                json.element(environment.rawValue)
              }
            })
        })
    }
  }
}
