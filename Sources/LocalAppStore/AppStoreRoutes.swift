import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import PurchasesJSON

/// From request to answer.
struct AppStoreRoutes {
  let authority: LocalAuthority
  let desk: ScenarioDesk
  /// Apple's servers, where they are played.
  let apple: AppleServers?
  let responder: ResponderServer?

  /// A scenario of more is played by the command, not over HTTP.
  private static let maximumAccounts = 100_000
  /// A client that waits longer than an hour has been closed long since.
  private static let maximumPatience: Int64 = 3600
  private static let der = "application/pkix-cert"

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    switch (request.method, request.path) {
    case ("GET", ["livez"]): HTTPResponse(status: 200, contentType: "text/plain", body: Array("ok\n".utf8))
    case ("GET", ["v1", "root"]): HTTPResponse(status: 200, contentType: Self.der, body: authority.root.der)
    case ("GET", ["v1", "xcode"]):
      HTTPResponse(status: 200, contentType: Self.der, body: authority.localCertificate.der)
    case ("GET", ["v1", "receipt-root"]):
      HTTPResponse(status: 200, contentType: Self.der, body: authority.receipts.root.der)
    case ("GET", ["v1", "scenario", "root"]): scenarioRoot(request)
    case ("GET", ["v1", "scenario"]): progress()
    case ("POST", ["v1", "scenario"]): play(request)
    case ("POST", let path) where path.count == 3 && path[0] == "v1" && path[1] == "sign": sign(request, path[2])
    case (_, let path) where path.count >= 2 && path[0] == "v1" && ["books", "outages", "revoked"].contains(path[1]):
      appleRoutes(request)
    default: problem(404, "there is nothing at this path")
    }
  }

  func json(_ status: Int, _ body: (inout JSONWriter) -> Void) -> HTTPResponse {
    var writer = JSONWriter()
    writer.object(body)
    return HTTPResponse(status: status, contentType: "application/json", body: writer.bytes)
  }

  func problem(_ status: Int, field: String? = nil, _ reason: String) -> HTTPResponse {
    json(status) { json in
      json.field("field", field)
      json.field("reason", reason)
    }
  }

  /// A receipt out of its description; `form` (der, ber) and `fault` say how it is written.
  private func signReceipt(_ request: HTTPRequest) -> HTTPResponse {
    do throws(FieldFailure) {
      let receipt = try AppReceipt(Fields(fromOutside: request.body))
      var form = SignedData.Form()
      switch request.queryValue("form") ?? "der" {
      case "der": break
      case "ber": form.isIndefinite = true
      default: throw FieldFailure("form", "must be der or ber")
      }
      var fault: ReceiptFault?
      if let name = request.queryValue("fault") {
        guard let known = ReceiptFault(rawValue: name) else {
          throw FieldFailure(
            "fault", "must be one of " + ReceiptFault.allCases.map(\.rawValue).joined(separator: ", "))
        }
        fault = known
      }
      let signed = authority.receipts.sign(receipt, form: form, fault: fault)
      return json(200) { $0.field("signed", signed) }
    } catch { return problem(400, field: error.field, error.reason) }
  }

  private func sign(_ request: HTTPRequest, _ name: String) -> HTTPResponse {
    if name == ProofKind.appReceipt.rawValue { return signReceipt(request) }
    guard let kind = ProofKind(rawValue: name), ProofKind.jws.contains(kind) else {
      return problem(404, "kinds are " + ProofKind.allCases.map(\.rawValue).joined(separator: ", "))
    }
    do throws(SigningFailure) {
      let signed = try authority.sign(kind, payload: request.body)
      return json(200) { $0.field("signed", signed) }
    } catch { return problem(400, field: "payload", error.description) }
  }

  private func scenarioRoot(_ request: HTTPRequest) -> HTTPResponse {
    guard let seed = request.queryValue("seed").flatMap({ UInt64($0) }) else {
      return problem(400, field: "seed", "must be a whole number")
    }
    return HTTPResponse(status: 200, contentType: Self.der, body: LocalAuthority(seed: seed).root.der)
  }

  private func play(_ request: HTTPRequest) -> HTTPResponse {
    do throws(FieldFailure) {
      let fields = try Fields(fromOutside: request.body)
      let gateway = try fields.requiredText("gateway")
      guard gateway.hasPrefix("http://") || gateway.hasPrefix("https://") else {
        throw fields.failure("gateway", "must be a URL")
      }
      let seed = try fields.integer("seed") ?? 1
      guard seed >= 0 else { throw fields.failure("seed", "must not be negative") }
      let accounts = try fields.integer("accounts") ?? 100
      guard (1...Int64(Self.maximumAccounts)).contains(accounts) else {
        throw fields.failure("accounts", "must be 1 to \(Self.maximumAccounts)")
      }
      let day = try fields.instant("day") ?? Scenario.dayBefore(desk.clock.now())
      let scenario = Scenario(seed: UInt64(seed), accounts: Int(accounts), day: day)
      var settings = ScenarioPlayer.Settings(gateway: gateway, token: try fields.text("token"))
      if let seconds = try fields.integer("patience") {
        guard (0...Self.maximumPatience).contains(seconds) else {
          throw fields.failure("patience", "must be 0 to \(Self.maximumPatience) seconds")
        }
        settings.patience = Double(seconds)
      }
      guard desk.begin(scenario, settings) else { return problem(409, "another scenario is being played") }
      return progress(status: 202)
    } catch { return problem(400, field: error.field, error.reason) }
  }

  private func progress(status: Int = 200) -> HTTPResponse {
    guard let play = desk.play.withLock({ $0 }) else { return problem(404, "no scenario has been played") }
    return json(status) { json in
      json.field("seed", Int64(clamping: play.seed))
      json.field("accounts", play.accounts)
      json.field("slots", play.progress?.slots)
      json.field("slot", play.progress?.slot ?? 0)
      json.field("steps", play.progress?.steps ?? 0)
      json.field("isOver", play.report != nil)
      if let report = play.report { json.field("report", object: { report.write(&$0) }) }
    }
  }
}
