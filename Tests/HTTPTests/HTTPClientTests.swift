import Foundation
import PurchasesHTTPClient
import PurchasesHTTPServer
import PurchasesTestKit
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HTTPClientTests {
  let client = HTTPClient(.init(totalSeconds: 20))

  /// A server of one connection that does what it is told.
  private func scripted(_ play: @escaping @Sendable (RawSocket) -> Void) -> String {
    let (listener, port) = RawSocket.listen()
    _ = onThreads(1) { _ in play(listener.accept()) }
    return "http://127.0.0.1:\(port)/secret-path?secret=1"
  }

  private func failure(_ call: HTTPCall, _ client: HTTPClient? = nil) -> HTTPClientError? {
    do {
      _ = try (client ?? self.client).send(call)
      return nil
    } catch {
      #expect(!error.description.contains("secret"))
      return error
    }
  }

  @Test func nothingListening() throws {
    let server = try HTTPServer(.init()) { _ in HTTPResponse(status: 200) }
    server.stop(within: 1)
    guard case .refused = failure(HTTPCall("GET", "http://127.0.0.1:\(server.port)/secret")) else {
      Issue.record("expected refused")
      return
    }
  }

  @Test func silence() {
    let gate = Gate()
    let url = scripted { socket in
      _ = socket.readHead()
      gate.pass()
    }
    guard case .timeout = failure(HTTPCall("GET", url, totalSeconds: 0.1)) else {
      Issue.record("expected timeout")
      return
    }
    gate.open()
  }

  @Test func closedWithoutAnAnswerAndReset() {
    guard case .reset = failure(HTTPCall("GET", scripted { _ = $0.readHead() })) else {
      Issue.record("expected reset on close")
      return
    }
    let url = scripted {
      _ = $0.readHead()
      _ = $0.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
      $0.reset()
    }
    guard case .reset = failure(HTTPCall("GET", url)) else {
      Issue.record("expected reset in mid-body")
      return
    }
  }

  @Test func notHTTP() {
    let url = scripted {
      _ = $0.readHead()
      _ = $0.send("220 smtp.example ready\r\n")
    }
    guard case .notHTTP = failure(HTTPCall("GET", url)) else {
      Issue.record("expected notHTTP")
      return
    }
  }

  @Test func tooLarge() throws {
    let server = try HTTPServer(.init()) { _ in HTTPResponse(status: 200, body: [UInt8](repeating: 7, count: 1001)) }
    let url = "http://127.0.0.1:\(server.port)/"
    let narrow = HTTPClient(.init(maxAnswer: 1000))
    #expect(failure(HTTPCall("GET", url), narrow) == .tooLarge(limit: 1000))
    #expect(try HTTPClient(.init(maxAnswer: 1001)).send(HTTPCall("GET", url)).body.count == 1001)
  }

  @Test func redirectsAreAnswers() throws {
    let server = try HTTPServer(.init()) { _ in
      HTTPResponse(status: 302, headers: HTTPHeaders([.init(name: "location", value: "/elsewhere")]))
    }
    let answer = try client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/"))
    #expect(answer.status == 302)
    #expect(answer.header("Location") == "/elsewhere")
  }

  @Test func connectionsAreUsedAgain() throws {
    // It accepts once only: the second call succeeds on the first connection or not at all.
    let url = scripted { socket in
      for _ in 0..<2 {
        _ = socket.readHead()
        _ = socket.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
      }
      _ = socket.readHead()
    }
    for _ in 0..<2 { #expect(try client.send(HTTPCall("GET", url)).body == Array("ok".utf8)) }
  }

  @Test func aCallThatIsSentOnceIsNotRepeatedOnAKeptConnection() {
    for isSentOnce in [true, false] {
      let calls = Mutex(0)
      let (listener, port) = RawSocket.listen()
      // Each connection answers one call, the first of all, and is closed at the next without an answer.
      let accepting = onThreads(1) { _ in
        while true {
          let socket = listener.accept()
          guard socket.isOpen else { return }
          _ = onThreads(1) { _ in
            while !socket.readHead().isEmpty {
              let isFirst = calls.withLock { count in
                count += 1
                return count == 1
              }
              guard isFirst, socket.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") else { break }
            }
            socket.shut()
          }
        }
      }
      var call = HTTPCall("POST", "http://127.0.0.1:\(port)/", body: [])
      #expect(failure(call) == nil)
      call.isSentOnce = isSentOnce
      guard case .reset = failure(call) else {
        Issue.record("expected reset")
        return
      }
      #expect(calls.withLock { $0 } == (isSentOnce ? 2 : 3))
      listener.shut()
      _ = accepting.wait()
    }
  }

  @Test func noAnswerClosesTheConnection() throws {
    let server = try HTTPServer(.init()) { request in
      request.path == ["none"] ? .noAnswer : HTTPResponse(status: 200)
    }
    guard case .reset = failure(HTTPCall("GET", "http://127.0.0.1:\(server.port)/none"), HTTPClient()) else {
      Issue.record("expected reset")
      return
    }
    #expect(try client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/")).status == 200)
    #expect(server.stop(within: 5))
  }

  @Test func whatCannotBeSentIsNamed() {
    for call in [
      HTTPCall("GET", "ftp://127.0.0.1/"), HTTPCall("GET", "file:///etc/hostname"), HTTPCall("GET", "::not a url"),
      HTTPCall("GE T", "http://127.0.0.1/"), HTTPCall("GET", "http://127.0.0.1/", headers: [("a", "b\r\nc: d")]),
    ] {
      guard case .malformedCall = failure(call) else {
        Issue.record("expected malformedCall for \(call.url)")
        continue
      }
    }
    guard case .cannotResolve = failure(HTTPCall("GET", "http://name.invalid/")) else {
      Issue.record("expected cannotResolve")
      return
    }
  }

  @Test func emptyBodyAndMethods() throws {
    let server = try HTTPServer(.init()) { request in
      HTTPResponse(
        status: 200, contentType: "text/plain",
        body: Array("\(request.method) \(request.headers["content-length"] ?? "none")".utf8))
    }
    let url = "http://127.0.0.1:\(server.port)/"
    func text(_ call: HTTPCall) throws -> String { String(decoding: try client.send(call).body, as: UTF8.self) }
    #expect(try text(HTTPCall("POST", url, body: [])) == "POST 0")
    #expect(try text(HTTPCall("PUT", url, body: [1, 2])) == "PUT 2")
    #expect(try text(HTTPCall("DELETE", url)) == "DELETE none")
    #expect(try text(HTTPCall("GET", url)) == "GET none")
  }
}
