import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesJSON

/// Asks Apple's `verifyReceipt`. Blocks the calling thread, which must be one of the caller's own; safe to share.
public final class ReceiptClient: Sendable {
  public struct Settings: Sendable {
    public var hosts: BothSides<AppleHost>
    /// The side that is asked first: production, but for a deployment that serves the sandbox alone.
    public var first: AppleSide
    /// The app's shared secret; without one Apple refuses receipts with subscriptions in them (21004).
    public var secret: Secret?
    /// Seconds to connect, and for a whole call.
    public var connectSeconds: Double
    public var totalSeconds: Double
    /// A PEM file of the certificates to trust in place of the system's; for tests and local stores.
    public var caFile: String?
    public var breaker: CircuitBreaker.Settings

    public static let defaultConnectSeconds = 5.0
    /// Apple answers in well under two seconds; large receipts of the sandbox have been seen to take ten.
    public static let defaultTotalSeconds = 20.0
    /// A receipt of thousands of purchases comes back as a few megabytes of JSON.
    static let maximumAnswer = 32 << 20
    /// How often a receipt is asked about that Apple calls malformed: it says the same in a moment of weakness.
    static let malformedAttempts = 3

    public init(
      hosts: BothSides<AppleHost> = BothSides(production: .verifyReceipt, sandbox: .sandboxVerifyReceipt),
      first: AppleSide = .production, secret: Secret? = nil, connectSeconds: Double = Self.defaultConnectSeconds,
      totalSeconds: Double = Self.defaultTotalSeconds, caFile: String? = nil,
      breaker: CircuitBreaker.Settings = CircuitBreaker.Settings()
    ) {
      self.hosts = hosts
      self.first = first
      self.secret = secret
      self.connectSeconds = connectSeconds
      self.totalSeconds = totalSeconds
      self.caFile = caFile
      self.breaker = breaker
    }
  }

  static let place = "verifyReceipt"

  private let settings: Settings
  private let callers: BothSides<AppleCaller>
  private let pause: Pause
  private let alarms: StoreAlarms

  /// - Parameter pause: how to wait between two tries; by default the calling thread sleeps.
  public init(
    _ settings: Settings = Settings(), clock: any Clock, pause: @escaping Pause = Pauses.sleeping,
    alarms: @escaping StoreAlarms = { _ in }
  ) {
    self.settings = settings
    self.pause = pause
    self.alarms = alarms
    let http = HTTPClient(
      HTTPClient.Settings(
        connectSeconds: settings.connectSeconds, totalSeconds: settings.totalSeconds,
        maxAnswer: Settings.maximumAnswer, caFile: settings.caFile))
    // Each side has a breaker of its own: the sandbox is down more often than production.
    func caller(_ side: AppleSide) -> AppleCaller {
      AppleCaller(
        host: settings.hosts[side], http: http, breaker: CircuitBreaker(settings.breaker), clock: clock, alarms: alarms)
    }
    callers = BothSides(production: caller(.production), sandbox: caller(.sandbox))
  }

  /// Asks the first side, and the other one once if Apple says that the receipt is from there.
  ///
  /// - Parameters:
  ///   - receiptData: the receipt as the client sent it, base64.
  ///   - excludeOldTransactions: for subscriptions only the newest transaction of each.
  public func verify(receiptData: String, excludeOldTransactions: Bool = false) -> ReceiptOutcome {
    let body = request(receiptData, excludeOldTransactions)
    let first = ask(settings.first, body)
    guard case .elsewhere(let side, _) = first else { return outcome(first, settings.first) }
    return outcome(ask(side, body), side)
  }

  private func request(_ receiptData: String, _ excludeOldTransactions: Bool) -> [UInt8] {
    var writer = JSONWriter(reserving: receiptData.utf8.count + 256)
    writer.object { json in
      json.field("receipt-data", receiptData)
      json.field("password", settings.secret?.text)
      if excludeOldTransactions { json.field("exclude-old-transactions", true) }
    }
    return writer.bytes
  }

  private enum Reply {
    case answered(VerifyReceiptAnswer)
    case elsewhere(AppleSide, [UInt8])
    case trouble(ReceiptTrouble)
  }

  private func ask(_ side: AppleSide, _ body: [UInt8]) -> Reply {
    for attempt in 1..<Settings.malformedAttempts {
      let reply = askOnce(side, body)
      guard case .answered(let answer) = reply, answer.status == .malformedOrBusy else { return reply }
      pause(Pauses.growing(after: attempt))
    }
    return askOnce(side, body)
  }

  private func askOnce(_ side: AppleSide, _ body: [UInt8]) -> Reply {
    let caller = callers[side]
    let call = HTTPCall(
      "POST", caller.host.url + "/verifyReceipt", headers: [("content-type", "application/json")], body: body)
    do throws(AppleCaller.Failure) {
      return try caller.send(call, place: Self.place) { judge($0, side) }
    } catch {
      switch error {
      case .paused(let until):
        return .trouble(
          ReceiptTrouble(
            reason: .paused, side: side, status: nil, notBefore: until,
            detail: "too many failures; none asks till \(until)"))
      case .unreachable(let detail):
        return .trouble(
          ReceiptTrouble(reason: .unreachable, side: side, status: nil, notBefore: pausedUntil(side), detail: detail))
      case .redirected(let status):
        return .trouble(
          ReceiptTrouble(
            reason: .redirected, side: side, status: Int64(status), notBefore: pausedUntil(side),
            detail: "HTTP status \(status); a redirect is never followed"))
      }
    }
  }

