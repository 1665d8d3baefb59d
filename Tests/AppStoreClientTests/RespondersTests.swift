import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPClient
import PurchasesHTTPServer
import PurchasesLocalAppStore
import PurchasesTestKit
import Testing

/// A responder over real sockets, and who asks it.
@Suite struct RespondersTests {
  private final class Place {
    let clock = ManualClock()
    let server: ResponderServer
    let authority: LocalAuthority
    let responders: Responders

    init(seconds: Double = 20, failures: Int = 2) throws {
      server = try ResponderServer(clock: clock)
      authority = LocalAuthority(seed: 5, responder: server.url)
      server.serve(authority)
      responders = Responders(
        http: HTTPClient(),
        settings: .init(
          totalSeconds: seconds, breaker: .init(failures: failures, firstPause: 1_000, longestPause: 4_000)),
        clock: clock)
    }

    deinit { server.stop(within: 5) }

    var leaf: AppStoreQuestion {
      .revocation(of: authority.authority.leaf.der, issuer: authority.authority.intermediate.der)
    }
    var intermediate: AppStoreQuestion {
      .revocation(of: authority.authority.intermediate.der, issuer: authority.authority.root.der)
    }

    func status(_ question: AppStoreQuestion) throws -> RevocationAnswer.Status? {
      guard case .revocation(let certificate, let issuer) = question,
        case .given(let response)? = responders.answers(to: [question])[question]
      else { return nil }
      return try RevocationAnswer(
        reading: response.body, about: Certificate(der: certificate), issuer: Certificate(der: issuer),
        at: clock.now().milliseconds
      ).status
    }

    func reason(_ question: AppStoreQuestion) -> String {
      guard case .unavailable(let reason)? = responders.answers(to: [question])[question] else { return "" }
      return reason
    }
  }

  @Test func bothCertificatesAreAskedAboutAndTheAnswersKept() throws {
    let place = try Place()
    for _ in 0..<3 {
      #expect(try place.status(place.leaf) == .good)
      #expect(try place.status(place.intermediate) == .good)
    }
    #expect(place.server.asked == 2, "an answer is good until it runs out")
  }

  @Test func anAnswerIsRenewedInTheSecondHalfOfItsLifeAndAnOutageThenIsNotNoticed() throws {
    let place = try Place()
    #expect(try place.status(place.leaf) == .good)
    place.clock.advance(milliseconds: ResponderServer.validity / 2 + 1_000)
    place.server.outages.add(.status(503))
    #expect(try place.status(place.leaf) == .good, "the old one holds still")
    #expect(place.server.asked == 2)
    place.server.set(
      .revoked(since: place.clock.now().milliseconds), ofSerial: place.authority.authority.leaf.serialHex)
    #expect(try place.status(place.leaf) == .revoked(since: place.clock.now().milliseconds / 1000 * 1000))
    place.clock.advance(milliseconds: ResponderServer.validity + 1_000)
    place.server.outages.add(.reset, times: 10)
    #expect(place.reason(place.leaf) != "", "what has run out says nothing any more")
  }

  @Test func anAnswerIsNotKeptBeyondItsCertificate() throws {
    let place = try Place()
    let end = LocalAuthority.validThrough
    place.clock.set(end.advanced(byMilliseconds: -1_000))
    #expect(try place.status(place.leaf) == .good)
    // The answer itself would hold for hours, and half of them without being asked for again.
    place.clock.set(end.advanced(byMilliseconds: 1_000))
    _ = place.reason(place.leaf)
    #expect(place.server.asked == 2)
  }

