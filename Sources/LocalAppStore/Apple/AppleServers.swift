import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON

/// Apple's servers, played: `verifyReceipt` and the App Store Server API of production and of the sandbox, each on a port of
/// its own, over TLS where the settings name a certificate.
public final class AppleServers: Sendable {
  public struct Settings: Sendable {
    public var production: HTTPServer.Settings
    public var sandbox: HTTPServer.Settings
    /// The app's shared secret, if it has one.
    public var secret: String?

    public init(
      production: HTTPServer.Settings = HTTPServer.Settings(), sandbox: HTTPServer.Settings = HTTPServer.Settings(),
      secret: String? = nil
    ) {
      self.production = production
      self.sandbox = sandbox
      self.secret = secret
    }
  }

  public let books: AppleBooks
  public let credentials: APICredentials
  /// What goes wrong, by environment.
  public let outages: [Environment: OutageScript]
  private let production: HTTPServer
  private let sandbox: HTTPServer

  public init(_ books: AppleBooks, settings: Settings, clock: any Clock) throws(HTTPServerError) {
    self.books = books
    let credentials = books.authority.apiCredentials
    self.credentials = credentials
    let outages: [Environment: OutageScript] = [.production: OutageScript(), .sandbox: OutageScript()]
    self.outages = outages
    func serve(_ environment: Environment, _ http: HTTPServer.Settings) throws(HTTPServerError) -> HTTPServer {
      let receipts = ReceiptRoutes(books: books, environment: environment, secret: settings.secret, clock: clock)
      let api = ServerAPIRoutes(books: books, credentials: credentials, environment: environment, clock: clock)
      let script = outages[environment]
      return try HTTPServer(http) { request in
        let well = {
          switch request.path.first {
          case "verifyReceipt": receipts.answer(request)
          case "inApps": api.answer(request)
          default: HTTPResponse(status: 404, contentType: "text/plain", body: Array("Not Found\n".utf8))
          }
        }
        guard let outage = script?.next("/" + request.path.joined(separator: "/")) else { return well() }
        return script?.play(outage, well: well) ?? well()
      }
    }
    production = try serve(.production, settings.production)
    do { sandbox = try serve(.sandbox, settings.sandbox) } catch {
      production.stop(within: 0)
      throw error
    }
  }

  public func port(_ environment: Environment) -> UInt16 {
    environment == .sandbox ? sandbox.port : production.port
  }

  /// Ends whatever hangs, then stops. False where requests were still open in the end.
  @discardableResult
  public func stop(within seconds: Double) -> Bool {
    for script in outages.values { script.clear() }
    let first = production.stop(within: seconds)
    return sandbox.stop(within: seconds) && first
  }
}

extension LocalAuthority {
  /// The key of the local Server API's clients, made from the authority's own keys.
  public var apiCredentials: APICredentials { APICredentials(seed: authority.leafKey.der) }
}
