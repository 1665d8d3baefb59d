import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer

/// From request to answer. Each route has a fixed name, which is all of a path that metrics and logs see.
struct Routes: Sendable {
  let intake: EventIntake
  let permits: PermitQueries?
  let accounts: AccountQueries?
  let products: ProductQueries?
  let tokens: BearerTokens
  let clock: any Clock
  let probes: Gateway.Probes

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    let (route, answer) = route(request)
    probes.answered(
      Gateway.Answered(
        route: route, status: answer.response.status, accepted: answer.accepted, refused: answer.refused))
    return answer.response
  }

  private func route(_ request: HTTPRequest) -> (String, Answer) {
    let path = request.path
    switch path.first {
    case "livez" where path.count == 1: return ("/livez", reading(request, health))
    case "readyz" where path.count == 1: return ("/readyz", reading(request, readiness))
    case "metrics" where path.count == 1: return ("/metrics", reading(request, metrics))
    case "v1" where path.count >= 2: break
    default: return ("none", notFound)
    }
    switch (path[1], path.count) {
    case ("notifications", 2):
      return ("/v1/notifications", posting(request) { intake.notification(request) })
    case ("events", 2):
      return ("/v1/events", admitted(request) { posting(request) { events(request) } })
    case ("permits", 4):
      return ("/v1/permits?transaction", admitted(request) { reading(request) { permitByTransaction(request) } })
    case ("permits", 5):
      return ("/v1/permits", admitted(request) { reading(request) { permitByProof(request) } })
    case ("answers", 5):
      return ("/v1/answers", admitted(request) { reading(request) { requestAnswer(request) } })
    case ("accounts", 5) where path[4] == "ledger":
      return ("/v1/accounts/ledger", admitted(request) { reading(request) { ledger(request) } })
    case ("accounts", 4):
      return ("/v1/accounts", admitted(request) { reading(request) { account(request) } })
    case ("products", 2):
      return ("/v1/products", admitted(request) { reading(request) { products(request) } })
    default: return ("none", notFound)
    }
  }

  // MARK: Events

  private func events(_ request: HTTPRequest) -> Answer {
    switch request.contentType {
    case "application/json":
      answering { () throws(Refusal) in
        let wait = try waitSeconds(request)
        return intake.event(request, waitSeconds: wait)
      }
    case "application/x-ndjson": intake.lines(request)
    default:
      .problem(
        415, "Unsupported Media Type", field: "content-type",
        reason: "must be application/json for one event or application/x-ndjson for one a line")
    }
  }

  // MARK: Answers

  private func permitByProof(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let (environment, account, permits) = try asked(request, permits)
      let proof = request.path[4]
      guard !proof.isEmpty, proof.utf8.count <= Self.maximumProofKeyBytes else {
        throw Refusal(.badRequest(field: "proof", "must be a digest in hex, or attempt: and an attempt's id"))
      }
      let wait = try waitSeconds(request)
      return try stored { () throws(StoreFailure) in
        let key = Self.isHex(proof) ? proof.lowercased() : proof
        return answer(try permits.permit(environment, account, proof: key, waitSeconds: wait), proof: key)
      }
    }
  }

  private func permitByTransaction(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let (environment, account, permits) = try asked(request, permits)
      guard let transaction = request.queryValue("transaction").flatMap({ TransactionID($0) }) else {
        throw Refusal(.badRequest(field: "transaction", "must be a transaction id"))
      }
      let wait = try waitSeconds(request)
      return try stored { () throws(StoreFailure) in
        answer(try permits.permit(environment, account, transaction: transaction, waitSeconds: wait), proof: nil)
      }
    }
  }

  /// Nothing known yet is pending as well: the event may be on its way through the stages.
  private func answer(_ permit: PermitRow?, proof: String?) -> Answer {
    .json(200) { json in
      if let permit {
        permit.writeMembers(&json)
      } else {
        json.field("proof", proof)
        json.field("status", "pending")
      }
    }
  }

  /// What became of a spend, a claim or an order. 409 where `asked` says something else than what was asked first.
  private func requestAnswer(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let (environment, account, permits) = try asked(request, permits)
      let name = request.path[4]
      guard !name.isEmpty, name.utf8.count <= Self.maximumRequestBytes else {
        throw Refusal(
          .badRequest(field: "request", "must be spend:, claim: or order: and the id that the request was sent with"))
      }
      let wait = try waitSeconds(request)
      let found = try stored { () throws(StoreFailure) in
        try permits.answer(environment, account, name, waitSeconds: wait)
      }
      let isConflict = request.queryValue("asked").map { found?.isConflict(with: $0) ?? false } ?? false
      return .json(isConflict ? 409 : 200) { json in
        json.field("request", name)
        if isConflict { json.field("conflict", AnswerText.conflict) }
        if let found {
          found.write(&json)
        } else {
          json.field("outcome", "pending")
        }
      }
    }
  }

  private func account(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let (environment, account, accounts) = try asked(request, accounts)
      let withChains: Bool
      switch request.queryValue("chains") {
      case nil, "false": withChains = false
      case "true": withChains = true
      default: throw Refusal(.badRequest(field: "chains", "must be true or false"))
      }
      let instant = try request.queryValue("at").map { text throws(Refusal) in
        guard let instant = Instant(rfc3339: text) else {
          throw Refusal(.badRequest(field: "at", "must be a time as RFC 3339 writes it"))
        }
        return instant
      }
      return try stored { () throws(StoreFailure) in
        try accounts.write(environment, account, at: instant, now: clock.now(), withChains: withChains)
      }
    }
  }

  private func products(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let environment = try environment(request.queryValue("environment") ?? Environment.production.rawValue)
      guard let products else { throw Self.storeless }
      let ids = request.query.filter { $0.name == "id" }.map(\.value)
      return try stored { () throws(StoreFailure) in
        guard let answer = try products.answer(ids.isEmpty ? nil : ids, in: environment, at: clock.now()) else {
          return .unavailable("no entitlements stage has kept a catalogue in the store yet")
        }
        return .json(200) { answer.write(&$0) }
      }
    }
  }

  private func ledger(_ request: HTTPRequest) -> Answer {
    answering { () throws(Refusal) in
      let (environment, account, accounts) = try asked(request, accounts)
      var after: Int64 = 0
      if let text = request.queryValue("after") {
        guard let version = Int64(text), version >= 0 else {
          throw Refusal(.badRequest(field: "after", "must be the version of a line"))
        }
        after = version
      }
      return try stored { () throws(StoreFailure) in try accounts.ledger(environment, account, after: after) }
    }
  }

  // MARK: Health

  private func health() -> Answer {
    probes.dead().map { .text(503, [$0]) } ?? .text(200, ["ok"])
  }

  private func readiness() -> Answer {
    let reasons = probes.unready()
    return reasons.isEmpty ? .text(200, ["ready"]) : .text(503, reasons)
  }

  private func metrics() -> Answer {
    Answer(
      HTTPResponse(
        status: 200, contentType: "text/plain; version=0.0.4; charset=utf-8", body: Array(probes.metrics().utf8)))
  }

  // MARK: Pieces

  /// `attempt:` and the longest id of an attempt.
  private static let maximumProofKeyBytes = 8 + 1024

  /// `order:`, `claim:` or `spend:` and the longest id.
  private static let maximumRequestBytes = 6 + 1024

  private static func isHex(_ text: String) -> Bool {
    text.utf8.count == 64
      && text.utf8.allSatisfy { byte in
        (byte >= 0x30 && byte <= 0x39) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66)
      }
  }

  /// An answer in place of the one that was asked for.
  private struct Refusal: Error {
    let answer: Answer
    init(_ answer: Answer) { self.answer = answer }
  }

  private func answering(_ body: () throws(Refusal) -> Answer) -> Answer {
    do {
      return try body()
    } catch {
      return error.answer
    }
  }

  private func stored<Read>(_ body: () throws(StoreFailure) -> Read) throws(Refusal) -> Read {
    do {
      return try body()
    } catch {
      throw Refusal(.unavailable("the store cannot be read (\(error.kind.rawValue))"))
    }
  }

  private func asked<Queries>(
    _ request: HTTPRequest, _ queries: Queries?
  ) throws(Refusal) -> (Environment, Account, Queries) {
    let environment = try environment(request.path[2])
    guard let account = Account(request.path[3]) else {
      throw Refusal(
        .badRequest(
          field: "account",
          "must be 1 to \(IdentifierRule.maximumBytes) bytes without spaces, control characters or '/'"))
    }
    guard let queries else { throw Self.storeless }
    return (environment, account, queries)
  }

  private static var storeless: Refusal {
    Refusal(.problem(501, "Not Implemented", reason: "this gateway has no store to answer from"))
  }

  private func environment(_ text: String) throws(Refusal) -> Environment {
    guard let environment = Environment(rawValue: text) else {
      let names = Environment.allCases.map(\.rawValue).joined(separator: ", ")
      throw Refusal(.badRequest(field: "environment", "must be one of \(names)"))
    }
    return environment
  }

  private func waitSeconds(_ request: HTTPRequest) throws(Refusal) -> Double {
    guard let text = request.queryValue("wait") else { return 0 }
    guard let seconds = Double(text), seconds.isFinite, seconds >= 0 else {
      throw Refusal(.badRequest(field: "wait", "must be a number of seconds"))
    }
    return seconds
  }

  private func admitted(_ request: HTTPRequest, _ body: () -> Answer) -> Answer {
    if tokens.admit(request) { return body() }
    var answer = Answer.problem(401, "Unauthorized", reason: "the bearer token is missing or wrong")
    answer.response.headers.add("www-authenticate", "Bearer")
    return answer
  }

  private func reading(_ request: HTTPRequest, _ body: () -> Answer) -> Answer {
    request.method == "GET" || request.method == "HEAD" ? body() : notAllowed("GET, HEAD")
  }

  private func posting(_ request: HTTPRequest, _ body: () -> Answer) -> Answer {
    request.method == "POST" ? body() : notAllowed("POST")
  }

  private func notAllowed(_ methods: String) -> Answer {
    var answer = Answer.problem(405, "Method Not Allowed", reason: "this path takes \(methods)")
    answer.response.headers.add("allow", methods)
    return answer
  }

  private var notFound: Answer { .problem(404, "Not Found", reason: "there is nothing at this path") }
}
