import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPClient
import Synchronization

/// Asks the responders that certificates name whether they have been revoked. An answer is kept until it or its certificate runs
/// out, and renewed in the second half of its life, so that an outage in between is not noticed. Safe to share between threads; blocks.
public final class Responders: AppStore {
  public struct Settings: Sendable, Hashable {
    /// For one question, in seconds. Two are asked about a chain, in the midst of a batch, while the group waits.
    public var totalSeconds: Double
    public var breaker: CircuitBreaker.Settings

    public static let defaultTotalSeconds = 3.0
    /// Whoever asks a responder that does not answer waits for each question.
    public static let defaultBreaker = CircuitBreaker.Settings(failures: 3, firstPause: 10_000)

    public init(
      totalSeconds: Double = Self.defaultTotalSeconds, breaker: CircuitBreaker.Settings = Self.defaultBreaker
    ) {
      self.totalSeconds = totalSeconds
      self.breaker = breaker
    }
  }

  /// Answers that are kept, and responders that are watched: Apple signs with a handful of certificates at a time.
  public static let capacity = 256

  private struct Kept {
    let response: AppStoreResponse
    /// Milliseconds since 1970.
    let renewAfter: Int64
    let until: Int64
  }

  private struct Pair: Hashable {
    let certificate: Hash256
    let issuer: Hash256
  }

  private struct State {
    var kept: [Pair: Kept] = [:]
    /// Oldest first.
    var order: [Pair] = []
    /// By host.
    var breakers: [String: CircuitBreaker] = [:]
  }

  private let http: HTTPClient
  private let settings: Settings
  private let clock: any Clock
  private let state = Mutex(State())

  public init(http: HTTPClient, settings: Settings = Settings(), clock: any Clock) {
    self.http = http
    self.settings = settings
    self.clock = clock
  }

  public func answers(to questions: [AppStoreQuestion]) -> [AppStoreQuestion: AppStoreAnswer] {
    var answers: [AppStoreQuestion: AppStoreAnswer] = [:]
    for question in questions where answers[question] == nil {
      guard case .revocation(let certificate, let issuer) = question else { continue }
      answers[question] = answer(about: certificate, issuer: issuer)
    }
    return answers
  }

  private func answer(about der: [UInt8], issuer issuerDER: [UInt8]) -> AppStoreAnswer {
    let certificate: Certificate
    let issuer: Certificate
    do throws(CertificateError) {
      certificate = try Certificate(der: der)
      issuer = try Certificate(der: issuerDER)
    } catch { return .unavailable("a certificate can't be read: \(error.rawValue)") }
    let pair = Pair(certificate: certificate.fingerprint, issuer: issuer.fingerprint)
    let now = clock.now().milliseconds
    let kept = state.withLock { $0.kept[pair] }.flatMap { $0.until >= now ? $0 : nil }
    if let kept, now < kept.renewAfter { return .given(kept.response) }
    switch ask(about: certificate, issuer, now: now) {
    case .success(let fresh):
      // What is not known now may be known in a minute.
      if fresh.isKept { keep(fresh.kept, pair) }
      return .given(fresh.kept.response)
    case .failure(let failure): return kept.map { .given($0.response) } ?? .unavailable(failure.reason)
    }
  }

  private struct Failure: Error { let reason: String }

  private func ask(
    about certificate: Certificate, _ issuer: Certificate, now: Int64
  ) -> Result<(kept: Kept, isKept: Bool), Failure> {
    guard let url = OCSP.responders(of: certificate).first else {
      return .failure(Failure(reason: "the certificate names no responder"))
    }
    let host = String(url.dropFirst("http://".count).prefix { $0 != "/" })
    let breaker = breaker(of: host)
    guard case .go(let ticket) = breaker.admit(Instant(milliseconds: now)) else {
      return .failure(Failure(reason: "\(host) has failed again and again, and is left alone for a while"))
    }
    do {
      let fresh = try exchange(url, host, certificate, issuer, now: now)
      breaker.succeeded()
      return .success(fresh)
    } catch {
      breaker.failed(ticket, clock.now())
      return .failure(error)
    }
  }

  private func breaker(of host: String) -> CircuitBreaker {
    state.withLock { state in
      if let known = state.breakers[host] { return known }
      if state.breakers.count >= Self.capacity { state.breakers.removeAll() }
      let breaker = CircuitBreaker(settings.breaker)
      state.breakers[host] = breaker
      return breaker
    }
  }

  private func exchange(
    _ url: String, _ host: String, _ certificate: Certificate, _ issuer: Certificate, now: Int64
  ) throws(Failure) -> (kept: Kept, isKept: Bool) {
    let call = HTTPCall(
      "POST", url, headers: [("Content-Type", "application/ocsp-request"), ("Accept", "application/ocsp-response")],
      body: OCSP.request(about: certificate, issuer: issuer), totalSeconds: settings.totalSeconds)
    let answer: HTTPAnswer
    do throws(HTTPClientError) { answer = try http.send(call) } catch { throw Failure(reason: "\(host): \(error)") }
    guard answer.status == 200 else { throw Failure(reason: "\(host) answered with status \(answer.status)") }
    do throws(RevocationFailure) {
      let read = try RevocationAnswer(reading: answer.body, about: certificate, issuer: issuer, at: now)
      let response = AppStoreResponse(body: answer.body, at: Instant(milliseconds: now))
      let until = min(read.nextUpdate, certificate.notAfter)
      let kept = Kept(response: response, renewAfter: now + (until - now) / 2, until: until)
      return (kept, read.status != .unknown)
    } catch { throw Failure(reason: "\(host) gave an answer that says nothing: \(error.rawValue)") }
  }

  private func keep(_ kept: Kept, _ pair: Pair) {
    state.withLock { state in
      if state.kept.updateValue(kept, forKey: pair) == nil {
        state.order.append(pair)
        if state.order.count > Self.capacity { state.kept[state.order.removeFirst()] = nil }
      }
    }
  }
}
