import PurchasesContracts
import PurchasesHTTPServer

extension Gateway {
  /// Where the gateway listens, who may speak to it, and what it bears.
  public struct Settings: Sendable {
    public var http: HTTPServer.Settings
    /// Shared secrets of the back ends (`Authorization: Bearer …`). Several, so that one can be replaced without a gap.
    /// With none, only a loopback address may be bound.
    public var tokens: [String]
    public var topics: TopicSettings
    /// What the events name as their source.
    public var source: String
    /// How long a request waits for its delivery report before it is told to come again, in seconds.
    public var deliverySeconds: Double
    /// The longest `wait=` of a permit request, in seconds; longer ones are cut to it.
    public var maxWaitSeconds: Double
    /// Requests that may wait for a permit at a time; one more is answered at once with what is known.
    public var maxWaiters: Int
    /// Events in one `application/x-ndjson` body.
    public var maxLines: Int

    /// Above librdkafka's own time for a message in a healthy cluster, below the patience of common proxies (60 s).
    public static let defaultDeliverySeconds = 30.0
    /// Half a minute is what proxies and mobile networks bear without a byte.
    public static let defaultMaxWaitSeconds = 30.0
    /// Half of the server's connections: the other half stays free for events.
    public static let defaultMaxWaiters = HTTPServer.Settings.defaultMaxConnections / 2
    /// A body of the largest size holds fewer events with proofs than this.
    public static let defaultMaxLines = 10_000

    public init(
      http: HTTPServer.Settings = .init(), tokens: [String] = [], topics: TopicSettings = TopicSettings(),
      source: String = "/purchases/gateway", deliverySeconds: Double = Self.defaultDeliverySeconds,
      maxWaitSeconds: Double = Self.defaultMaxWaitSeconds, maxWaiters: Int = Self.defaultMaxWaiters,
      maxLines: Int = Self.defaultMaxLines
    ) {
      self.http = http
      self.tokens = tokens
      self.topics = topics
      self.source = source
      self.deliverySeconds = deliverySeconds
      self.maxWaitSeconds = maxWaitSeconds
      self.maxWaiters = maxWaiters
      self.maxLines = maxLines
    }

    /// A shorter secret can be guessed over the network.
    public static let minimumTokenBytes = 16

    func check() throws(GatewayError) {
      if tokens.isEmpty, !Self.isLoopback(http.address) {
        throw .unprotected(address: http.address)
      }
      for (index, token) in tokens.enumerated() {
        guard token.utf8.count >= Self.minimumTokenBytes, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
          throw .token(position: index + 1)
        }
      }
    }

    private static func isLoopback(_ address: String) -> Bool {
      // By name and form: what a host name resolves to may change between the check and the bind.
      if address == "localhost" || address == "::1" { return true }
      let parts = address.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
      return parts.count == 4 && parts.allSatisfy { $0 != nil } && parts[0] == 127
    }
  }

  /// What the gateway shows of the process around it.
  public struct Probes: Sendable {
    /// Why this process should be restarted; nil while it lives.
    public var dead: @Sendable () -> String?
    /// Why it can't do its work now, one reason each; empty when it can.
    public var unready: @Sendable () -> [String]
    /// The metrics in Prometheus' text format.
    public var metrics: @Sendable () -> String
    /// Told of every answer: for metrics and the log. It holds no path, body or token.
    public var answered: @Sendable (Answered) -> Void

    public init(
      dead: @escaping @Sendable () -> String? = { nil }, unready: @escaping @Sendable () -> [String] = { [] },
      metrics: @escaping @Sendable () -> String = { "" },
      answered: @escaping @Sendable (Answered) -> Void = { _ in }
    ) {
      self.dead = dead
      self.unready = unready
      self.metrics = metrics
      self.answered = answered
    }
  }

  public struct Answered: Sendable, Hashable {
    /// The route's fixed name, such as `POST /v1/events`; never the path as it was sent.
    public let route: String
    public let status: Int
    /// Events that became durable with this request.
    public let accepted: Int
    /// Events that were refused.
    public let refused: Int
  }
}

public enum GatewayError: Error, Sendable, Hashable, CustomStringConvertible {
  case unprotected(address: String)
  case token(position: Int)
  case server(String)

  public var description: String {
    switch self {
    case .unprotected(let address):
      "the gateway does not listen on \(address) without a token: set one, or bind a loopback address such as 127.0.0.1"
    case .token(let position):
      "token \(position) is not usable: at least \(Gateway.Settings.minimumTokenBytes) visible ASCII characters"
    case .server(let reason): reason
    }
  }
}
