import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// What is done where it can't be told whether a certificate has been revoked.
public enum RevocationPolicy: String, Sendable, Hashable, CaseIterable {
  /// Nobody is asked.
  case off
  /// The proof counts, and its evidence says that nobody answered.
  case soft
  /// The proof waits until somebody answers.
  case hard
}

/// What is known of revocation while a proof is judged.
public struct RevocationCheck {
  enum Knowledge {
    /// The time of the judgement: only a certificate that is valid then is asked about. Responders forget those that have
    /// run out, and clients resend proofs of years ago.
    case asked(now: Instant, answer: (AppStoreQuestion) -> AppStoreAnswer?)
    /// The evidence of an earlier verdict on the same proof.
    case recorded(JSON)
  }

  let knowledge: Knowledge

  public init(now: Instant, answer: @escaping (AppStoreQuestion) -> AppStoreAnswer?) {
    knowledge = .asked(now: now, answer: answer)
  }

  /// What an earlier verdict was decided on.
  public init(recorded evidence: JSON) { knowledge = .recorded(evidence) }

  /// The same of a proof inside a notification.
  func inside(_ path: String) -> RevocationCheck {
    guard case .recorded(let evidence) = knowledge else { return self }
    return RevocationCheck(recorded: evidence["nested"]?[path] ?? .null)
  }
}

extension JudgedChain {
  /// The questions about the chain's certificates, leaf first. A pinned certificate has no issuer to ask.
  func revocationQuestions(now: Instant) -> [(certificate: Certificate, issuer: Certificate)] {
    revocationPairs.filter { $0.certificate.isValid(at: now.milliseconds) }
  }

  fileprivate var revocationPairs: [(certificate: Certificate, issuer: Certificate)] {
    guard let intermediate, let anchor = anchors.first else { return [] }
    return [(leaf, intermediate), (intermediate, anchor)]
  }
}

extension ProofJudge {
  /// What Apple's responders must be asked before this proof can be judged. Only of chains that lead to a trusted anchor: the
  /// address that a certificate names is then Apple's own.
  ///
  /// - Parameter isNotification: then there are proofs inside it, which stand under chains of their own.
  public func revocationQuestions(
    _ proof: [UInt8], isNotification: Bool, now: Instant
  ) -> [AppStoreQuestion] {
    guard settings.revocation != .off, let jws = try? CompactJWS.split(proof),
      let (result, _) = try? inspect(jws), case .success(let inspected) = result
    else { return [] }
    var questions = inspected.chain.revocationQuestions(now: now).map {
      AppStoreQuestion.revocation($0.certificate, $0.issuer)
    }
    // The proofs inside a notification stand under chains of their own.
    guard let document = try? JSONDocument(parsing: jws.payload), document.root.kind == .object else {
      return questions
    }
    for (member, name) in Self.nestedProofs {
      if let nested = document.root[member]?[name]?.utf8 {
        questions += revocationQuestions(nested, isNotification: false, now: now)
      }
    }
    return questions
  }

  private static let nestedProofs = [
    ("data", "signedTransactionInfo"), ("data", "signedRenewalInfo"), ("appData", "signedAppTransactionInfo"),
  ]

  func checkRevocation(of chain: JudgedChain, _ asked: Asked, evidence: inout Evidence) throws(Halt) {
    guard let check = asked.revocation, chain.intermediate != nil else { return }
    switch check.knowledge {
    case .recorded(let earlier): try checkRecorded(earlier, of: chain, evidence: &evidence)
    case .asked(let now, let answer):
      guard settings.revocation != .off else { return }
      try ask(answer, now: now, of: chain, evidence: &evidence)
    }
  }

  private func ask(
    _ answer: (AppStoreQuestion) -> AppStoreAnswer?, now: Instant, of chain: JudgedChain, evidence: inout Evidence
  ) throws(Halt) {
    let questions = chain.revocationQuestions(now: now)
    guard !questions.isEmpty else {
      evidence.revocation = Self.notAsked("the certificates have run out, and responders forget such")
      return
    }
    let told = questions.map { certificate, issuer in
      (certificate, Told(answer(.revocation(certificate, issuer)), about: certificate, issuer))
    }
    evidence.revocation = .array(told.map { $1.json(of: $0) })
    if told.contains(where: { $1.isRevoked }) { throw .refused(.chain(.revoked), field: nil) }
    guard settings.revocation == .hard, told.contains(where: { !$1.isGood }) else { return }
    throw .waiting(.revocationUnknown, until: now.advanced(byMilliseconds: ParkingPause.longest))
  }

