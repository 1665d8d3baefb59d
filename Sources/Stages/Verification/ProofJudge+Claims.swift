import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

extension ProofJudge {
  /// Judges what was signed, by the kind that its shape tells.
  func verified(
    _ opened: Opened, expecting expected: ProofKind?, _ asked: Asked, evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let kind = try Self.kind(of: opened.root, expecting: expected)
    let fields: Fields
    do { fields = try Fields(opened.root) } catch { throw .field(error) }
    switch kind {
    case .transaction: return try transaction(opened, fields, asked, &evidence)
    case .renewalInfo: return try renewal(opened, fields, asked, &evidence)
    case .appTransaction: return try appTransaction(opened, fields, asked, &evidence)
    case .notification: return try notification(opened, fields, asked, &evidence)
    // No JWS is one.
    case .appReceipt: throw .claim(.wrongKind)
    }
  }

  /// Apple's payloads don't say what they are; each kind has members that no other has. One that has none of them is
  /// taken for what was expected, so that its verdict names what it lacks.
  static func kind(of root: JSONView, expecting expected: ProofKind?) throws(Halt) -> ProofKind {
    let told: ProofKind?
    if root["notificationType"] != nil {
      told = .notification
    } else if root["receiptType"] != nil {
      told = .appTransaction
    } else if root["autoRenewProductId"] != nil || root["autoRenewStatus"] != nil {
      told = .renewalInfo
    } else if root["transactionId"] != nil || (root["productId"] != nil && root["purchaseDate"] != nil) {
      told = .transaction
    } else {
      told = nil
    }
    if let told {
      guard expected == nil || expected == told else { throw .claim(.wrongKind) }
      return told
    }
    if let expected { return expected }
    // Of the kinds that name their environment at the top, renewal info alone has no bundle id.
    guard root["environment"] != nil else { throw .claim(.unknownKind) }
    return root["bundleId"] == nil ? .renewalInfo : .transaction
  }

  private func transaction(
    _ opened: Opened, _ fields: Fields, _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let app = try app(fields)
    let environment = try environment(fields, "environment", isLocal: opened.isLocal)
    // Apple puts it into other proofs only; a transaction that names another app's all the same is not ours.
    if fields.member("appAppleId") != nil { try checkAppAppleID(fields, app, environment) }
    let date = try date(fields, "signedDate", opened, &evidence)
    let revision: TransactionRevision
    do {
      revision = try ApplePayload.transaction(opened.root, digest: opened.digest, source: asked.source)
    } catch { throw .field(error) }
    try checkFuture(date, asked.at)
    var proof = proof(opened, .transaction, environment, date, asked.source, evidence)
    proof.transaction = revision
    proof.originalTransaction = revision.originalTransaction
    return proof
  }

  private func renewal(
    _ opened: Opened, _ fields: Fields, _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let environment = try environment(fields, "environment", isLocal: opened.isLocal)
    let date = try date(fields, "signedDate", opened, &evidence)
    // It is authentic without, and asked for by whoever folds it (a notification does).
    var original: OriginalTransactionID?
    if fields.member("originalTransactionId") != nil {
      do {
        original = try ApplePayload.renewal(opened.root, digest: opened.digest, source: asked.source)
          .originalTransaction
      } catch { throw .field(error) }
    }
    try checkFuture(date, asked.at)
    var proof = proof(opened, .renewalInfo, environment, date, asked.source, evidence)
    proof.originalTransaction = original
    return proof
  }

  private func appTransaction(
    _ opened: Opened, _ fields: Fields, _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let app = try app(fields)
    let environment = try environment(fields, "receiptType", isLocal: opened.isLocal)
    try checkAppAppleID(fields, app, environment)
    let date = try date(fields, "receiptCreationDate", opened, &evidence)
    try checkFuture(date, asked.at)
    return proof(opened, .appTransaction, environment, date, asked.source, evidence)
  }

  private func proof(
    _ opened: Opened, _ kind: ProofKind, _ environment: Environment, _ date: Instant, _ source: RevisionSource,
    _ evidence: Evidence
  ) -> VerifiedProof {
    let part = SignedPart(kind: kind, digest: opened.digest, source: source, payload: opened.payload)
    return VerifiedProof(
      kind: kind, environment: environment, signedDate: date, digest: opened.digest, parts: [part], notification: nil,
      body: nil, transaction: nil, originalTransaction: nil, evidence: evidence.json)
  }

  // MARK: Rules that several kinds share

  func app(_ fields: Fields) throws(Halt) -> VerificationSettings.App {
    let bundleID: String
    do { bundleID = try fields.requiredText("bundleId") } catch { throw .field(error) }
    guard let app = settings.apps.first(where: { $0.bundleID == bundleID }) else {
      throw .claim(.wrongBundle, "bundleId")
    }
    return app
  }

  /// Only Production has app ids that mean something: the sandbox sends none, or others.
  func checkAppAppleID(
    _ fields: Fields, _ app: VerificationSettings.App, _ environment: Environment
  ) throws(Halt) {
    guard environment == .production else { return }
    let id: Int64?
    do { id = try fields.integer("appAppleId") } catch { throw .field(error) }
    guard let id else { throw .claim(.missingField, "appAppleId") }
    guard id == app.appAppleID else { throw .claim(.wrongAppAppleID, "appAppleId") }
  }

  func environment(_ fields: Fields, _ name: StaticString, isLocal: Bool) throws(Halt) -> Environment {
    guard let member = fields.member(name) else { throw .claim(.missingField, "\(name)") }
    guard let text = member.string else { throw .claim(.malformedField, "\(name) must be a string") }
    guard let environment = Environment(rawValue: text) else { throw .claim(.unknownEnvironment, "\(name)") }
    try accept(environment, "\(name)", isLocal: isLocal)
    return environment
  }

  /// - Parameter field: what told the environment.
  func accept(_ environment: Environment, _ field: String, isLocal: Bool) throws(Halt) {
    guard environment.isSignedLocally == isLocal else { throw .claim(.environmentNotOfSigner, field) }
    guard settings.environments.contains(environment) else { throw .claim(.environmentNotAccepted, field) }
  }

  /// The date of the proof, at which its whole chain must have been valid.
  func date(
    _ fields: Fields, _ name: StaticString, _ opened: Opened, _ evidence: inout Evidence
  ) throws(Halt) -> Instant {
    let date: Instant?
    do { date = try fields.milliseconds(name) } catch { throw .field(error) }
    // Zero is what a sender writes who has none.
    guard let date, date.milliseconds != 0 else { throw .claim(.missingField, "\(name)") }
    guard date.milliseconds > 0 else { throw .claim(.malformedField, "\(name) must lie after 1970") }
    evidence.signedDate = date
    if let failure = opened.chain.failure(at: date.milliseconds) { throw .refused(.chain(failure), field: nil) }
    return date
  }

  /// Last of all: what is wrong in itself is not waited for.
  func checkFuture(_ date: Instant, _ at: Instant) throws(Halt) {
    guard date > at.advanced(byMilliseconds: settings.futureSkewMilliseconds) else { return }
    throw .waiting(.signedInTheFuture, until: date.advanced(byMilliseconds: -settings.futureSkewMilliseconds))
  }
}
