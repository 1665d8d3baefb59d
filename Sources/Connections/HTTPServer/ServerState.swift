import CPurchasesHTTPServer
import Glibc

/// One request while it is read and answered. Only the thread of its connection touches it.
final class Exchange {
  let target: [UInt8]
  var began = false
  var method = ""
  var headers = HTTPHeaders()
  var body: [UInt8] = []
  /// Bytes of the body so far, those beyond the limit too.
  var received = 0
  /// Set as soon as the answer is known to be a refusal; the rest of the body is then read and dropped.
  var refusal: HTTPResponse?

  init(target: [UInt8]) {
    self.target = target
  }
}

/// What all connections share.
///
/// Sendable without conditions: the handler and limits never change, and the rest is behind the monitor.
final class ServerState: Sendable {
  struct Connection {
    let socket: Int32
    /// When the watch cuts the connection; nil while the handler works, whose time is its own affair.
    var deadline: Double?
  }

  struct Shared {
    var connections: [UInt: Connection] = [:]
    var inHand = 0
    var stopping = false
    var stopped = false
  }

  let settings: HTTPServer.Settings
  let handler: HTTPServer.Handler
  let shared = Monitor(Shared())

  init(settings: HTTPServer.Settings, handler: @escaping HTTPServer.Handler) {
    self.settings = settings
    self.handler = handler
  }

  func opened(_ key: UInt, socket: Int32) {
    let deadline = monotonicSeconds() + settings.transferSeconds
    shared.change { $0.connections[key] = Connection(socket: socket, deadline: deadline) }
  }

  /// libmicrohttpd tells this before it closes the socket, so a number in the table is never another connection's.
  func closed(_ key: UInt) {
    shared.change { $0.connections[key] = nil }
  }

  func setDeadline(_ key: UInt, in seconds: Double?) {
    let deadline = seconds.map { monotonicSeconds() + $0 }
    shared.change { $0.connections[key]?.deadline = deadline }
  }

  /// Counts a request in; answers whether the server is on its way out.
  func began() -> Bool {
    shared.change {
      $0.inHand += 1
      return $0.stopping
    }
  }

  func ended(_ key: UInt, wasCounted: Bool) {
    // Between requests a connection may rest for the idle time; the next request then gets its own time.
    let deadline = monotonicSeconds() + Double(settings.idleSeconds) + settings.transferSeconds
    shared.change {
      if wasCounted { $0.inHand -= 1 }
      $0.connections[key]?.deadline = deadline
    }
  }

  /// Cuts what has overrun its time. The library's own timeout counts only silence, which a client that drips one byte
  /// after the other never keeps.
  func watch() {
    /// Often enough that the bound is met within a fraction of itself, seldom enough to cost nothing.
    let pause = min(max(settings.transferSeconds / 8, 0.01), 1)
    while !shared.wait(until: monotonicSeconds() + pause, for: { $0.stopped }) {
      cut { deadline, now in deadline.map { $0 <= now } ?? false }
    }
  }

  func cutAll() {
    cut { _, _ in true }
  }

  private func cut(_ due: (Double?, Double) -> Bool) {
    let now = monotonicSeconds()
    shared.change { state in
      for connection in state.connections.values where due(connection.deadline, now) {
        // Its thread sees the end of the stream and closes the socket.
        shutdown(connection.socket, Int32(SHUT_RDWR))
      }
    }
  }
}
