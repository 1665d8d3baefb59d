import PurchasesContracts
import PurchasesGateway
import PurchasesHTTPServer
import PurchasesTestKit
import Testing

/// Accepted means durable (case C40).
@Suite(.timeLimit(.minutes(1)))
struct DurabilityTests {
  @Test(arguments: [LogFailure.Kind.unavailable, .refused, .aborted, .indefinite, .corrupt])
  func aFailedDeliveryIsNotAccepted(kind: LogFailure.Kind) throws {
    let gateway = try GatewayFixture()
    gateway.producer.set(.failing(LogFailure(kind, "broker kafka-7 of rack 3")))
    let notification = #"{"signedPayload":"\#(GatewayFixture.jws("{}"))"}"#
    for (path, body, type) in [
      ("/v1/events", GatewayFixture.purchased("1"), "application/json"),
      ("/v1/events", GatewayFixture.purchased("1"), "application/x-ndjson"),
      ("/v1/notifications", notification, "application/json"),
    ] {
      let answer = try gateway.send("POST", path, body, type: type)
      #expect(answer.status == 503)
      #expect(answer.answer.header("retry-after") == "5")
      #expect(!String(decoding: answer.answer.body, as: UTF8.self).contains("kafka-7"))
    }
    gateway.producer.set(.accepting)
    #expect(try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status == 202)
    #expect(try gateway.send("POST", "/v1/notifications", notification).status == 200)
    #expect(gateway.producer.records.count == 2)
  }

  @Test func nothingIsAnsweredBeforeTheReport() throws {
    let gateway = try GatewayFixture()
    gateway.producer.set(.holding)
    let running = onThreads(1) { _ in try? gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status }
    gateway.producer.awaitBatch()
    gateway.producer.set(.failing(LogFailure(.unavailable, "")))
    #expect(running.wait() == [503])
  }

  @Test func aReportThatNeverComesIsUnavailable() throws {
    let gateway = try GatewayFixture(deliverySeconds: 0.05)
    gateway.producer.set(.holding)
    #expect(try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status == 503)
    // Its report comes later than the answer: nothing breaks, and a retry is accepted with the same id.
    gateway.producer.set(.accepting)
    #expect(try gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status == 202)
    #expect(Set(gateway.producer.records.map { $0.record.headerText("ce_id") }).count == 1)
  }

  @Test func aDuplicateInFlightWaitsForItsOwnReport() throws {
    let gateway = try GatewayFixture()
    gateway.producer.set(.holding)
    let running = onThreads(2) { _ in try? gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status }
    gateway.producer.awaitBatch()
    gateway.producer.awaitBatch()
    gateway.producer.set(.accepting)
    #expect(running.wait() == [202, 202])
  }

  @Test func stopWaitsForReportsInHand() throws {
    let gateway = try GatewayFixture()
    gateway.producer.set(.holding)
    let requests = onThreads(20) { index in
      try? gateway.send("POST", "/v1/events", GatewayFixture.purchased("\(index)")).status
    }
    for _ in 0..<20 { gateway.producer.awaitBatch() }
    let stopped = onThreads(1) { _ in gateway.gateway.stop(within: 30) }
    gateway.producer.set(.accepting)
    #expect(requests.wait() == Array(repeating: 202, count: 20))
    #expect(stopped.wait() == [true])
    #expect(gateway.producer.records.count == 20)
  }

  @Test func whatIsCutAtTheBoundWasNotAnswered() throws {
    let gateway = try GatewayFixture()
    gateway.producer.set(.holding)
    let request = onThreads(1) { _ in
      (try? gateway.send("POST", "/v1/events", GatewayFixture.purchased("1")).status) ?? -1
    }
    gateway.producer.awaitBatch()
    #expect(!gateway.gateway.stop(within: 0.05))
    #expect(request.wait() == [-1])
    gateway.producer.set(.accepting)
  }

  @Test func aLongPollEndsWhenTheGatewayStops() throws {
    let gateway = try GatewayFixture()
    let poll = onThreads(1) { _ in
      try? gateway.send("GET", "/v1/permits/Production/u/x?wait=30").json?["status"]?.string
    }
    while gateway.store.reads == 0 {}
    #expect(gateway.gateway.stop(within: 30))
    #expect(poll.wait() == ["pending"])
  }

  @Test func theGatewayStartsUnprotectedOnLoopbackOnly() throws {
    let producer = InMemoryProducer()
    for address in ["0.0.0.0", "::", "10.0.0.1", "example.com", "127.0.0.1.example.com", "127.1"] {
      #expect(throws: GatewayError.unprotected(address: address)) {
        try Gateway(.init(http: .init(address: address)), producer: producer, store: nil, clock: FixedClock())
      }
    }
    for token in ["short", "with a space in its midst", "with-a-line-break\n1234"] {
      #expect(throws: GatewayError.token(position: 1)) {
        try Gateway(.init(tokens: [token]), producer: producer, store: nil, clock: FixedClock())
      }
    }
    let open = try Gateway(.init(), producer: producer, store: nil, clock: FixedClock())
    #expect(throws: GatewayError.self) {
      try Gateway(
        .init(http: .init(port: open.port)), producer: producer, store: nil, clock: FixedClock())
    }
    let all = try Gateway(
      .init(http: .init(address: "0.0.0.0"), tokens: [GatewayFixture.token]), producer: producer, store: nil,
      clock: FixedClock())
    #expect(all.port != 0)
  }
}
