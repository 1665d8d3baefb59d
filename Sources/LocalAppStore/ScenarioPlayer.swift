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

  /// What keeps a play from going on, for who watches it.
  public struct Trouble: Sendable, Hashable {
    /// Requests that had no useful answer, so far.
    public var requests = 0
    /// What came of the last of them.
    public var reason = ""
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
  private let troubles = Mutex(Trouble())
  private let wasAnswered = Atomic(false)
  /// Of all clients together.
  private let times = Mutex((waiting: Duration.zero, posting: Duration.zero))

  /// - Parameter clock: the clock that gateway and stages were given; nil where they keep real time, with a day in the
  ///   past.
  public init(_ scenario: Scenario, _ settings: Settings, clock: ScenarioClock?) {
    self.scenario = scenario
    self.settings = settings
    self.clock = clock
    client = HTTPClient(
      HTTPClient.Settings(
        connectSeconds: Self.connectSeconds, totalSeconds: settings.patience + 30,
        maxIdleHandles: max(1, settings.connections)))
  }

  /// A gateway that is there takes a connection in milliseconds; a person who mistyped its address waits no longer than
  /// this to be told.
  private static let connectSeconds = 5.0

  /// Ends the play after the requests in hand; nothing is sent again.
  public func stop() { stopped.store(true, ordering: .relaxed) }

  /// Which part of the clients' time passed in waiting for permits and balances, and not in handing something in; nil
  /// before anything was done.
  public var waitingShare: Double? {
    times.withLock { times in
      let all = times.waiting + times.posting
      return all > .zero ? times.waiting / all : nil
    }
  }

  var isStopped: Bool { stopped.load(ordering: .relaxed) }

  /// What has been told so far; may be asked from any thread while a play is under way.
  public var soFar: PlayReport { report.withLock { $0 } }
  public var trouble: Trouble { troubles.withLock { $0 } }

  /// Plays the whole day and leaves the clock at its end. `progress` is called after each slot. Where no connection to the
  /// gateway comes about before it has answered anything, the play ends at once and its report says so.
  public func play(_ progress: (Progress) -> Void = { _ in }) -> PlayReport {
    var steps = 0
    let allSteps = scenario.steps
    for (number, slot) in scenario.slots.enumerated() {
      if isStopped { break }
      clock?.advance(to: slot.at)
      // Nobody goes on before everybody has done: the next slot may build on this one.
      Crew.work(slot.lanes.count, threads: settings.connections) { lane in
        for step in slot.lanes[lane] where !self.isStopped { self.take(step) }
      }
      if isStopped { break }
      steps += slot.lanes.reduce(0) { $0 + $1.count }
      progress(
        Progress(slot: number + 1, slots: scenario.slots.count, steps: steps, allSteps: allSteps, at: slot.at))
    }
    clock?.advance(to: scenario.end)
    return report.withLock { report in
      report.isComplete = !isStopped
      return report
    }
  }

  private func take(_ step: Step) {
    switch step.action {
    case .report(let event): post(event)
    case .notify(let notification):
      let body = notification.body(scenario.authority)
      guard timed(\.posting, { post("/v1/notifications", body, isOpen: true) }) else { return }
      report.withLock {
        $0.count(\.posted, EventType.storeNotified.rawValue)
        $0.count(\.notifications, notification.type)
      }
    case .finish(let event, let permit):
      let answer = timed(\.waiting) { wait(for: permit) }
      report.withLock { $0.count(\.permits, answer) }
      if answer.hasPrefix("finishable") { post(event) }
    case .seeBalance(let environment, let account, let unit, let amount):
      if !timed(\.waiting, { sees(environment, account, unit, amount) }) { report.withLock { $0.unseenBalances += 1 } }
    }
  }

  private func timed<Value>(
    _ kind: WritableKeyPath<(waiting: Duration, posting: Duration), Duration>, _ body: () -> Value
  ) -> Value {
    let start = ContinuousClock.now
    let value = body()
    let spent = ContinuousClock.now - start
    times.withLock { $0[keyPath: kind] += spent }
    return value
  }

  private func post(_ event: Step.Report) {
    let body = event.body(scenario.authority)
    guard timed(\.posting, { post("/v1/events", body, isOpen: false) }) else { return }
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
      // What was not taken when somebody asked for the end is neither taken nor refused.
      if isStopped { return false }
      do throws(HTTPClientError) {
        let answer = try send(HTTPCall("POST", settings.gateway + path, headers: headers, body: body))
        if (200...299).contains(answer.status) { return true }
        reason = "\(path) answered \(answer.status)"
        guard answer.status >= 500 || answer.status == 429 else { break }
      } catch {
        if isOutOfReach(error) { return false }
        reason = "\(path): \(error)"
      }
      note(reason)
    }
    report.withLock { $0.fail(reason) }
    return false
  }

  func send(_ call: HTTPCall) throws(HTTPClientError) -> HTTPAnswer {
    let answer = try client.send(call)
    wasAnswered.store(true, ordering: .relaxed)
    return answer
  }

  func note(_ reason: String) {
    troubles.withLock { trouble in
      trouble.requests += 1
      trouble.reason = reason
    }
  }

  /// A gateway that has answered once is being restarted; one that never has is not there, or not where it is looked for.
  private func isOutOfReach(_ error: HTTPClientError) -> Bool {
    guard !wasAnswered.load(ordering: .relaxed) else { return false }
    switch error {
    case .cannotResolve, .refused, .timeout, .tls, .notHTTP, .malformedCall: break
    case .reset, .tooLarge, .other: return false
    }
    report.withLock { $0.unreachable = $0.unreachable ?? error.description }
    stop()
    return true
  }
}
