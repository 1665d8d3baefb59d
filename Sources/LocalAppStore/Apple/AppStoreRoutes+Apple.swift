import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON

/// What is told to the played servers: what they have sold and sent, and how they are to fail.
extension AppStoreRoutes {
  func appleRoutes(_ request: HTTPRequest) -> HTTPResponse {
    switch (request.method, request.path.dropFirst().first, request.path.count) {
    case ("POST", "revoked", 2): return revoke(request)
    case ("POST", "outages", 2) where isAboutResponder(request):
      guard let responder else { return problem(404, "no responder is played here") }
      return outage(request) { _ in responder.outages }
    case ("DELETE", "outages", 2) where apple != nil || responder != nil:
      if let apple { for outages in apple.outages.values { outages.clear() } }
      responder?.outages.clear()
      return HTTPResponse(status: 204)
    default: break
    }
    guard let apple else { return problem(404, "Apple's servers are not played here") }
    switch (request.method, request.path.dropFirst().first, request.path.count) {
    case ("POST", "books", 3): return keep(request, request.path[2], apple)
    case ("GET", "books", 3) where request.path[2] == "told": return told(request, apple)
    case ("POST", "outages", 2): return outage(request) { apple.outages[$0] }
    default: return problem(404, "there is nothing at this path")
    }
  }

  private func keep(_ request: HTTPRequest, _ name: String, _ apple: AppleServers) -> HTTPResponse {
    guard let kind = ProofKind(rawValue: name), ProofKind.jws.contains(kind) else {
      return problem(404, "kinds are " + ProofKind.jws.map(\.rawValue).joined(separator: ", "))
    }
    let at: Instant
    if let text = request.queryValue("at") {
      guard let read = Instant(rfc3339: text) else { return problem(400, field: "at", "must be a time") }
      at = read
    } else {
      at = desk.clock.now()
    }
    do throws(SigningFailure) {
      let books = apple.books
      let signed: String
      switch kind {
      case .transaction: signed = try books.sell(request.body, order: request.queryValue("order"))
      case .renewalInfo: signed = try books.note(renewal: request.body)
      case .appTransaction: signed = try books.note(appTransaction: request.body)
      case .notification:
        let attempts = request.queryValue("result").map { [AppleBooks.Attempt(at: at, result: $0)] } ?? []
        signed = try books.send(request.body, at: at, attempts: attempts)
      // Kept by what `verifyReceipt` is to answer about it, and signed elsewhere.
      case .appReceipt: return problem(404, "receipts are not kept this way")
      }
      return json(200) { $0.field("signed", signed) }
    } catch { return problem(400, field: "payload", error.description) }
  }

  private func told(_ request: HTTPRequest, _ apple: AppleServers) -> HTTPResponse {
    let environment = request.queryValue("environment").flatMap { Environment(rawValue: $0) } ?? .production
    var lines: [UInt8] = []
    for told in apple.books.told(environment) {
      var writer = JSONWriter()
      writer.object { json in
        json.field("call", told.call)
        json.field("transactionId", told.transaction)
        json.field("body", String(decoding: told.body, as: UTF8.self))
      }
      lines += writer.bytes + [0x0A]
    }
    return HTTPResponse(status: 200, contentType: "application/x-ndjson", body: lines)
  }

  /// A script of more would outlast any test.
  private static let maximumTimes: Int64 = 1_000_000

  private func isAboutResponder(_ request: HTTPRequest) -> Bool {
    guard let fields = try? Fields(fromOutside: request.body), let path = try? fields.text("path") else { return false }
    return path.hasPrefix("/ocsp")
  }

  private func revoke(_ request: HTTPRequest) -> HTTPResponse {
    guard let responder else { return problem(404, "no responder is played here") }
    do throws(FieldFailure) {
      let fields = try Fields(fromOutside: request.body)
      let serial = try fields.requiredText("serial")
      responder.set(.revoked(since: desk.clock.now().milliseconds), ofSerial: serial)
      return HTTPResponse(status: 204)
    } catch { return problem(400, field: error.field, error.reason) }
  }

  private func outage(_ request: HTTPRequest, _ script: (Environment) -> OutageScript?) -> HTTPResponse {
    do throws(FieldFailure) {
      let fields = try Fields(fromOutside: request.body)
      let environment = try fields.environment() ?? .production
      guard let script = script(environment) else {
        throw fields.failure("environment", "must be Production or Sandbox")
      }
      guard let outage = Outage(try fields.requiredText("outage")) else {
        throw fields.failure(
          "outage",
          "must be a status, reset, hang:SECONDS, html, truncated, empty, 302, 429:RETRY-AFTER, status:N or error:N")
      }
      let times = try fields.integer("times") ?? 1
      guard (1...Self.maximumTimes).contains(times) else {
        throw fields.failure("times", "must be 1 to \(Self.maximumTimes)")
      }
      script.add(outage, times: Int(times), on: try fields.text("path") ?? "/")
      return HTTPResponse(status: 204)
    } catch { return problem(400, field: error.field, error.reason) }
  }
}
