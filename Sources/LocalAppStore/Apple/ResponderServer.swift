import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import Synchronization

/// The responder that tells whether a certificate of the local authority has been revoked (OCSP over HTTP, as Apple's). The
/// certificates name its address, so it is started before they are made.
public final class ResponderServer: Sendable {
  /// How long an answer holds, in milliseconds: Apple's hold for hours to days.
  public static let validity: Int64 = 12 * 3_600_000

  /// What goes wrong.
  public let outages = OutageScript()
  private let state: Served
  private let server: HTTPServer

  /// What the handler, which is made first, and the owner share.
  private final class Served: Sendable {
    let authority = Mutex<LocalAuthority?>(nil)
    /// By serial number.
    let statuses = Mutex<[String: RevocationAnswer.Status]>([:])
    let asked = Mutex(0)
  }

  public init(_ settings: HTTPServer.Settings = HTTPServer.Settings(), clock: any Clock) throws(HTTPServerError) {
    let (outages, state) = (outages, Served())
    self.state = state
    server = try HTTPServer(settings) { request in
      state.asked.withLock { $0 += 1 }
      let well = { Self.answer(request, state, clock.now()) }
      guard let outage = outages.next("/" + request.path.joined(separator: "/")) else { return well() }
      return outages.play(outage, well: well)
    }
  }

  public var port: UInt16 { server.port }

  /// What a certificate is to name.
  public var url: String { "http://127.0.0.1:\(port)/ocsp" }

  /// Questions so far, those that were not answered included.
  public var asked: Int { state.asked.withLock { $0 } }

  /// Whose certificates it answers for. Before, it answers "try later".
  public func serve(_ authority: LocalAuthority) { state.authority.withLock { $0 = authority } }

  /// Says so from now on of the certificate with this serial number; all others are good.
  public func set(_ status: RevocationAnswer.Status, ofSerial serial: String) {
    state.statuses.withLock { $0[serial] = status }
  }

  @discardableResult
  public func stop(within seconds: Double) -> Bool {
    outages.clear()
    return server.stop(within: seconds)
  }

  private static func answer(_ request: HTTPRequest, _ state: Served, _ now: Instant) -> HTTPResponse {
    guard request.method == "POST", request.path.first == "ocsp" else {
      return HTTPResponse(status: 404, contentType: "text/plain", body: Array("Not Found\n".utf8))
    }
    guard let serial = OCSPResponder.serials(in: request.body)?.first else {
      return HTTPResponse(status: 400, contentType: "text/plain", body: Array("not an OCSP request\n".utf8))
    }
    var body = OCSPResponder.tryLater
    if let signing = state.authority.withLock({ $0?.authority }),
      let pair = [
        (signing.leaf, signing.intermediate, signing.intermediateKey),
        (signing.intermediate, signing.root, signing.rootKey),
      ].first(where: { $0.0.serialHex == serial })
    {
      body = OCSPResponder(issuer: pair.1, key: pair.2).answer(
        about: pair.0, state.statuses.withLock { $0[serial] ?? .good }, thisUpdate: now.milliseconds,
        nextUpdate: now.milliseconds + validity)
    }
    return HTTPResponse(status: 200, contentType: "application/ocsp-response", body: body)
  }
}