  @Test func onlySoManyAnswersAreKept() throws {
    let place = try Place()
    func ask(_ seed: UInt64) throws -> RevocationAnswer.Status? {
      let other = LocalAuthority(seed: seed, responder: place.server.url)
      place.server.serve(other)
      return try place.status(
        .revocation(of: other.authority.leaf.der, issuer: other.authority.intermediate.der))
    }
    let many = UInt64(Responders.capacity) + 1
    for seed in 0..<many { #expect(try ask(seed) == .good) }
    #expect(try ask(many - 1) == .good)
    #expect(place.server.asked == Int(many), "the newest is kept")
    #expect(try ask(0) == .good)
    #expect(place.server.asked == Int(many) + 1, "the oldest had to leave")
  }

  @Test(arguments: [
    (Outage.status(503), "status 503"), (.reset, "broke"), (.webPage, "malformed"), (.emptyObject, "malformed"),
    (.redirect(to: "http://127.0.0.1:1/"), "status 302"), (.tooManyRequests(retryAfter: "1"), "status 429"),
  ])
  func whatIsNoAnswerIsToldAsThat(outage: Outage, words: String) throws {
    let place = try Place()
    place.server.outages.add(outage)
    let reason = place.reason(place.leaf)
    #expect(reason.contains(words), "\(reason)")
    #expect(try place.status(place.leaf) == .good, "and asked again the next time")
  }

  @Test func aResponderThatHangsCostsItsTimeAndThenNothing() throws {
    let place = try Place(seconds: 0.2, failures: 2)
    place.server.outages.add(.hang(seconds: 600), times: 2)
    #expect(place.reason(place.leaf).contains("time"))
    #expect(place.reason(place.leaf).contains("time"))
    let asked = place.server.asked
    #expect(place.reason(place.leaf).contains("left alone"))
    #expect(place.server.asked == asked, "nobody was asked")
    place.clock.advance(milliseconds: 1_001)
    #expect(try place.status(place.leaf) == .good, "one question finds out that all is well")
  }

  /// What is not known now may be known in a minute.
  @Test func anUnknownCertificateIsAskedAboutEachTime() throws {
    let place = try Place()
    place.server.set(.unknown, ofSerial: place.authority.authority.leaf.serialHex)
    #expect(try place.status(place.leaf) == .unknown)
    place.server.set(.good, ofSerial: place.authority.authority.leaf.serialHex)
    #expect(try place.status(place.leaf) == .good)
  }

  @Test func aCertificateWithoutAResponderAndOneThatIsNone() throws {
    let place = try Place()
    let other = LocalAuthority(seed: 6).authority
    #expect(place.reason(.revocation(of: other.leaf.der, issuer: other.intermediate.der)).contains("no responder"))
    #expect(place.reason(.revocation(of: [1, 2], issuer: other.intermediate.der)).contains("can't be read"))
    #expect(place.server.asked == 0)
  }

  /// What the local App Store is told over HTTP, with no server of Apple's played beside the responder.
  @Test func outagesAndRevocationsAreToldOverHTTP() throws {
    let place = try Place()
    let store = try AppStoreServer(
      place.authority, settings: HTTPServer.Settings(), clock: place.clock, responder: place.server)
    defer { _ = store.stop(within: 5) }
    let client = HTTPClient()
    func tell(_ method: String, _ path: String, _ body: String? = nil) throws -> Int {
      try client.send(
        HTTPCall(method, "http://127.0.0.1:\(store.port)/v1/\(path)", body: body.map { Array($0.utf8) })
      ).status
    }
    #expect(try tell("POST", "outages", #"{"outage":"503","times":99,"path":"/ocsp"}"#) == 204)
    #expect(place.reason(place.leaf).contains("status 503"))
    #expect(try tell("DELETE", "outages") == 204)
    #expect(try place.status(place.leaf) == .good)
    #expect(try tell("POST", "revoked", #"{"serial":"\#(place.authority.authority.intermediate.serialHex)"}"#) == 204)
    #expect(try place.status(place.intermediate) != .good)
    #expect(try tell("POST", "revoked", "{}") == 400)
    #expect(try tell("POST", "outages", #"{"outage":"503","path":"/inApps"}"#) == 404, "nobody plays that here")
  }
}
