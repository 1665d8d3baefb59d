import CPurchasesHTTPServer
import Glibc

/// An HTTP/1.1 server on libmicrohttpd: one thread per connection, so a handler may block (a long-poll, a delivery report)
/// without holding up any other.
///
/// The handler sees whole requests only. The server itself answers 400 (a target that can't be decoded), 413 (body over
/// the limit), 431/414 (headers over the limit) and 503 (while it stops).
///
/// `@unchecked Sendable`: the daemon's handle is set once in init and given up once, under the monitor, in `stop`;
/// everything else is in `ServerState`.
public final class HTTPServer: @unchecked Sendable {
  /// Called on a thread of its own connection, for many connections at once.
  public typealias Handler = @Sendable (HTTPRequest) -> HTTPResponse

  /// The port it listens on; the one taken where the settings asked for 0.
  public let port: UInt16
  private let state: ServerState
  private let daemon: Monitor<OpaquePointer?>

  /// Handlers decode small JSON and wait: a thread of a C library needs no more, and a thousand of them stay affordable.
  private static let stackBytes = 512 << 10

  public init(_ settings: Settings, handler: @escaping Handler) throws(HTTPServerError) {
    precondition(settings.maxBody > 0 && settings.maxHeader > 0, "limits of body and header must be positive")
    precondition(settings.maxConnections > 0, "maxConnections must be positive")
    precondition(settings.idleSeconds > 0 && settings.transferSeconds > 0, "timeouts must be positive")
    var flags = MHD_USE_INTERNAL_POLLING_THREAD.rawValue | MHD_USE_THREAD_PER_CONNECTION.rawValue
    flags |= MHD_USE_POLL.rawValue | MHD_USE_ITC.rawValue
    var certificate: [CChar]?
    var key: [CChar]?
    if let tls = settings.tls {
      guard MHD_is_feature_supported(MHD_FEATURE_TLS) == .YES else {
        throw .tls(reason: "this build of libmicrohttpd has no TLS")
      }
      certificate = try readTLSFile(tls.certificatePath)
      key = try readTLSFile(tls.keyPath)
      flags |= MHD_USE_TLS.rawValue
    }
    let listening = try openListeningSocket(address: settings.address, port: settings.port)
    let state = ServerState(settings: settings, handler: handler)
    let started = purchases_mhd_start(
      flags, listening.socket, onAccess, onCompleted, onConnection, onTarget,
      Unmanaged.passUnretained(state).toOpaque(),
      settings.maxHeader, UInt32(settings.maxConnections), UInt32(settings.idleSeconds), Self.stackBytes, certificate,
      key)
    guard let started else {
      let reason = systemReason(errno)
      // The library has closed the socket already: to close it again could hit a file that another thread opened since.
      if settings.tls != nil { throw .tls(reason: "the certificate and key do not fit") }
      throw .start(reason: reason)
    }
    guard startThread({ state.watch() }) else {
      MHD_stop_daemon(started)
      throw .start(reason: "no thread for the watch")
    }
    self.state = state
    self.port = listening.port
    daemon = Monitor(started)
  }

  deinit {
    stop(within: 0)
  }

  /// How many requests are being read, handled or answered at this moment.
  public var requestsInHand: Int {
    state.shared.change { $0.inHand }
  }

  /// Takes no more connections, lets the requests in hand finish for at most `seconds`, then cuts what is left.
  /// Answers false when something had to be cut; handlers that still run are waited for on a thread apart.
  /// A second call does nothing and answers true.
  @discardableResult
  public func stop(within seconds: Double) -> Bool {
    guard
      let daemon = daemon.change({ handle in
        defer { handle = nil }
        return handle
      })
    else { return true }
    state.shared.change { $0.stopping = true }
    let listening = MHD_quiesce_daemon(daemon)
    // The kernel would go on queueing connections that nobody takes.
    if listening >= 0 { shutdown(listening, Int32(SHUT_RDWR)) }
    let finished = state.shared.wait(until: monotonicSeconds() + seconds) { $0.inHand == 0 }
    state.cutAll()
    let release: @Sendable () -> Void = { [state, handle = UInt(bitPattern: daemon)] in
      guard let daemon = OpaquePointer(bitPattern: handle) else { return }
      MHD_stop_daemon(daemon)
      if listening >= 0 { close(listening) }
      state.shared.change { $0.stopped = true }
    }
    // MHD_stop_daemon joins every thread: a handler that overran must not hold the caller beyond its bound.
    if finished || !startThread(release) { release() }
    return finished
  }
}
