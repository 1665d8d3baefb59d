extension HTTPServer {
  /// Where the server listens and what it bears. Every limit has a default with its reason.
  public struct Settings: Sendable {
    /// A numeric address or a host name of this machine: `127.0.0.1`, `::1`, `0.0.0.0`, `localhost`.
    public var address: String
    /// 0 takes a free port; `HTTPServer.port` tells which.
    public var port: UInt16
    /// The longest body that is read, in bytes; a longer one is answered with 413.
    public var maxBody: Int
    /// Request line and headers together, in bytes; more is answered with 431 or 414.
    public var maxHeader: Int
    /// Connections beyond this one are closed at once: each holds one thread while it lives.
    public var maxConnections: Int
    /// A connection on which nothing moves for so many seconds is closed.
    public var idleSeconds: Int
    /// A request must arrive whole, and its answer be taken whole, within so many seconds: dripping bytes buys no time.
    public var transferSeconds: Double
    /// PEM files; nil serves plain HTTP.
    public var tls: TLS?

    public struct TLS: Sendable {
      public var certificatePath: String
      public var keyPath: String

      public init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
      }
    }

    /// A batch of a thousand events with their proofs, with room to spare.
    public static let defaultMaxBody = 8 << 20
    /// Several times what browsers and proxies send; also the size of one read of a body.
    public static let defaultMaxHeader = 64 << 10
    /// One thread of small stack each: a few hundred waiting long-polls cost little memory and no processor.
    public static let defaultMaxConnections = 1024
    /// Above the keep-alive of common load balancers (60 s), so that they close first and never lose a request to a race.
    public static let defaultIdleSeconds = 75
    /// Time for a full-sized body over a slow line (8 MiB at 2.2 Mbit/s).
    public static let defaultTransferSeconds = 30.0

    public init(
      address: String = "127.0.0.1", port: UInt16 = 0, maxBody: Int = Self.defaultMaxBody,
      maxHeader: Int = Self.defaultMaxHeader, maxConnections: Int = Self.defaultMaxConnections,
      idleSeconds: Int = Self.defaultIdleSeconds, transferSeconds: Double = Self.defaultTransferSeconds, tls: TLS? = nil
    ) {
      self.address = address
      self.port = port
      self.maxBody = maxBody
      self.maxHeader = maxHeader
      self.maxConnections = maxConnections
      self.idleSeconds = idleSeconds
      self.transferSeconds = transferSeconds
      self.tls = tls
    }
  }
}

/// Why a server could not start.
public enum HTTPServerError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The address means nothing here.
  case address(String, reason: String)
  /// The address is right but can't be bound: in use, or not allowed.
  case bind(address: String, port: UInt16, reason: String)
  /// A certificate or key file can't be read.
  case tlsFile(path: String, reason: String)
  /// The library was built without TLS, or refuses the certificate and key.
  case tls(reason: String)
  case start(reason: String)

  public var description: String {
    switch self {
    case .address(let address, let reason): "cannot use the address \(address): \(reason)"
    case .bind(let address, let port, let reason): "cannot listen on \(address) port \(port): \(reason)"
    case .tlsFile(let path, let reason): "cannot read the TLS file \(path): \(reason)"
    case .tls(let reason): "cannot serve TLS: \(reason)"
    case .start(let reason): "cannot start the HTTP server: \(reason)"
    }
  }
}
