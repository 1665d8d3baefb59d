import Synchronization

/// A blocking HTTP client on libcurl. Call it from threads of your own, never from Swift's cooperative pool.
///
/// Connections are kept and used again. Redirects are answers like any other, never followed; TLS is always checked.
/// Safe to use from many threads: each call borrows a handle of its own.
public final class HTTPClient: Sendable {
  public struct Settings: Sendable {
    /// Time for resolving, connecting and the TLS handshake, in seconds.
    public var connectSeconds: Double
    /// Time for the whole call, in seconds.
    public var totalSeconds: Double
    /// The longest body that is accepted, in bytes.
    public var maxAnswer: Int
    /// A PEM file of the certificates to trust, in place of the system's.
    public var caFile: String?
    /// Idle handles, each with its open connections, that are kept for the next call.
    public var maxIdleHandles: Int

    /// A handshake over two continents takes well under a second; ten bear a lost packet or two.
    public static let defaultConnectSeconds = 10.0
    public static let defaultTotalSeconds = 30.0
    /// Apple's largest answers (a page of history) stay below a megabyte or two.
    public static let defaultMaxAnswer = 16 << 20
    public static let defaultMaxIdleHandles = 64

    public init(
      connectSeconds: Double = Self.defaultConnectSeconds, totalSeconds: Double = Self.defaultTotalSeconds,
      maxAnswer: Int = Self.defaultMaxAnswer, caFile: String? = nil,
      maxIdleHandles: Int = Self.defaultMaxIdleHandles
    ) {
      self.connectSeconds = connectSeconds
      self.totalSeconds = totalSeconds
      self.maxAnswer = maxAnswer
      self.caFile = caFile
      self.maxIdleHandles = maxIdleHandles
    }
  }

  private let settings: Settings
  private let idle = Mutex<[EasyHandle]>([])

  public init(_ settings: Settings = Settings()) {
    precondition(settings.connectSeconds > 0 && settings.totalSeconds > 0, "timeouts must be positive")
    precondition(settings.maxAnswer > 0 && settings.maxIdleHandles >= 0, "limits must be positive")
    self.settings = settings
  }

  /// Sends and waits for the whole answer.
  public func send(_ call: HTTPCall) throws(HTTPClientError) -> HTTPAnswer {
    // The handle used last has the freshest connection.
    guard let handle = idle.withLock({ $0.popLast() }) ?? EasyHandle() else {
      throw .other(code: 0, "libcurl gives no handle")
    }
    defer {
      idle.withLock { if $0.count < settings.maxIdleHandles { $0.append(handle) } }
    }
    return try handle.perform(call, settings)
  }
}
