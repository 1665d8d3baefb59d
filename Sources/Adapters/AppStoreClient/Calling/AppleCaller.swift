import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient

/// Calls one of Apple's hosts: through a circuit breaker, and with the answer's status told apart from its absence.
struct AppleCaller: Sendable {
  enum Failure: Error, Sendable, Hashable {
    /// Too many failures in a row: nobody calls until then.
    case paused(until: Instant)
    case unreachable(String)
    case redirected(Int)
  }

  let host: AppleHost
  let http: HTTPClient
  let breaker: CircuitBreaker
  let clock: any Clock
  let alarms: StoreAlarms

  /// Hands the answer to `judge`, which says whether it is one that a working server gives.
  func send<Result>(
    _ call: HTTPCall, place: String, judge: (HTTPAnswer) -> (isWell: Bool, Result)
  ) throws(Failure) -> Result {
    let ticket: CircuitBreaker.Ticket
    switch breaker.admit(clock.now()) {
    case .go(let found): ticket = found
    case .wait(let until): throw .paused(until: until)
    }
    let answer: HTTPAnswer
    do { answer = try http.send(call) } catch {
      failed(ticket, place, error.description)
      throw .unreachable(error.description)
    }
    guard !(300...399).contains(answer.status) else {
      alarms(StoreAlarm(.redirected, at(place), "status \(answer.status); it is not followed"))
      failed(ticket, place, "redirected")
      throw .redirected(answer.status)
    }
    let (isWell, result) = judge(answer)
    if isWell { breaker.succeeded() } else { failed(ticket, place, "status \(answer.status)") }
    return result
  }

  func at(_ place: String) -> String { "\(host.url) \(place)" }

  private func failed(_ ticket: CircuitBreaker.Ticket, _ place: String, _ reason: String) {
    guard breaker.failed(ticket, clock.now()), let until = breaker.pausedUntil(clock.now()) else { return }
    alarms(StoreAlarm(.outage, at(place), "\(reason); no calls until \(until)"))
  }
}

extension HTTPAnswer {
  /// What the body is by its looks, for a message; never what is in it.
  var looks: String {
    guard !body.isEmpty else { return "an empty body" }
    let start = body.prefix(64).drop { $0 <= 0x20 }
    if start.first == UInt8(ascii: "<") { return "a web page" }
    if start.first == UInt8(ascii: "{") { return "JSON that is cut or broken (\(body.count) bytes)" }
    return "no JSON (\(body.count) bytes)"
  }
}
