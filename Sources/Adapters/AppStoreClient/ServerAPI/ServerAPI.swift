import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesJSON

/// A client of the App Store Server API for one app on one side. Blocks the calling thread, which must be one of the
/// caller's own; safe to share.
///
/// What Apple signed comes back as the signed string, untouched: to verify it is another room's job, and until it is
/// verified it proves nothing.
public final class ServerAPI: Sendable {
  public struct Settings: Sendable {
    public var side: AppleSide
    public var host: AppleHost
    /// Tries of a call that may be repeated; 1 tries once.
    public var attempts: Int
    /// The longest that a call waits for its turn or between tries, in milliseconds; where Apple asks for more, it fails
    /// and says till when.
    public var longestWait: Int64
    public var connectSeconds: Double
    public var totalSeconds: Double
    public var caFile: String?
    public var breaker: CircuitBreaker.Settings

    /// The pauses between are a quarter and a half of a second: what outlasts those is an outage, for the breaker.
    public static let defaultAttempts = 3
    /// Who waits longer than this should do something else meanwhile.
    public static let defaultLongestWait: Int64 = 60_000
    public static let defaultConnectSeconds = 10.0
    public static let defaultTotalSeconds = 30.0

    public init(
      side: AppleSide, host: AppleHost? = nil, attempts: Int = Self.defaultAttempts,
      longestWait: Int64 = Self.defaultLongestWait, connectSeconds: Double = Self.defaultConnectSeconds,
      totalSeconds: Double = Self.defaultTotalSeconds, caFile: String? = nil,
      breaker: CircuitBreaker.Settings = CircuitBreaker.Settings()
    ) {
      precondition(attempts > 0 && longestWait >= 0, "a call is tried once at least")
      self.side = side
      self.host = host ?? (side == .production ? .serverAPI : .sandboxServerAPI)
      self.attempts = attempts
      self.longestWait = longestWait
      self.connectSeconds = connectSeconds
      self.totalSeconds = totalSeconds
      self.caFile = caFile
      self.breaker = breaker
    }
  }

  public let settings: Settings
  private let caller: AppleCaller
  private let tokens: BearerTokens
  private let governor: RateGovernor
  private let clock: any Clock
  private let pause: Pause
  private let alarms: StoreAlarms

  /// - Parameters:
  ///   - governor: shared by all clients of the key; by default the process has one for each key and side.
  ///   - pause: how to wait; by default the calling thread sleeps.
  public init(
    _ settings: Settings, key: APIKey, clock: any Clock, governor: RateGovernor? = nil,
    pause: @escaping Pause = Pauses.sleeping, alarms: @escaping StoreAlarms = { _ in }
  ) {
    self.settings = settings
    self.clock = clock
    self.pause = pause
    self.alarms = alarms
    tokens = BearerTokens(key)
    self.governor = governor ?? RateGovernor.shared(keyID: key.keyID, side: settings.side)
    let http = HTTPClient(
      HTTPClient.Settings(
        connectSeconds: settings.connectSeconds, totalSeconds: settings.totalSeconds, caFile: settings.caFile))
    caller = AppleCaller(
      host: settings.host, http: http, breaker: CircuitBreaker(settings.breaker), clock: clock, alarms: alarms)
  }

  /// One call of the API, as data.
  struct Request {
    let method: String
    /// Segments under `/inApps`.
    let path: [String]
    var query: [(name: String, value: String)] = []
    var body: [UInt8]?
    let family: RateFamily
    /// Whether to send it twice does no more than to send it once.
    var isRepeatable = true

    init(_ method: String, _ path: [String], _ family: RateFamily) {
      self.method = method
      self.path = path
      self.family = family
    }
  }

  /// Sends, waits for turns and tries again as the settings allow. Answers the body of a success.
  func send(_ request: Request) throws(ServerAPIFailure) -> [UInt8] {
    guard !request.path.contains(where: { $0 == "." || $0 == ".." }) else {
      // Escaped or not, these are taken out of a path on the way.
      throw .notSendable("an identifier can't be . or ..")
    }
    var attempt = 1
    while true {
      try waitForTurn(request.family)
      do throws(ServerAPIFailure) { return try sendOnce(request) } catch {
        guard error.isRetryable, request.isRepeatable, attempt < settings.attempts else { throw error }
        let now = clock.now()
        let next = max(
          now.advanced(byMilliseconds: Pauses.growing(after: attempt)), error.notBefore ?? .distantPast)
        guard next <= now.advanced(byMilliseconds: settings.longestWait) else { throw error }
        pause(next.milliseconds - now.milliseconds)
        attempt += 1
      }
    }
  }

