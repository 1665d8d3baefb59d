import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON

/// What clients tell Apple.
extension ServerAPIRoutes {
  func told(
    _ call: String, _ id: String, _ request: HTTPRequest, status: Int, checking fault: (JSON) -> HTTPResponse?
  ) -> HTTPResponse {
    guard books.read(environment, { Self.find($0, id) }) != nil else { return Self.notFound }
    if !request.body.isEmpty {
      guard let body = try? JSON(parsing: request.body) else { return AppleAnswer.error(4_000_000, "Bad request.") }
      if let refusal = fault(body) { return refusal }
    }
    books.change(environment) {
      $0.told.append(AppleBooks.Told(call: call, transaction: id, body: request.body))
    }
    return HTTPResponse(status: status, contentType: "application/json", body: [])
  }

  static func consumptionFault(_ body: JSON) -> HTTPResponse? {
    guard body["customerConsented"]?.bool == true else {
      return AppleAnswer.error(4_000_035, "Invalid customer consented.")
    }
    let deliveries = [
      "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
      "UNDELIVERED_OTHER",
    ]
    guard let delivery = body["deliveryStatus"]?.string, deliveries.contains(delivery) else {
      return AppleAnswer.error(4_000_036, "Invalid delivery status.")
    }
    guard body["sampleContentProvided"]?.bool != nil else {
      return AppleAnswer.error(4_000_041, "Invalid sample content provided.")
    }
    return nil
  }

  static func tokenFault(_ body: JSON) -> HTTPResponse? {
    guard let token = body["appAccountToken"]?.string, Account.isUUID(token) else {
      return AppleAnswer.error(4_000_183, "Invalid app account token.")
    }
    return nil
  }

  func extend(_ original: String, _ request: HTTPRequest) -> HTTPResponse {
    let newest: AppleBooks.Sold? = books.read(environment) { side in
      side.sold.filter { $0.text("originalTransactionId") == original }
        .max { $0.number("expiresDate") ?? 0 < $1.number("expiresDate") ?? 0 }
    }
    guard let newest, let expires = newest.number("expiresDate") else {
      return AppleAnswer.error(4_040_005, "Original transaction id not found.")
    }
    guard let body = try? JSON(parsing: request.body), let days = body["extendByDays"]?.int64, (1...90).contains(days)
    else { return AppleAnswer.error(4_000_009, "Invalid extend by days.") }
    guard expires > clock.now().milliseconds else {
      return AppleAnswer.error(4_030_004, "Forbidden - subscription state ineligible for extension.")
    }
    let extensions = books.read(environment) { side in
      side.told.count { $0.call == "extend" && $0.transaction == original }
    }
    guard extensions < 2 else {
      return AppleAnswer.error(4_030_005, "Forbidden - subscription has reached maximum extension count.")
    }
    books.change(environment) {
      $0.told.append(AppleBooks.Told(call: "extend", transaction: original, body: request.body))
    }
    return AppleAnswer.json(200) { json in
      json.field("effectiveDate", expires + days * 86_400_000)
      json.field("originalTransactionId", original)
      json.field("success", true)
      json.field("webOrderLineItemId", newest.text("webOrderLineItemId"))
    }
  }
}
