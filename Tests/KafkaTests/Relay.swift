import Foundation
import PurchasesTestKit
import Synchronization

/// Stands between a broker and its clients, as a network does, and keeps back, cuts and delivers late. Of what it passes
/// on it knows where a request ends and which one it is.
final class Relay: Sendable {
  /// Numbers of Kafka's protocol.
  enum Request {
    static let listOffsets: Int16 = 2
    static let initProducerId: Int16 = 22
    static let addOffsetsToTransaction: Int16 = 25
    static let endTransaction: Int16 = 26
  }

  enum Fate {
    case pass
    /// The client's connection breaks before the request has reached the broker; the broker's stays.
    case keep
    /// The broker works it off; its answer gets nowhere, and nobody is reached from then on.
    case passAndCut
  }

  typealias Watch = @Sendable (_ request: Int16, _ connection: Connection) -> Fate

  let port: UInt16
  private let listener: RawSocket
  private let state = Mutex(State())

  private struct State {
    var watch: Watch = { _, _ in .pass }
    var connections: [Connection] = []
    var isCut = false
    var asked: [Int16: Int] = [:]
  }

  /// - Parameter target: the broker's port, asked for at each connection: the relay is there before the broker is.
  init(to target: @escaping @Sendable () -> UInt16?) {
    (listener, port) = RawSocket.listen()
    Thread.detachNewThread { [self] in
      while true {
        let client = listener.accept()
        guard client.isOpen else { return }
        guard !state.withLock({ $0.isCut }), let broker = target().flatMap(RawSocket.connect(port:)) else {
          client.shut()
          continue
        }
        let connection = Connection(client: client, broker: broker)
        state.withLock { $0.connections.append(connection) }
        connection.start(self) { [self] request in
          let watch = state.withLock { state in
            state.asked[request, default: 0] += 1
            return state.watch
          }
          return watch(request, connection)
        }
      }
    }
  }

  /// Asked about every request from now on, before it is passed on.
  func watch(_ watch: @escaping Watch) { state.withLock { $0.watch = watch } }

  /// How often clients have sent such a request.
  func count(of request: Int16) -> Int { state.withLock { $0.asked[request] ?? 0 } }

  /// Ends every connection; new ones end at once, until `heal`.
  func cut() {
    let connections = state.withLock { state in
      state.isCut = true
      defer { state.connections = [] }
      return state.connections
    }
    for connection in connections { connection.end() }
  }

  func heal() { state.withLock { $0.isCut = false } }

  func close() {
    listener.shut()
    cut()
  }

  final class Connection: Sendable {
    private let client: RawSocket
    private let broker: RawSocket
    private let kept = Mutex<[UInt8]?>(nil)
    private let lateAnswer = Mutex<[UInt8]?>(nil)
    private let answered = DispatchSemaphore(value: 0)

    init(client: RawSocket, broker: RawSocket) {
      self.client = client
      self.broker = broker
    }

    func start(_ relay: Relay, _ fate: @escaping @Sendable (Int16) -> Fate) {
      Thread.detachNewThread { [self] in
        while let frame = Self.frame(from: client) {
          let request = frame.count < 6 ? -1 : Int16(frame[4]) << 8 | Int16(frame[5])
          switch fate(request) {
          case .pass: guard broker.send(frame) else { return end() }
          case .keep:
            kept.withLock { $0 = frame }
            client.shut()
            return
          case .passAndCut:
            kept.withLock { $0 = frame }
            _ = deliver()
            return relay.cut()
          }
        }
        end()
      }
      Thread.detachNewThread { [self] in
        while let frame = Self.frame(from: broker) {
          if kept.withLock({ $0 == nil }) {
            guard client.send(frame) else { break }
          } else {
            lateAnswer.withLock { $0 = frame }
            answered.signal()
          }
        }
        end()
        answered.signal()
      }
    }

    /// Hands the broker what was kept, and waits for its answer; nil when it gives none.
    func deliver() -> [UInt8]? {
      guard let frame = kept.withLock({ $0 }), broker.send(frame) else { return nil }
      answered.wait()
      return lateAnswer.withLock { $0 }
    }

    func end() {
      client.shut()
      broker.shut()
    }

    /// A length of four bytes, and as many more.
    private static func frame(from socket: RawSocket) -> [UInt8]? {
      guard let length = socket.read(exactly: 4) else { return nil }
      let count = length.reduce(0) { $0 << 8 | Int($1) }
      guard let rest = socket.read(exactly: count) else { return nil }
      return length + rest
    }
  }
}
