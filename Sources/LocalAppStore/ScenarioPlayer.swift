import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesJSON
import Synchronization

/// Plays a scenario against a gateway over HTTP: the clients' reports, the App Store's notifications, the permits that
/// clients wait for. Blocks the calling thread; uses threads of its own.
public final class ScenarioPlayer: Sendable {
  public struct Settings: Sendable {
    /// Such as `http://127.0.0.1:8080`.
    public var gateway: String
    /// Sent as a bearer token with what needs one.
    public var token: String?
    public var connections: Int
    /// How long a client waits for a permit or a balance, in seconds.
    public var patience: Double
    /// How often a request that the gateway did not take is sent again.
    public var retries: Int

    /// As many as keep a gateway busy that waits for the disk.
    public static let defaultConnections = 32
    /// A pipeline that needs longer than this for one purchase stands still.
    public static let defaultPatience = 30.0
    /// With pauses of up to a second: a restart of the pipeline in mid-play is survived.
    public static let defaultRetries = 60

    public init(
      gateway: String, token: String? = nil, connections: Int = Self.defaultConnections,
      patience: Double = Self.defaultPatience, retries: Int = Self.defaultRetries
    ) {
      self.gateway = gateway.hasSuffix("/") ? String(gateway.dropLast()) : gateway
      self.token = token
      self.connections = connections
      self.patience = patience
      self.retries = retries
    }
  }

  /// How far a play is.
  public struct Progress: Sendable {
    public let slot: Int
    public let slots: Int
    public let steps: Int
    public let allSteps: Int
    public let at: Instant
  }

  let scenario: Scenario
  let settings: Settings
  let client: HTTPClient
  private let clock: ScenarioClock?
  private let stopped = Atomic(false)
  let report = Mutex(PlayReport())

  /// - Parameter clock: the clock that gateway and stages were given; nil where they keep real time, with a day in the
  ///   past.
  public init(_ scenario: Scenario, _ settings: Settings, clock: ScenarioClock?) {
    self.scenario = scenario
    self.settings = settings
    self.clock = clock
    client = HTTPClient(
      HTTPClient.Settings(totalSeconds: settings.patience + 30, maxIdleHandles: max(1, settings.connections)))
  }

  /// Ends the play after the slot in hand.
  public func stop() { stopped.store(true, ordering: .relaxed) }

  /// Plays the whole day and leaves the clock at its end. `progress` is called after each slot.
  public func play(_ progress: (Progress) -> Void = { _ in }) -> PlayReport {
    var steps = 0
    let allSteps = scenario.steps
    for (number, slot) in scenario.slots.enumerated() {
      if stopped.load(ordering: .relaxed) { break }
      clock?.advance(to: slot.at)
      // Nobody goes on before everybody has done: the next slot may build on this one.
      Crew.work(slot.lanes.count, threads: settings.connections) { lane in
        for step in slot.lanes[lane] { self.take(step) }
      }
      steps += slot.lanes.reduce(0) { $0 + $1.count }
      progress(
        Progress(slot: number + 1, slots: scenario.slots.count, steps: steps, allSteps: allSteps, at: slot.at))
    }
    clock?.advance(to: scenario.end)
    return report.withLock { $0 }
  }

  private func take(_ step: Step) {
    switch step.action {
    case .report(let event): post(event)
    case .notify(let notification):
      let body = notification.body(scenario.authority)
      guard post("/v1/notifications", body, isOpen: true) else { return }
      report.withLock {
        $0.count(\.posted, EventType.storeNotified.rawValue)
        $0.count(\.notifications, notification.type)
      }
    case .finish(let event, let permit):
      let answer = wait(for: permit)
      report.withLock { $0.count(\.permits, answer) }
      if answer.hasPrefix("finishable") { post(event) }
    case .seeBalance(let environment, let account, let unit, let amount):
      if !sees(environment, account, unit, amount) { report.withLock { $0.unseenBalances += 1 } }
    }
  }

  private func post(_ event: Step.Report) {
    guard post("/v1/events", event.body(scenario.authority), isOpen: false) else { return }
    report.withLock { $0.count(\.posted, event.type.rawValue) }
  }

  /// Sends until it is taken. A client error is final.
  private func post(_ path: String, _ body: [UInt8], isOpen: Bool) -> Bool {
    var headers: [HTTPCall.Header] = [("content-type", "application/json")]
    if let token = settings.token, !isOpen { headers.append(("authorization", "Bearer " + token)) }
    var reason = ""
    for attempt in 0...settings.retries {
      if attempt > 0 {
        report.withLock { $0.retries += 1 }
        usleep(UInt32(min(1000, 20 << min(attempt, 8)) * 1000))
      }
      do {
        let answer = try client.send(HTTPCall("POST", settings.gateway + path, headers: headers, body: body))
        if (200...299).contains(answer.status) { return true }
        reason = "\(path) answered \(answer.status)"
        guard answer.status >= 500 || answer.status == 429 else { break }
      } catch { reason = "\(path): \(error)" }
    }
    report.withLock { $0.fail(reason) }
    return false
  }
}
