import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import PurchasesJSON

/// The App Store Server API of one side.
struct ServerAPIRoutes: Sendable {
  let books: AppleBooks
  let credentials: APICredentials
  let environment: Environment
  let clock: any Clock

  /// As many as Apple puts on a page.
  static let pageSize = 20

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    let now = clock.now()
    guard let bundle = credentials.bundle(authorization: request.headers["authorization"], now: now) else {
      return HTTPResponse(status: 401, contentType: "text/plain", body: Array("Unauthenticated\n".utf8))
    }
    let path = Array(request.path.dropFirst())
    switch (request.method, path.count) {
    case ("GET", 3) where path.starts(with: ["v1", "transactions"]): return transaction(path[2])
    case ("GET", 3) where path.starts(with: ["v2", "history"]): return history(path[2], request, refundsOnly: false)
    case ("GET", 4) where path.starts(with: ["v2", "refund", "lookup"]):
      return history(path[3], request, refundsOnly: true)
    case ("GET", 4) where path.starts(with: ["v1", "transactions", "appTransactions"]): return appTransaction(path[3])
    case ("GET", 3) where path.starts(with: ["v1", "lookup"]): return order(path[2])
    case ("GET", 3) where path.starts(with: ["v1", "subscriptions"]): return statuses(path[2], request, bundle)
    case ("POST", 3) where path == ["v1", "notifications", "history"]: return notifications(request, now)
    case ("POST", 3) where path == ["v1", "notifications", "test"]: return test(bundle, now)
    case ("GET", 4) where path.starts(with: ["v1", "notifications", "test"]): return testStatus(path[3])
    case ("PUT", 4) where path.starts(with: ["v2", "transactions", "consumption"]):
      return told("consumption", path[3], request, status: 202, checking: Self.consumptionFault)
    case ("PUT", 4) where path.starts(with: ["v1", "transactions"]) && path[3] == "appAccountToken":
      return told("appAccountToken", path[2], request, status: 200, checking: Self.tokenFault)
    case ("PUT", 4) where path.starts(with: ["v1", "subscriptions", "extend"]): return extend(path[3], request)
    case ("POST", 4) where path.starts(with: ["v1", "transactions"]) && path[3] == "finish":
      return told("finish", path[2], request, status: 200) { _ in nil }
    default: return HTTPResponse(status: 404, contentType: "text/plain", body: Array("Not Found\n".utf8))
    }
  }

  // MARK: Reading

  static let notFound = AppleAnswer.error(4_040_010, "Transaction id not found.")

  static func find(_ side: AppleBooks.Side, _ id: String) -> AppleBooks.Sold? {
    // The newest of the chain where the id is that of its first transaction and of no other.
    side.sold.last { $0.text("transactionId") == id } ?? side.sold.last { $0.text("originalTransactionId") == id }
  }

  private func transaction(_ id: String) -> HTTPResponse {
    guard IdentifierRule.isDecimal(id) else { return AppleAnswer.error(4_000_006, "Invalid transaction id.") }
    guard let sold = books.read(environment, { Self.find($0, id) }) else { return Self.notFound }
    return AppleAnswer.json(200) { $0.field("signedTransactionInfo", sold.signed) }
  }

  private func history(_ id: String, _ request: HTTPRequest, refundsOnly: Bool) -> HTTPResponse {
    let all: [AppleBooks.Sold]? = books.read(environment) { side in
      guard let customer = Self.find(side, id)?.customer else { return nil }
      return side.sold.filter { $0.customer == customer }
    }
    guard var all else { return Self.notFound }
    func values(_ name: String) -> [String] { request.query.filter { $0.name == name }.map(\.value) }
    let products = values("productId")
    if !products.isEmpty { all = all.filter { products.contains($0.text("productId") ?? "") } }
    let wantsRevoked = refundsOnly ? true : request.queryValue("revoked").map { $0 == "true" }
    if let wantsRevoked { all = all.filter { ($0.number("revocationDate") != nil) == wantsRevoked } }
    if let start = request.queryValue("startDate").flatMap({ Int64($0) }) {
      all = all.filter { $0.number("purchaseDate") ?? 0 >= start }
    }
    if let end = request.queryValue("endDate").flatMap({ Int64($0) }) {
      all = all.filter { $0.number("purchaseDate") ?? 0 < end }
    }
    if request.queryValue("sort") == "DESCENDING" { all.reverse() }
    var first = 0
    if let revision = request.queryValue("revision") {
      guard let index = Self.index(revision), index <= all.count else {
        return AppleAnswer.error(4_000_005, "Invalid request revision.")
      }
      first = index
    }
    let page = all[first...].prefix(Self.pageSize)
    let end = first + page.count
    return AppleAnswer.json(200) { json in
      json.field("environment", environment.rawValue)
      json.field("hasMore", end < all.count)
      json.field("revision", Self.token(end))
      json.field("signedTransactions", array: { json in for sold in page { json.element(sold.signed) } })
    }
  }

  /// Where the next page begins, in a form that nobody should count in.
  static func token(_ index: Int) -> String { "r-" + String(index, radix: 36) }
  static func index(_ token: String) -> Int? {
    token.hasPrefix("r-") ? Int(token.dropFirst(2), radix: 36).flatMap { $0 >= 0 ? $0 : nil } : nil
  }

  private func appTransaction(_ id: String) -> HTTPResponse {
    let found: String? = books.read(environment) { side in
      side.appTransactions[Self.find(side, id)?.text("appTransactionId") ?? id]
    }
    guard let found else { return AppleAnswer.error(4_040_019, "No AppTransaction exists for the customer.") }
    return AppleAnswer.json(200) { $0.field("signedAppTransactionInfo", found) }
  }

  private func order(_ id: String) -> HTTPResponse {
    let signed: [String] = books.read(environment) { side in
      (side.orders[id] ?? []).compactMap { Self.find(side, $0)?.signed }
    }
    return AppleAnswer.json(200) { json in
      json.field("status", signed.isEmpty ? 1 : 0 as Int64)
      if !signed.isEmpty {
        json.field("signedTransactions", array: { json in for one in signed { json.element(one) } })
      }
    }
  }

  private func statuses(_ id: String, _ request: HTTPRequest, _ bundle: String) -> HTTPResponse {
    let now = clock.now().milliseconds
    let wanted = Set(request.query.filter { $0.name == "status" }.compactMap { Int64($0.value) })
    let found: (newest: [AppleBooks.Sold], renewals: [String: String])? = books.read(environment) { side in
      guard let customer = Self.find(side, id)?.customer else { return nil }
      var newest: [String: AppleBooks.Sold] = [:]
      for sold in side.sold where sold.customer == customer && sold.number("expiresDate") != nil {
        guard let original = sold.text("originalTransactionId") else { continue }
        if newest[original]?.number("expiresDate") ?? .min <= sold.number("expiresDate") ?? .min {
          newest[original] = sold
        }
      }
      return (newest.sorted { $0.key < $1.key }.map(\.value), side.renewals)
    }
    guard let found else { return Self.notFound }
    func status(_ sold: AppleBooks.Sold) -> Int64 {
      if sold.number("revocationDate") != nil { return 5 }
      return sold.number("expiresDate") ?? 0 > now ? 1 : 2
    }
    let groups = Dictionary(grouping: found.newest) { $0.text("subscriptionGroupIdentifier") ?? "" }
    return AppleAnswer.json(200) { json in
      json.field("environment", environment.rawValue)
      json.field("bundleId", bundle)
      json.field(
        "data",
        array: { json in
          for (group, chains) in groups.sorted(by: { $0.key < $1.key }) {
            json.object { json in
              json.field("subscriptionGroupIdentifier", group)
              json.field(
                "lastTransactions",
                array: { json in
                  for sold in chains where wanted.isEmpty || wanted.contains(status(sold)) {
                    let original = sold.text("originalTransactionId") ?? ""
                    json.object { json in
                      json.field("originalTransactionId", original)
                      json.field("status", status(sold))
                      json.field("signedTransactionInfo", sold.signed)
                      json.field("signedRenewalInfo", found.renewals[original])
                    }
                  }
                })
            }
          }
        })
    }
  }
}