  private func waitForTurn(_ family: RateFamily) throws(ServerAPIFailure) {
    let now = clock.now()
    switch governor.reserve(family, now, within: settings.longestWait) {
    case .success(let goes): pause(goes.milliseconds - now.milliseconds)
    case .failure(let closed): throw .rateLimited(until: closed.until)
    }
  }

  private func sendOnce(_ request: Request) throws(ServerAPIFailure) -> [UInt8] {
    let token = tokens.token(clock.now())
    var headers: [HTTPCall.Header] = [("authorization", "Bearer " + token.text), ("accept", "application/json")]
    if request.body != nil { headers.append(("content-type", "application/json")) }
    // A POST without a body says so: some front ends refuse one that says nothing of its length.
    let body = request.body ?? (request.method == "POST" ? [] : nil)
    var call = HTTPCall(request.method, settings.host.url + request.target, headers: headers, body: body)
    call.isSentOnce = !request.isRepeatable
    let result: Result<[UInt8], ServerAPIFailure>
    do throws(AppleCaller.Failure) {
      result = try caller.send(call, place: request.family.rawValue) { judge($0, request.family) }
    } catch {
      switch error {
      case .paused(let until): throw .paused(until: until)
      case .unreachable(let reason): throw .unreachable(reason)
      case .redirected(let status): throw .redirected(status: status)
      }
    }
    return try result.get()
  }

  private func judge(
    _ answer: HTTPAnswer, _ family: RateFamily
  ) -> (isWell: Bool, Result<[UInt8], ServerAPIFailure>) {
    if (200...299).contains(answer.status) {
      guard answer.body.isEmpty || (try? JSONDocument(parsing: answer.body)) != nil else {
        alarm(.unusableBody, family, "status \(answer.status) with \(answer.looks)")
        return (false, .failure(.unusableBody("status \(answer.status) with \(answer.looks)")))
      }
      return (true, .success(answer.body))
    }
    let code = (try? JSONDocument(parsing: answer.body))?.root["errorCode"]?.int64.map(ServerAPICode.init(rawValue:))
    let now = clock.now()
    let until = RetryAfter.instant(answer.header("retry-after"), now: now)
    switch answer.status {
    case 401:
      tokens.forget()
      alarm(.credentials, family, "HTTP 401")
      return (true, .failure(.unauthorized))
    case 429:
      let next = until ?? now.advanced(byMilliseconds: Self.unsaidPause)
      governor.close(family, until: next)
      alarm(.rateLimited, family, "HTTP 429; the next call goes at \(next)")
      return (true, .failure(.rateLimited(until: next)))
    case 500...:
      if let until { governor.close(family, until: until) }
      return (false, .failure(.unavailable(status: answer.status, code, until: until)))
    default:
      if code == nil { alarm(.ourFault, family, "HTTP \(answer.status) without an error code") }
      return (true, .failure(.refused(status: answer.status, code)))
    }
  }

  /// After a 429 that doesn't say how long. Apple counts by the hour; a minute is short enough to find out.
  static let unsaidPause: Int64 = 60_000

  func alarm(_ kind: StoreAlarm.Kind, _ family: RateFamily, _ detail: String) {
    alarms(StoreAlarm(kind, caller.at(family.rawValue), detail))
  }

  /// A success's JSON, read by `read`; nil from there is an answer that holds nothing of what it must.
  func answer<Value>(
    _ request: Request, _ read: (JSONView) -> Value?
  ) throws(ServerAPIFailure) -> Value {
    let body = try send(request)
    if let document = try? JSONDocument(parsing: body), let value = read(document.root) { return value }
    let reason = body.isEmpty ? "an empty body" : "a member that must be there is missing (\(body.count) bytes)"
    alarm(.unusableBody, request.family, "status 200 with \(reason)")
    throw .unusableBody(reason)
  }
}

extension ServerAPI.Request {
  /// Path and query, each part escaped: an identifier can't become another path.
  var target: String {
    let path = (["inApps"] + path).map { "/" + Self.escape($0) }.joined()
    guard !query.isEmpty else { return path }
    return path + "?" + query.map { "\(Self.escape($0.name))=\(Self.escape($0.value))" }.joined(separator: "&")
  }

  static func escape(_ text: String) -> String {
    let hex = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
        UInt8(ascii: "."):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