  /// Decides by what an earlier verdict was decided on. What it does not prove of this chain's certificates is left out, by
  /// which it shows.
  private func checkRecorded(_ earlier: JSON, of chain: JudgedChain, evidence: inout Evidence) throws(Halt) {
    guard let told = earlier["revocation"] else { return }
    guard let answers = told.array else {
      if told["answer"]?.string == "not-asked" { evidence.revocation = told }
      return
    }
    let pairs = chain.revocationPairs
    let known = answers.filter { answer in
      guard let (certificate, issuer) = pairs.first(where: { $0.0.fingerprint.hex == answer["certificate"]?.string })
      else { return false }
      return Told.isProven(answer, of: certificate, issuer)
    }
    evidence.revocation = .array(known)
    if known.contains(where: { $0["answer"]?.string == Told.revoked }) {
      throw .refused(.chain(.revoked), field: nil)
    }
  }

  /// What one certificate's responder said, or why that is nothing.
  private enum Told {
    case answered(RevocationAnswer, body: [UInt8])
    case nothing(String)

    init(_ answer: AppStoreAnswer?, about certificate: Certificate, _ issuer: Certificate) {
      switch answer {
      case .given(let response):
        do throws(RevocationFailure) {
          let answer = try RevocationAnswer(
            reading: response.body, about: certificate, issuer: issuer, at: response.at.milliseconds)
          self = .answered(answer, body: response.body)
        } catch { self = .nothing(error.rawValue) }
      case .unavailable(let reason): self = .nothing(reason)
      case nil: self = .nothing("not asked")
      }
    }

    var isRevoked: Bool {
      if case .answered(let answer, _) = self, case .revoked = answer.status { true } else { false }
    }
    var isGood: Bool { if case .answered(let answer, _) = self, case .good = answer.status { true } else { false } }

    func json(of certificate: Certificate) -> JSON {
      var members: [(String, JSON)] = [("certificate", .string(certificate.fingerprint.hex))]
      switch self {
      case .answered(let answer, let body):
        members.append(("answer", .string(answer.status.code)))
        if case .revoked(let since) = answer.status { members.append(("revokedAt", .integer(since))) }
        members += [
          ("thisUpdate", .integer(answer.thisUpdate)), ("nextUpdate", .integer(answer.nextUpdate)),
          ("response", .string(SHA256.digest(body).hex)),
        ]
        // It decides the verdict: whoever judges again has the responder's own signature on it.
        if isRevoked { members.append(("body", .string(Base64.encode(body)))) }
      case .nothing(let why): members += [("answer", .string("none")), ("why", .string(why))]
      }
      return .object(JSONObject(members))
    }

    static let revoked = "revoked"

    /// Whether a recorded answer says what it is recorded to say. One that revokes is signed; before the evidence held the
    /// signature, its word was all there was.
    static func isProven(_ recorded: JSON, of certificate: Certificate, _ issuer: Certificate) -> Bool {
      guard let text = recorded["body"]?.string else { return true }
      guard let body = Base64.decode(Array(text.utf8)), let at = recorded["thisUpdate"]?.int64 else { return false }
      let answer = AppStoreAnswer.given(AppStoreResponse(body: body, at: Instant(milliseconds: at)))
      return Told(answer, about: certificate, issuer).json(of: certificate) == recorded
    }
  }

  static func notAsked(_ why: String) -> JSON { .object(["answer": .string("not-asked"), "why": .string(why)]) }
}

extension AppStoreQuestion {
  static func revocation(_ certificate: Certificate, _ issuer: Certificate) -> AppStoreQuestion {
    .revocation(of: certificate.der, issuer: issuer.der)
  }
}

extension RevocationAnswer.Status {
  fileprivate var code: String {
    switch self {
    case .good: "good"
    case .revoked: "revoked"
    case .unknown: "unknown"
    }
  }
}
