import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

extension ProofJudge {
  /// The body of a notification: what it is about, whatever its type.
  private struct Bodies {
    var environment: Environment
    var bundleID: String
  }

  func notification(
    _ opened: Opened, _ fields: Fields, _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let bodies = try bodies(opened, fields)
    let date = try date(fields, "signedDate", opened, &evidence)
    let facts: NotificationFacts
    do {
      let uuid = try fields.requiredText("notificationUUID", maximumBytes: IdentifierRule.maximumBytes)
      facts = NotificationFacts(
        // The case of a UUID carries no meaning: two spellings are one notification.
        uuid: Account.isUUID(uuid) ? uuid.lowercased() : uuid, type: try fields.requiredText("notificationType"),
        subtype: try fields.text("subtype"), version: Self.version(fields), signedDate: date)
    } catch { throw .field(error) }
    var parts: [SignedPart] = []
    let transaction = try nested("data", "signedTransactionInfo", .transaction, fields, bodies, asked, &evidence)
    let renewal = try nested("data", "signedRenewalInfo", .renewalInfo, fields, bodies, asked, &evidence)
    let app = try nested(
      "appData", "signedAppTransactionInfo", .appTransaction, fields, bodies, asked, &evidence)
    for proof in [transaction, renewal, app] { parts += proof?.parts ?? [] }
    if let renewal {
      guard let original = renewal.originalTransaction else {
        throw .claim(.missingField, "data.signedRenewalInfo.originalTransactionId")
      }
      if let transaction, transaction.originalTransaction != original { throw .claim(.nestedTransactionMismatch) }
    }
    try checkFuture(date, asked.at)
    return VerifiedProof(
      kind: .notification, environment: bodies.environment, signedDate: date, digest: opened.digest, parts: parts,
      notification: facts, body: Self.body(opened.root), transaction: transaction?.transaction,
      originalTransaction: transaction?.originalTransaction ?? renewal?.originalTransaction, evidence: evidence.json)
  }

  /// The places of proofs inside a notification.
  private static let proofs = [
    ("data", "signedTransactionInfo"), ("data", "signedRenewalInfo"), ("appData", "signedAppTransactionInfo"),
  ]

  /// What was signed around the proofs. They are judged and kept by themselves; here they would double the event.
  private static func body(_ root: JSONView) -> [UInt8] {
    guard var body = root.json.object else { return root.text }
    for (member, name) in proofs {
      guard var inner = body[member]?.object else { continue }
      inner[name] = nil
      body[member] = .object(inner)
    }
    return JSON.object(body).bytes
  }

  /// Kept as it came, be it text or a number; one that no event can hold (empty, endless, with U+0000) stays in the body alone.
  private static func version(_ fields: Fields) -> String? {
    guard let number = fields.member("version")?.numberText else { return try? fields.text("version") }
    return number.utf8.count <= Fields.maximumTextBytes ? number : nil
  }

  /// Bundle id, app id and environment are checked in whichever member carries them; one that carries none is not
  /// trusted.
  private func bodies(_ opened: Opened, _ fields: Fields) throws(Halt) -> Bodies {
    var found: Bodies?
    for name in ["data", "summary", "appData", "externalPurchaseToken"] as [StaticString] {
      let body: Fields?
      do { body = try fields.object(name) } catch { throw .field(error) }
      guard let body else { continue }
      do throws(Halt) {
        let app = try app(body)
        let environment =
          "\(name)" == "externalPurchaseToken"
          ? try tokenEnvironment(body, opened) : try environment(body, "environment", isLocal: opened.isLocal)
        try checkAppAppleID(body, app, environment)
        guard found == nil || found?.environment == environment else { throw .claim(.nestedEnvironmentMismatch) }
        guard found == nil || found?.bundleID == app.bundleID else { throw .claim(.nestedBundleMismatch) }
        found = Bodies(environment: environment, bundleID: app.bundleID)
      } catch { throw error.inside("\(name)") }
    }
    guard let found else { throw .claim(.missingField, "data") }
    return found
  }

  /// An external purchase token has no environment of its own: the sandbox writes its name at the head of the id.
  private func tokenEnvironment(_ token: Fields, _ opened: Opened) throws(Halt) -> Environment {
    let id: String
    do { id = try token.requiredText("externalPurchaseId") } catch { throw .field(error) }
    let environment: Environment = id.hasPrefix("SANDBOX") ? .sandbox : .production
    try accept(environment, "externalPurchaseId", isLocal: opened.isLocal)
    return environment
  }

  /// A proof inside the notification: judged in its own right, and held against the body around it.
  private func nested(
    _ member: StaticString, _ name: StaticString, _ kind: ProofKind, _ fields: Fields, _ bodies: Bodies,
    _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof? {
    guard let value = fields.view[member]?[name], !value.isNull else { return nil }
    let path = "\(member).\(name)"
    guard let bytes = value.utf8 else { throw .claim(.malformedField, "\(path) must be a string") }
    var inner = Evidence(judgedAt: asked.at)
    defer { evidence.nested.append((path, inner.json)) }
    do throws(Halt) {
      let asked = Asked(source: asked.source, at: asked.at, revocation: asked.revocation?.inside(path))
      let opened = try open(bytes, asked, evidence: &inner)
      let proof = try verified(opened, expecting: kind, asked, evidence: &inner)
      guard proof.environment == bodies.environment else { throw .claim(.nestedEnvironmentMismatch) }
      if kind != .renewalInfo, opened.root["bundleId"]?.string != bodies.bundleID {
        throw .claim(.nestedBundleMismatch)
      }
      return proof
    } catch { throw error.inside(path) }
  }
}
