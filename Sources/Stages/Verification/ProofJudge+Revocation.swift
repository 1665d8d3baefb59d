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
  /// The time of the judgement: only a certificate that is valid now is asked about. Responders forget those that have run
  /// out, and clients resend proofs of years ago.
  public let now: Instant
  let answer: (AppStoreQuestion) -> AppStoreAnswer?

  public init(now: Instant, answer: @escaping (AppStoreQuestion) -> AppStoreAnswer?) {
    self.now = now
    self.answer = answer
  }
}

extension JudgedChain {
  /// The questions about the chain's certificates, leaf first. A pinned certificate has no issuer to ask.
  func revocationQuestions(now: Instant) -> [(certificate: Certificate, issuer: Certificate)] {
    guard let intermediate, let anchor = anchors.first else { return [] }
    return [(leaf, intermediate), (intermediate, anchor)].filter { $0.0.isValid(at: now.milliseconds) }
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
    guard settings.revocation != .off, let check = asked.revocation, chain.intermediate != nil else { return }
    let questions = chain.revocationQuestions(now: check.now)
    guard !questions.isEmpty else {
      evidence.revocation = Self.notAsked("the certificates have run out, and responders forget such")
      return
    }
    let told = questions.map { certificate, issuer in
      (certificate, Told(check.answer(.revocation(certificate, issuer)), about: certificate, issuer))
    }
    evidence.revocation = .array(told.map { $1.json(of: $0) })
    if told.contains(where: { $1.isRevoked }) { throw .refused(.chain(.revoked), field: nil) }
    guard settings.revocation == .hard, told.contains(where: { !$1.isGood }) else { return }
    throw .waiting(.revocationUnknown, until: check.now.advanced(byMilliseconds: ParkingPause.longest))
  }

  /// What one certificate's responder said, or why that is nothing.
  private enum Told {
    case answered(RevocationAnswer, digest: String)
    case nothing(String)

    init(_ answer: AppStoreAnswer?, about certificate: Certificate, _ issuer: Certificate) {
      switch answer {
      case .given(let response):
        do throws(RevocationFailure) {
          let answer = try RevocationAnswer(
            reading: response.body, about: certificate, issuer: issuer, at: response.at.milliseconds)
          self = .answered(answer, digest: SHA256.digest(response.body).hex)
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
      case .answered(let answer, let digest):
        members.append(("answer", .string(answer.status.code)))
        if case .revoked(let since) = answer.status { members.append(("revokedAt", .integer(since))) }
        members += [
          ("thisUpdate", .integer(answer.thisUpdate)), ("nextUpdate", .integer(answer.nextUpdate)),
          ("response", .string(digest)),
        ]
      case .nothing(let why): members += [("answer", .string("none")), ("why", .string(why))]
      }
      return .object(JSONObject(members))
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
