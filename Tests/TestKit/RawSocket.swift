import Glibc

/// A TCP socket without any protocol in it, for the bytes that no honest client sends.
public final class RawSocket: Sendable {
  private let descriptor: Int32

  private init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  public static func connect(port: UInt16) -> RawSocket? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(port)
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    let raw = RawSocket(descriptor)
    return code == 0 ? raw : nil
  }

  public static func listen() -> (RawSocket, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        precondition(bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 16) == 0)
        precondition(getsockname(descriptor, $0, &length) == 0)
      }
    }
    return (RawSocket(descriptor), UInt16(bigEndian: address.sin_port))
  }

  /// False for what `accept` answers once the listener is shut.
  public var isOpen: Bool { descriptor >= 0 }

  /// The next caller.
  public func accept() -> RawSocket {
    RawSocket(Glibc.accept(descriptor, nil, nil))
  }

  /// False once the peer is gone.
  public func send(_ text: String) -> Bool {
    send(Array(text.utf8))
  }

  public func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// What comes until the peer closes.
  public func readToEnd() -> String {
    var all: [UInt8] = []
    while let chunk = read() { all += chunk }
    return String(decoding: all, as: UTF8.self)
  }

  /// What comes until a blank line, for the head of a message without a body.
  public func readHead() -> String {
    var all: [UInt8] = []
    while !String(decoding: all, as: UTF8.self).hasSuffix("\r\n\r\n"), let chunk = read(limit: 1) { all += chunk }
    return String(decoding: all, as: UTF8.self)
  }

  /// Exactly so many bytes; nil when the peer closes before.
  public func read(exactly count: Int) -> [UInt8]? {
    var all: [UInt8] = []
    all.reserveCapacity(count)
    while all.count < count {
      guard let chunk = read(limit: min(count - all.count, 65_536)) else { return nil }
      all += chunk
    }
    return all
  }

  /// Ends both directions; whoever reads here or at the other end comes to the end.
  public func shut() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Sends one byte at a time for as long as the peer takes them; returns when it has closed.
  public func drip(_ byte: UInt8, everyMilliseconds pause: Int32) {
    var watch = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while send([byte]) {
      if poll(&watch, 1, pause) > 0 {
        while read() != nil {}
        return
      }
    }
  }

  /// Closes so that the peer sees a reset.
  public func reset() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
  }

  private func read(limit: Int = 65_536) -> [UInt8]? {
    var chunk = [UInt8](repeating: 0, count: limit)
    let count = recv(descriptor, &chunk, limit, 0)
    return count > 0 ? Array(chunk[..<count]) : nil
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