  private func pausedUntil(_ side: AppleSide) -> Instant? {
    callers[side].breaker.pausedUntil(callers[side].clock.now())
  }

  private func judge(_ answer: HTTPAnswer, _ side: AppleSide) -> (isWell: Bool, Reply) {
    func trouble(_ reason: ReceiptTrouble.Reason, _ detail: String) -> Reply {
      let now = callers[side].clock.now()
      return .trouble(
        ReceiptTrouble(
          reason: reason, side: side, status: Int64(answer.status),
          notBefore: RetryAfter.instant(answer.header("retry-after"), now: now), detail: detail))
    }
    guard answer.status == 200 else {
      let isRefusal = (400...499).contains(answer.status) && answer.status != 429
      if isRefusal { alarm(.ourFault, side, "HTTP status \(answer.status)") }
      if answer.status == 429 { alarm(.rateLimited, side, "HTTP status 429") }
      // Who refuses is up and running.
      return (isRefusal, trouble(.httpStatus, "HTTP status \(answer.status)"))
    }
    let found: VerifyReceiptAnswer
    do { found = try VerifyReceiptAnswer(parsing: answer.body, from: side.environment) } catch {
      let looks = (try? JSONDocument(parsing: answer.body)) == nil ? answer.looks : "JSON without an answer in it"
      alarm(.unusableBody, side, "status 200 with \(looks)")
      return (false, trouble(.unusableBody, "status 200 with \(looks)"))
    }
    switch (found.status, side) {
    case (.isSandbox, .production): return (true, .elsewhere(.sandbox, answer.body))
    case (.isProduction, .sandbox): return (true, .elsewhere(.production, answer.body))
    case (.tryLater, _): return (false, .answered(found))
    default: return (true, .answered(found))
    }
  }

  private func outcome(_ reply: Reply, _ side: AppleSide) -> ReceiptOutcome {
    let answer: VerifyReceiptAnswer
    switch reply {
    case .answered(let found): answer = found
    case .trouble(let trouble): return .undecided(trouble)
    // One hop only: whoever is asked second must know.
    case .elsewhere(_, let body): return contradiction(side, "each side says that the receipt is the other's", body)
    }
    func trouble(_ reason: ReceiptTrouble.Reason, _ number: Int64?, _ detail: String) -> ReceiptOutcome {
      .undecided(
        ReceiptTrouble(
          reason: reason, side: side, status: number, notBefore: pausedUntil(side), detail: detail, body: answer.body))
    }
    switch answer.status {
    case .valid, .validExpired:
      guard answer.agrees else { return contradiction(side, "the answer names another environment", answer.body) }
      return answer.status == .valid ? .valid(answer) : .expired(answer)
    case .notAuthentic:
      return .rejected(ReceiptRejection(reason: .notAuthentic, status: 21_003, side: side, body: answer.body))
    case .accountUnknown:
      return .rejected(ReceiptRejection(reason: .accountUnknown, status: 21_010, side: side, body: answer.body))
    case .malformedOrBusy:
      return trouble(.malformedOrBusy, 21_002, "status 21002: the receipt is malformed, or the service was busy")
    case .tryLater(let number): return trouble(.unavailable, number, "status \(number): try later")
    case .wrongSecret:
      alarm(.credentials, side, "status 21004: the shared secret is not this app's")
      return trouble(.wrongSecret, 21_004, "status 21004: the shared secret is not this app's")
    case .requestFault(let number):
      alarm(.ourFault, side, "status \(number)")
      return trouble(.requestFault, number, "status \(number): our request is wrong")
    case .notRetryable(let number):
      alarm(.notRetryable, side, "status \(number)")
      return trouble(.notRetryable, number, "status \(number), and is_retryable is false")
    case .unknown(let number):
      let said = number.map { "status \($0)" } ?? "no status that is a number"
      alarm(.unknownStatus, side, said)
      return trouble(.unknownStatus, number, said)
    case .isSandbox, .isProduction:
      return contradiction(side, "the side that it is of says that it is of the other", answer.body)
    }
  }

  private func contradiction(_ side: AppleSide, _ detail: String, _ body: [UInt8]) -> ReceiptOutcome {
    alarm(.contradiction, side, detail)
    return .undecided(
      ReceiptTrouble(
        reason: .contradiction, side: side, status: nil, notBefore: nil, detail: detail, body: body))
  }

  private func alarm(_ kind: StoreAlarm.Kind, _ side: AppleSide, _ detail: String) {
    alarms(StoreAlarm(kind, callers[side].at(Self.place), detail))
  }
}
