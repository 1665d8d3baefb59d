import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesJSON

/// Sends the notifications of the books as Apple does: production tries five more times over three days until it gets a 200,
/// the sandbox once. Each try stands in the history.
public struct NotificationCourier: Sendable {
  /// When each try is made, counted from the first one: after 1, 12, 24, 48 and 72 hours more each.
  public static func schedule(_ environment: Environment) -> [Int64] {
    let hour: Int64 = 3_600_000
    guard environment == .production else { return [0] }
    return [1, 12, 24, 48, 72].reduce(into: [0]) { $0.append(($0.last ?? 0) + $1 * hour) }
  }

  private let books: AppleBooks
  private let environment: Environment
  private let endpoint: String
  private let client: HTTPClient
  private let clock: any Clock

  /// - Parameters:
  ///   - endpoint: the server's URL for notifications.
  ///   - seconds: how long Apple waits for an answer.
  public init(
    _ books: AppleBooks, _ environment: Environment, to endpoint: String, clock: any Clock, seconds: Double = 30
  ) {
    self.books = books
    self.environment = environment
    self.endpoint = endpoint
    self.clock = clock
    client = HTTPClient(HTTPClient.Settings(totalSeconds: seconds))
  }

  /// Makes every try that is due. Blocks; used by one thread.
  ///
  /// - Returns: how many were delivered.
  @discardableResult
  public func deliverDue() -> Int {
    let now = clock.now()
    let schedule = Self.schedule(environment)
    let due: [(index: Int, signed: String)] = books.read(environment) { side in
      side.sent.enumerated().compactMap { index, sent in
        guard !sent.isDelivered, sent.attempts.count < schedule.count else { return nil }
        let at = sent.at.advanced(byMilliseconds: schedule[sent.attempts.count])
        return at <= now ? (index, sent.signed) : nil
      }
    }
    var delivered = 0
    for (index, signed) in due {
      let result = send(signed)
      if result == "SUCCESS" { delivered += 1 }
      let attempt = AppleBooks.Attempt(at: now, result: result)
      books.change(environment) { $0.sent[index].attempts.append(attempt) }
    }
    return delivered
  }

  /// In the words of Apple's history.
  private func send(_ signed: String) -> String {
    var writer = JSONWriter(reserving: signed.utf8.count + 64)
    writer.object { $0.field("signedPayload", signed) }
    let call = HTTPCall("POST", endpoint, headers: [("content-type", "application/json")], body: writer.bytes)
    do throws(HTTPClientError) {
      return try client.send(call).status == 200 ? "SUCCESS" : "UNSUCCESSFUL_HTTP_RESPONSE_CODE"
    } catch {
      switch error {
      case .timeout: return "TIMED_OUT"
      case .tls: return "TLS_ISSUE"
      case .reset: return "PREMATURE_CLOSE"
      case .refused, .cannotResolve: return "SOCKET_ISSUE"
      case .notHTTP, .tooLarge: return "INVALID_RESPONSE"
      case .malformedCall, .other: return "OTHER"
      }
    }
  }
}
