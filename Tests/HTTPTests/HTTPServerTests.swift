import PurchasesHTTPClient
import PurchasesHTTPServer
import PurchasesTestKit
import Testing

private func echo(_ request: HTTPRequest) -> HTTPResponse {
  let lines =
    [request.method, request.path.joined(separator: "|")] + request.query.map { "\($0.name)=\($0.value)" }
    + ["x=\(request.headers["X-THING"] ?? "none")"]
  return HTTPResponse(
    status: 200, headers: HTTPHeaders([.init(name: "x-lines", value: lines.joined(separator: ";"))]), body: request.body
  )
}

@Suite(.timeLimit(.minutes(1)))
struct HTTPServerTests {
  let client = HTTPClient()

  @Test func requestArrivesDecodedAndWhole() throws {
    let server = try HTTPServer(.init(), handler: echo)
    let body = [UInt8]((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
    let answer = try client.send(
      HTTPCall(
        "POST", "http://127.0.0.1:\(server.port)/v1/a%2Fb/%C3%A9/?q=1+2&r=%26&s", headers: [("x-Thing", "yes")],
        body: body))
    #expect(answer.status == 200)
    #expect(answer.header("X-Lines") == "POST;v1|a/b|é|;q=1 2;r=&;s=;x=yes")
    #expect(answer.body == body)
    #expect(server.stop(within: 5))
  }

  @Test func headHasLengthButNoBody() throws {
    let server = try HTTPServer(.init()) { _ in HTTPResponse(status: 200, body: Array("twelve bytes".utf8)) }
    let answer = try client.send(HTTPCall("HEAD", "http://127.0.0.1:\(server.port)/"))
    #expect(answer.body.isEmpty)
    #expect(answer.header("content-length") == "12")
  }

  @Test(arguments: ["/%", "/%zz", "/%ff", "/a%00b", "/ok?x=%c3"])
  func undecodableTargetIsRefused(target: String) throws {
    let server = try HTTPServer(.init(), handler: echo)
    let raw = try #require(RawSocket.connect(port: server.port))
    #expect(raw.send("GET \(target) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    #expect(raw.readToEnd().hasPrefix("HTTP/1.1 400"))
  }

  @Test(arguments: [
    "\u{0}\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  ])
  func garbageNeverReachesTheHandler(bytes: String) throws {
    let server = try HTTPServer(.init()) { _ in HTTPResponse(status: 299) }
    let raw = try #require(RawSocket.connect(port: server.port))
    #expect(raw.send(bytes))
    let answer = raw.readToEnd()
    #expect(!answer.contains("299"))
    #expect(answer.isEmpty || answer.contains(" 4") || answer.contains(" 505 "), "answered \(answer.prefix(40))")
    // The server goes on.
    #expect(try client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/")).status == 299)
  }

  @Test func bodiesBeyondTheLimitAreRefused() throws {
    let server = try HTTPServer(.init(maxBody: 1000), handler: echo)
    let url = "http://127.0.0.1:\(server.port)/"
    #expect(try client.send(HTTPCall("POST", url, body: [UInt8](repeating: 1, count: 1000))).status == 200)
    #expect(try client.send(HTTPCall("POST", url, body: [UInt8](repeating: 1, count: 1001))).status == 413)
    #expect(try client.send(HTTPCall("POST", url, body: [UInt8](repeating: 1, count: 4 << 20))).status == 413)
    let chunked = try #require(RawSocket.connect(port: server.port))
    #expect(chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"))
    for _ in 0..<3 { #expect(chunked.send("1f4\r\n" + String(repeating: "x", count: 500) + "\r\n")) }
    #expect(chunked.send("0\r\n\r\n"))
    #expect(chunked.readToEnd().hasPrefix("HTTP/1.1 413"))
    let polite = try #require(RawSocket.connect(port: server.port))
    #expect(polite.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n"))
    #expect(polite.readToEnd().hasPrefix("HTTP/1.1 413"))
  }

  @Test func headersBeyondTheLimitAreRefused() throws {
    let server = try HTTPServer(.init(maxHeader: 4096), handler: echo)
    let answer = try client.send(
      HTTPCall(
        "GET", "http://127.0.0.1:\(server.port)/", headers: [("x-long", String(repeating: "a", count: 8000))]))
    #expect(answer.status == 431)
  }

  @Test func waitingHandlersDoNotStarveOthers() throws {
    let gate = Gate()
    let server = try HTTPServer(.init()) { request in
      if request.path == ["wait"] { gate.pass() }
      return HTTPResponse(status: 200)
    }
    let url = "http://127.0.0.1:\(server.port)/"
    let waiting = onThreads(100) { [client] _ in try? client.send(HTTPCall("GET", url + "wait")).status }
    gate.awaitArrivals(100)
    for _ in 0..<50 { #expect(try client.send(HTTPCall("GET", url)).status == 200) }
    #expect(server.requestsInHand >= 100)
    gate.open()
    #expect(waiting.wait() == Array(repeating: 200, count: 100))
  }

  @Test func drippingClientIsCutWhereverItIs() throws {
    let server = try HTTPServer(.init(idleSeconds: 60, transferSeconds: 0.2), handler: echo)
    for opening in ["", "GET / HTTP/1.1\r\nx-a: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"] {
      let raw = try #require(RawSocket.connect(port: server.port))
      #expect(raw.send(opening.isEmpty ? "G" : opening))
      // Returns only when the server has closed: each byte comes well within the idle time.
      raw.drip(UInt8(ascii: "E"), everyMilliseconds: 20)
    }
    #expect(try client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/")).status == 200)
    #expect(server.stop(within: 5))
  }

  @Test func aSlowHandlerIsNotCut() throws {
    let gate = Gate()
    let server = try HTTPServer(.init(transferSeconds: 0.1)) { request in
      if request.path == ["slow"] { gate.pass() }
      return HTTPResponse(status: 200)
    }
    let slow = onThreads(1) { [client] _ in
      try? client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/slow")).status
    }
    gate.awaitArrivals(1)
    // Another connection that the watch does cut shows that the watch has been round meanwhile.
    let raw = try #require(RawSocket.connect(port: server.port))
    raw.drip(UInt8(ascii: "G"), everyMilliseconds: 20)
    gate.open()
    #expect(slow.wait() == [200])
  }

  @Test func stopLetsRequestsInHandFinish() throws {
    let gate = Gate()
    let server = try HTTPServer(.init()) { _ in
      gate.pass()
      return HTTPResponse(status: 200, body: Array("done".utf8))
    }
    let url = "http://127.0.0.1:\(server.port)/"
    let inHand = onThreads(5) { [client] _ in try? client.send(HTTPCall("GET", url)) }
    gate.awaitArrivals(5)
    let stopped = onThreads(1) { _ in server.stop(within: 30) }
    // Once it stops, nothing new gets in.
    while RawSocket.connect(port: server.port) != nil {}
    gate.open()
    #expect(inHand.wait().map { $0?.body ?? [] } == Array(repeating: Array("done".utf8), count: 5))
    #expect(stopped.wait() == [true])
    #expect(throws: HTTPClientError.self) { try client.send(HTTPCall("GET", url)) }
  }

  @Test func stopIsBoundedWhenAHandlerHangs() throws {
    let gate = Gate()
    let server = try HTTPServer(.init()) { _ in
      gate.pass()
      return HTTPResponse(status: 200)
    }
    let hanging = onThreads(1) { [client] _ in
      (try? client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/")).status) ?? -1
    }
    gate.awaitArrivals(1)
    #expect(!server.stop(within: 0.05))
    #expect(hanging.wait() == [-1])
    gate.open()
    #expect(server.stop(within: 0))
  }

  @Test func whatCannotBeBoundIsNamed() throws {
    let server = try HTTPServer(.init(), handler: echo)
    #expect(throws: HTTPServerError.bind(address: "127.0.0.1", port: server.port, reason: "Address already in use")) {
      try HTTPServer(.init(port: server.port), handler: echo)
    }
    #expect(throws: HTTPServerError.self) { try HTTPServer(.init(address: "not an address"), handler: echo) }
    #expect(throws: HTTPServerError.tlsFile(path: "/nowhere/a.pem", reason: "No such file or directory")) {
      try HTTPServer(.init(tls: .init(certificatePath: "/nowhere/a.pem", keyPath: "/nowhere/b.pem")), handler: echo)
    }
  }

  @Test func aHeaderWithALineBreakIsNotSent() throws {
    let server = try HTTPServer(.init()) { _ in
      HTTPResponse(status: 200, headers: HTTPHeaders([.init(name: "x-a", value: "1\r\nx-b: 2")]))
    }
    let answer = try client.send(HTTPCall("GET", "http://127.0.0.1:\(server.port)/"))
    #expect(answer.status == 500)
    #expect(answer.header("x-b") == nil)
  }

  @Test func manyClientsOverManyConnections() throws {
    let server = try HTTPServer(.init(), handler: echo)
    let url = "http://127.0.0.1:\(server.port)/"
    let results = onThreads(32) { [client] index in
      (0..<50).allSatisfy { round in
        let body = Array("\(index) \(round)".utf8)
        return (try? client.send(HTTPCall("POST", url, body: body)).body) == body
      }
    }
    #expect(results.wait().allSatisfy { $0 })
    #expect(server.stop(within: 10))
  }

  @Test func connectionsBeyondTheLimitDoNotDisturbThoseWithin() throws {
    let server = try HTTPServer(.init(maxConnections: 2), handler: echo)
    let first = try #require(RawSocket.connect(port: server.port))
    let second = try #require(RawSocket.connect(port: server.port))
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    for raw in [first, second] {
      #expect(raw.send(request))
      #expect(raw.readHead().hasPrefix("HTTP/1.1 200"))
    }
    let third = try #require(RawSocket.connect(port: server.port))
    _ = third.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    #expect(third.readToEnd() == "")
    for raw in [first, second] {
      #expect(raw.send(request))
      #expect(raw.readHead().hasPrefix("HTTP/1.1 200"))
    }
  }
}
