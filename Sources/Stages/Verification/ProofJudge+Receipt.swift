import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

extension ProofJudge {
  /// Judges an app receipt. As total as the judging of a JWS.
  /// - Parameters:
  ///   - receipt: base64 text, as it was sent.
  ///   - device: whose the receipt must be; nil leaves that unasked.
  ///   - revocation: what is known of it; nil where nobody was asked.
  ///   - answer: what `verifyReceipt` said of a receipt of the oldest kind; nil where nobody was asked.
  public func judge(
    receipt: [UInt8], device: ReceiptDevice? = nil, source: RevisionSource = .client, at: Instant,
    revocation: RevocationCheck? = nil, answer: AppStoreAnswer? = nil
  ) -> Verdict {
    let asked = Asked(source: source, at: at, revocation: revocation)
    let digest = SHA256.digest(receipt).hex
    var evidence = Evidence(judgedAt: at)
    evidence.proof = digest
    evidence.verifier = Evidence.receiptVerifier
    do throws(Halt) {
      return .verified(try verified(receipt, digest, device, answer, asked, &evidence))
    } catch { return ended(error, evidence) }
  }

  private func verified(
    _ receipt: [UInt8], _ digest: String, _ device: ReceiptDevice?, _ answer: AppStoreAnswer?, _ asked: Asked,
    _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    let bytes: [UInt8]
    switch try ReceiptText(receipt) {
    case .signedData(let found): bytes = found
    case .oldest(let text): return try oldest(text, digest, answer, asked, &evidence)
    }
    let signed: SignedData
    do { signed = try SignedData(parsing: bytes) } catch { throw .receipt(error) }
    let (chain, isLocal) = try receiptChain(signed)
    do { try signed.verify(by: chain.leaf) } catch { throw .receipt(error) }
    evidence.chain = chain
    try checkRevocation(of: chain, asked, evidence: &evidence)
    let content: AppReceipt
    do { content = try AppReceipt(content: signed.content) } catch {
      switch error {
      case .notAttributes(let reason): throw .claim(.payloadNotReceipt, reason)
      case .field(let failure): throw .field(failure)
      }
    }
    let environment = try check(content, isLocal: isLocal)
    let date = try date(content, chain, &evidence)
    let hash = device?.hash(for: content)
    evidence.receipt = Self.told(content, signed, device, hash: hash)
    let parts: [(part: SignedPart, revision: TransactionRevision)]
    do {
      parts = try content.parts(digest: digest, environment: environment, signed: date, source: asked.source)
    } catch { throw .field(error) }
    if let device { try check(device, hash, content) }
    try checkFuture(date, asked.at)
    return VerifiedProof(
      kind: .appReceipt, environment: environment, signedDate: date, digest: digest, parts: parts.map(\.part),
      notification: nil, body: nil, transaction: nil, originalTransaction: nil, evidence: evidence.json,
      purchases: parts.map(\.revision))
  }

  /// What Apple's responders must be asked before this receipt can be judged; as for a JWS, only under a trusted anchor.
  public func revocationQuestions(receipt: [UInt8], now: Instant) -> [AppStoreQuestion] {
    guard settings.revocation != .off, case .signedData(let bytes)? = try? ReceiptText(receipt),
      let signed = try? SignedData(parsing: bytes),
      let chain = try? ChainPolicy.inspect(signed, anchors: settings.receiptAnchors)
    else { return [] }
    return chain.revocationQuestions(now: now).map { AppStoreQuestion.revocation($0.certificate, $0.issuer) }
  }

