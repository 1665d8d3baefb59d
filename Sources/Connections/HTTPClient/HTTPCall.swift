/// A request to send.
public struct HTTPCall: Sendable {
  public typealias Header = (name: String, value: String)

  public var method: String
  public var url: String
  public var headers: [Header]
  /// Nil sends none; an empty body is sent as one of length 0.
  public var body: [UInt8]?
  /// Overrides the client's total timeout for this call, in seconds: a long-poll needs more than others.
  public var totalSeconds: Double?
  /// Sent on a connection of its own. On a kept one that breaks before an answer libcurl sends the call a second time,
  /// whatever its method; a call that must not take effect twice has to do without.
  public var isSentOnce = false

  public init(
    _ method: String = "GET", _ url: String, headers: [Header] = [], body: [UInt8]? = nil, totalSeconds: Double? = nil
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.totalSeconds = totalSeconds
  }
}

/// What came back: any status, for the caller to judge.
public struct HTTPAnswer: Sendable {
  public let status: Int
  /// In the order they came; of several header blocks (100 Continue) only the last.
  public let headers: [HTTPCall.Header]
  public let body: [UInt8]

  /// The first header of that name, without regard to case.
  public func header(_ name: String) -> String? {
    let wanted = name.lowercased()
    return headers.first { $0.name.lowercased() == wanted }?.value
  }
}

/// Why no answer came. Messages name the host at most: a path or header may hold what must not be logged.
public enum HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The URL, method or a header can't be sent.
  case malformedCall(String)
  case cannotResolve(String)
  /// Nothing listens there, or the way is barred.
  case refused(String)
  /// The bound that passed, connect or total.
  case timeout(String)
  /// The connection broke, or the peer closed it without an answer.
  case reset(String)
  /// The answer is longer than the limit, in bytes.
  case tooLarge(limit: Int)
  /// The peer's certificate can't be trusted, or the handshake failed.
  case tls(String)
  /// What came isn't HTTP.
  case notHTTP(String)
  case other(code: Int, String)

  public var description: String {
    switch self {
    case .malformedCall(let reason): "the HTTP call cannot be sent: \(reason)"
    case .cannotResolve(let reason): "the host cannot be resolved: \(reason)"
    case .refused(let reason): "the connection was refused: \(reason)"
    case .timeout(let reason): "the time is up: \(reason)"
    case .reset(let reason): "the connection broke: \(reason)"
    case .tooLarge(let limit): "the answer is larger than \(limit) bytes"
    case .tls(let reason): "TLS failed: \(reason)"
    case .notHTTP(let reason): "the answer is not HTTP: \(reason)"
    case .other(let code, let reason): "HTTP failed (libcurl \(code)): \(reason)"
    }
  }
}
