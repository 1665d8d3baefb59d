import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON
import Synchronization

/// The local App Store over HTTP: asks for signed things, and plays scenarios against a gateway.
///
/// - `GET /v1/root`: the trust anchor in DER. `GET /v1/xcode`: the certificate for Xcode and local testing.
/// - `POST /v1/sign/{kind}` (transaction, renewal-info, notification, app-transaction) with a payload: `{"signed": "…"}`.
/// - `POST /v1/scenario` with `{"gateway": URL, "seed": 1, "accounts": 100, "day": TIME, "token": …,
///   "patience": SECONDS}`: 202; one at a time.
///   Scenarios sign under a root made from their seed: `GET /v1/scenario/root?seed=1`.
/// - `GET /v1/scenario`: how far it is, and its report.
///
/// Where Apple's servers are played beside it (``AppleServers``):
/// - `POST /v1/books/{kind}` with a payload: keeps it as sold, and answers it signed. A notification goes into the history;
///   `?at=TIME` says when it was made (default now), `?result=SUCCESS` what came of sending it (default: not sent).
/// - `GET /v1/books/told?environment=…`: what clients sent, as JSON lines.
/// - `POST /v1/outages` with `{"environment": …, "outage": "503", "times": 3, "path": "/inApps"}`, `DELETE /v1/outages`.
///
/// Where the responder is played beside it (``ResponderServer``): `POST /v1/revoked` with `{"serial": "3"}` (3 is the leaf's
/// serial number, 2 the intermediate's), and outages with the path `/ocsp`.
public final class AppStoreServer: Sendable {
  private let server: HTTPServer
  private let desk: ScenarioDesk

  public var port: UInt16 { server.port }

  /// - Parameter clock: says what day it is, where a scenario names none: it plays the day before.
  public init(
    _ authority: LocalAuthority, settings: HTTPServer.Settings, clock: any Clock, apple: AppleServers? = nil,
    responder: ResponderServer? = nil
  ) throws(HTTPServerError) {
    let desk = ScenarioDesk(clock: clock)
    self.desk = desk
    server = try HTTPServer(settings) {
      AppStoreRoutes(authority: authority, desk: desk, apple: apple, responder: responder).answer($0)
    }
  }

  /// Ends a play after the slot in hand, then stops serving. False where requests were still open in the end.
  public func stop(within seconds: Double) -> Bool {
    desk.stop()
    return server.stop(within: seconds)
  }
}

/// The scenario being played, if any.
final class ScenarioDesk: Sendable {
  struct Play: Sendable {
    var seed: UInt64
    var accounts: Int
    var player: ScenarioPlayer
    var progress: ScenarioPlayer.Progress?
    var report: PlayReport?
  }

  let clock: any Clock
  let play = Mutex<Play?>(nil)

  init(clock: any Clock) { self.clock = clock }

  /// False while another one is being played.
  func begin(_ scenario: Scenario, _ settings: ScenarioPlayer.Settings) -> Bool {
    let player = ScenarioPlayer(scenario, settings, clock: nil)
    let isFree = play.withLock { play in
      if let play, play.report == nil { return false }
      play = Play(seed: scenario.seed, accounts: scenario.accounts, player: player)
      return true
    }
    guard isFree else { return false }
    let started = Crew.detach {
      let report = player.play { progress in self.play.withLock { $0?.progress = progress } }
      self.play.withLock { $0?.report = report }
    }
    if !started { play.withLock { $0 = nil } }
    return started
  }

  func stop() { play.withLock { $0?.player.stop() } }
}