  private func receiptChain(_ signed: SignedData) throws(Halt) -> (JudgedChain, isLocal: Bool) {
    do throws(ChainFailure) {
      return (try ChainPolicy.inspect(signed, anchors: settings.receiptAnchors), false)
    } catch {
      guard signed.certificates.count == 1 else { throw .refused(.chain(error), field: nil) }
      if let pinned = settings.localCertificates {
        do throws(ChainFailure) { return (try ChainPolicy.inspect(signed, pinned: pinned), true) } catch {
          throw .refused(.chain(error), field: nil)
        }
      }
      // Refused either way. What the unverified content says of its environment only chooses the words, so that a
      // developer who sent a test receipt to the wrong place is told so.
      if let said = try? AppReceipt(content: signed.content).environment, said.isSignedLocally {
        throw .refused(.receipt(.signedLocally), field: nil)
      }
      throw .refused(.chain(error), field: nil)
    }
  }

  private func check(_ content: AppReceipt, isLocal: Bool) throws(Halt) -> Environment {
    guard let bundleID = content.bundleID else { throw .claim(.missingField, "bundleId") }
    guard settings.apps.contains(where: { $0.bundleID == bundleID }) else { throw .claim(.wrongBundle, "bundleId") }
    guard content.environmentName != nil else { throw .claim(.missingField, "environment") }
    guard let environment = content.environment else { throw .claim(.unknownEnvironment, "environment") }
    try accept(environment, "environment", isLocal: isLocal)
    return environment
  }

  private func date(
    _ content: AppReceipt, _ chain: JudgedChain, _ evidence: inout Evidence
  ) throws(Halt) -> Instant {
    guard let date = content.creationDate else { throw .claim(.missingField, "receiptCreationDate") }
    guard date.milliseconds > 0 else { throw .claim(.malformedField, "receiptCreationDate must lie after 1970") }
    evidence.signedDate = date
    if let failure = chain.failure(at: date.milliseconds) { throw .refused(.chain(failure), field: nil) }
    return date
  }

  private func check(_ device: ReceiptDevice, _ hash: [UInt8]?, _ content: AppReceipt) throws(Halt) {
    guard content.opaque != nil else { throw .claim(.missingField, "opaque value") }
    guard let own = content.hash else { throw .claim(.missingField, "hash") }
    if case .unrecorded = device { return }
    guard hash == own else { throw .claim(.deviceMismatch) }
  }

  /// What the receipt declares of itself, for the evidence.
  private static func told(
    _ content: AppReceipt, _ signed: SignedData, _ device: ReceiptDevice?, hash: [UInt8]?
  ) -> JSON {
    var members: [(String, JSON)] = [
      ("digest", .string(signed.digest.rawValue)), ("purchases", .integer(Int64(content.purchases.count))),
      (
        "unknownAttributes",
        .integer(Int64(content.unknownCount + content.purchases.reduce(0) { $0 + $1.unknownCount }))
      ),
      ("device", .string(device == nil ? "not-asked" : "checked")),
    ]
    if let hash { members.append(("deviceHash", .string(Hex.encode(hash)))) }
    if let version = content.version { members.append(("applicationVersion", .string(version))) }
    if let version = content.originalVersion { members.append(("originalApplicationVersion", .string(version))) }
    if let date = content.expirationDate { members.append(("expirationDate", .integer(date.milliseconds))) }
    return .object(JSONObject(members))
  }
}

extension Halt {
  fileprivate static func receipt(_ failure: SignedDataFailure) -> Halt {
    let reason: ReceiptFailure
    switch failure {
    case .notASN1(let failure):
      return .refused(.receipt(failure.kind == .tooLarge ? .tooLarge : .notASN1), field: failure.description)
    case .notSignedData: reason = .notSignedData
    case .malformed: reason = .signedDataMalformed
    case .contentNotData: reason = .contentNotData
    case .contentAbsent: reason = .contentAbsent
    case .tooManyCertificates: reason = .tooManyCertificates
    case .signerCount: reason = .signerCount
    case .signerNotNamed: reason = .signerNotNamed
    case .signedAttributes: reason = .signedAttributes
    case .algorithm: reason = .algorithm
    case .signatureInvalid: reason = .signatureInvalid
    }
    return .refused(.receipt(reason), field: nil)
  }
}
