import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesHTTPServer
import PurchasesJSON
import Synchronization
import Testing

@testable import PurchasesLocalAppStore

/// A gateway as far as clients see it: takes events, and answers permits by what it took.
private final class FakeGateway: Sendable {
  struct State {
    var received: [(at: Instant, record: ReceivedRecord)] = []
    var permitsAsked: Set<String> = []
    var refusals = 0
  }

  let state = Mutex(State())
  let clock: ScenarioClock
  /// Every so many-th post is not taken at first.
  let refusing: Int

  init(_ clock: ScenarioClock, refusing: Int = 0) {
    self.clock = clock
    self.refusing = refusing
  }

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    switch (request.method, request.path[1]) {
    case ("POST", "events"):
      guard request.headers["authorization"] == "Bearer secret" else { return HTTPResponse(status: 401) }
      return take(try? ReceivedRecord(line: request.body, allowing: EventType.reported), 202)
    case ("POST", "notifications"): return take(try? ReceivedRecord(type: .storeNotified, data: request.body), 200)
    case ("GET", "permits"): return permit(request.path[4])
    case ("GET", "accounts"): return HTTPResponse(status: 200, body: Array(#"{"balances":[]}"#.utf8))
    default: return HTTPResponse(status: 404)
    }
  }

  private func take(_ record: ReceivedRecord?, _ status: Int) -> HTTPResponse {
    guard let record else { return HTTPResponse(status: 400) }
    return state.withLock { state in
      if refusing > 0, (state.received.count + state.refusals) % refusing == 0 {
        state.refusals += 1
        return HTTPResponse(status: 503)
      }
      state.received.append((clock.now(), record))
      return HTTPResponse(status: status)
    }
  }

  private func permit(_ key: String) -> HTTPResponse {
    state.withLock { state in
      state.permitsAsked.insert(key)
      let isKnown = state.received.contains { $0.record.permit == key }
      let body = isKnown ? #"{"status":"finishable","content":"granted"}"# : #"{"status":"refused","content":"none"}"#
      return HTTPResponse(status: 200, body: Array(body.utf8))
    }
  }
}

struct PlayerTests {
  static let day = Instant(milliseconds: 1_764_460_800_000)

  private func play(refusing: Int) throws -> (FakeGateway, PlayReport, Scenario, ScenarioClock) {
    let clock = ScenarioClock(Self.day)
    let gateway = FakeGateway(clock, refusing: refusing)
    let server = try HTTPServer(HTTPServer.Settings(address: "127.0.0.1", port: 0)) { gateway.answer($0) }
    defer { _ = server.stop(within: 5) }
    let scenario = Scenario(seed: 5, accounts: 60, day: Self.day)
    let player = ScenarioPlayer(
      scenario,
      ScenarioPlayer.Settings(
        gateway: "http://127.0.0.1:\(server.port)/", token: "secret", connections: 8, patience: 0.05), clock: clock)
    let slots = Mutex(0)
    let report = player.play { progress in slots.withLock { $0 = progress.slot } }
    #expect(slots.withLock { $0 } == scenario.slots.count)
    return (gateway, report, scenario, clock)
  }

  @Test(arguments: [0, 7]) func everythingIsToldOnceInItsTime(_ refusing: Int) throws {
    let (gateway, report, scenario, clock) = try play(refusing: refusing)
    #expect(report.failures.isEmpty && report.failed == 0)
    #expect((report.retries > 0) == (refusing > 0))
    #expect(clock.now() == scenario.end)
    let received = gateway.state.withLock { $0.received }
    #expect(received.count == report.total)
    var expected: [String: Int] = [:]
    var asked = 0
    var sees = 0
    for slot in scenario.slots {
      for step in slot.lanes.joined() {
        switch step.action {
        case .report(let event), .finish(let event, _): expected[event.type.rawValue, default: 0] += 1
        case .notify: expected["store.notified", default: 0] += 1
        case .seeBalance: sees += 1
        }
        if case .finish = step.action { asked += 1 }
      }
    }
    #expect(report.posted == expected)
    // This gateway shows no balances.
    #expect(report.unseenBalances == sees)
    #expect(report.permits.values.reduce(0, +) == asked && report.permits["finishable granted"] == asked)
    // A day in order: no record is of an earlier time than the one before it.
    for (earlier, later) in zip(received, received.dropFirst()) { #expect(earlier.at <= later.at) }
  }

  @Test func aGatewayThatRefusesIsReported() throws {
    let server = try HTTPServer(HTTPServer.Settings(address: "127.0.0.1", port: 0)) { _ in HTTPResponse(status: 401) }
    defer { _ = server.stop(within: 5) }
    let scenario = Scenario(seed: 5, accounts: 3, day: Self.day)
    let player = ScenarioPlayer(
      scenario, ScenarioPlayer.Settings(gateway: "http://127.0.0.1:\(server.port)", patience: 0), clock: nil)
    let report = player.play()
    #expect(report.total == 0 && report.failed > 0)
    #expect(report.failures.first?.contains("401") == true)
    #expect(report.failures.count <= PlayReport.maximumFailures)
  }

  @Test func theServerSignsAndPlays() throws {
    let clock = ScenarioClock(Self.day.advanced(byMilliseconds: Scenario.dayMilliseconds))
    let gateway = FakeGateway(clock)
    let door = try HTTPServer(HTTPServer.Settings(address: "127.0.0.1", port: 0)) { gateway.answer($0) }
    defer { _ = door.stop(within: 5) }
    let authority = LocalAuthority(seed: 3)
    let store = try AppStoreServer(
      authority, settings: HTTPServer.Settings(address: "127.0.0.1", port: 0), clock: clock)
    defer { _ = store.stop(within: 5) }
    let client = HTTPClient()
    func call(_ method: String, _ path: String, _ body: String? = nil) throws -> (Int, [UInt8]) {
      let answer = try client.send(
        HTTPCall(method, "http://127.0.0.1:\(store.port)\(path)", body: body.map { Array($0.utf8) }))
      return (answer.status, answer.body)
    }
    #expect(try call("GET", "/v1/root").1 == authority.root.der)
    #expect(try call("GET", "/v1/scenario/root?seed=5").1 == LocalAuthority(seed: 5 as UInt64).root.der)
    let payload = #"{"transactionId":"1"}"#
    let signed = try JSON(parsing: call("POST", "/v1/sign/transaction", payload).1)
    #expect(signed["signed"] == .string(authority.sign(Array(payload.utf8))))
    #expect(try call("POST", "/v1/sign/receipt", payload).0 == 404)
    #expect(try call("POST", "/v1/sign/transaction", "[").0 == 400)
    #expect(try call("GET", "/v1/scenario").0 == 404)
    #expect(try call("POST", "/v1/scenario", #"{"gateway":"x"}"#).0 == 400)
    let order = #"{"gateway":"http://127.0.0.1:\#(door.port)","seed":5,"accounts":5,"token":"secret","patience":0}"#
    #expect(try call("POST", "/v1/scenario", order).0 == 202)
    var report: JSON = .null
    let end = ContinuousClock.now + .seconds(120)
    while report["isOver"] != .bool(true) {
      #expect(ContinuousClock.now < end)
      if ContinuousClock.now >= end { return }
      report = try JSON(parsing: call("GET", "/v1/scenario").1)
    }
    #expect(report["report"]?["failed"] == .integer(0))
    #expect(gateway.state.withLock { $0.received.count } > 5)
  }
}
