import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesTestKit
import Synchronization
import Testing

/// Apple's schedule of sending, over real sockets, by a clock that is turned.
@Suite(.timeLimit(.minutes(1)))
struct CourierTests {
  let clock = ManualClock()
  let books = AppleBooks(LocalAuthority(seed: 31))

  private func note(_ environment: String) throws -> String {
    try books.send(
      Array(
        #"{"notificationType":"TEST","data":{"bundleId":"com.example.app","environment":"\#(environment)"}}"#.utf8),
      at: clock.now())
  }

  /// A server that refuses the first calls, and what it was sent.
  private func server(refusing count: Int) throws -> (HTTPServer, Received) {
    let received = Received()
    let server = try HTTPServer(.init()) { request in
      let body = (try? JSON(parsing: request.body))?["signedPayload"]?.string ?? ""
      return HTTPResponse(status: received.add(body) <= count ? 503 : 200)
    }
    return (server, received)
  }

  private final class Received: Sendable {
    private let all = Mutex<[String]>([])
    func add(_ text: String) -> Int {
      all.withLock {
        $0.append(text)
        return $0.count
      }
    }
    var bodies: [String] { all.withLock { $0 } }
  }

  private func courier(_ environment: PurchasesCore.Environment, _ server: HTTPServer) -> NotificationCourier {
    NotificationCourier(books, environment, to: "http://127.0.0.1:\(server.port)/v1/notifications", clock: clock)
  }

  @Test func productionTriesFiveMoreTimesOverThreeDays() throws {
    let (server, received) = try server(refusing: 100)
    let signed = try note("Production")
    let courier = courier(.production, server)
    let start = clock.now()
    var tries: [Int64] = []
    // A week, half an hour at a time.
    for step in 0..<(7 * 48) {
      clock.set(start.advanced(byMilliseconds: Int64(step) * 1_800_000))
      let before = received.bodies.count
      courier.deliverDue()
      if received.bodies.count > before { tries.append(Int64(step) / 2) }
    }
    #expect(tries == [0, 1, 13, 37, 85, 157])
    // The same bytes each time.
    #expect(received.bodies == Array(repeating: signed, count: 6))
  }

  @Test func oneAnswerEndsIt() throws {
    let (server, received) = try server(refusing: 1)
    _ = try note("Production")
    let courier = courier(.production, server)
    #expect(courier.deliverDue() == 0)
    clock.advance(milliseconds: 3_600_000)
    #expect(courier.deliverDue() == 1)
    clock.advance(milliseconds: 90 * 3_600_000)
    #expect(courier.deliverDue() == 0)
    #expect(received.bodies.count == 2)
  }

  @Test func theSandboxTriesOnce() throws {
    let (server, received) = try server(refusing: 1)
    _ = try note("Sandbox")
    let courier = courier(.sandbox, server)
    #expect(courier.deliverDue() == 0)
    clock.advance(milliseconds: 90 * 3_600_000)
    #expect(courier.deliverDue() == 0)
    #expect(received.bodies.count == 1)
  }
}
