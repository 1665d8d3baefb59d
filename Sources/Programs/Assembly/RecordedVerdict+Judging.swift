import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

extension RecordedVerdict {
  /// What judging again came to: the code, and the event that would be written.
  struct Judged {
    var code: String
    var event: VerifiedEvent?
    var evidence: JSON
    /// What was recorded beside the proof and decided, where nothing proves it.
    var restsOn: String?
  }

  /// - Parameter device: whose the receipt must be, where somebody says so once more.
  func judged(_ proof: [UInt8], _ values: SettingValues, device: String?) throws(UsageError) -> Judged {
    let accepted: AcceptedProofs?
    let stated: StatedPurchase?
    do throws(FieldFailure) {
      accepted = try AcceptedProofs(evidence: evidence)
      stated = try StatedPurchase(evidence: evidence)
    } catch { throw UsageError("--verdict: \(error)") }
    let earlier = RevocationCheck(recorded: evidence.json)
    let verdict: Verdict
    if isOfReceipt {
      verdict = try OfflineReceipt(
        values, sent: proof, device: try device.map(OfflineReceipt.device) ?? recordedDevice, at: judgedAt,
        accepted: accepted, answer: recordedAnswer
      ).verdict(revocation: earlier)
    } else {
      var verification = try OfflineVerification(values, accepted: accepted)
      verdict = try verification.verdict(
        on: proof, kind: expectedKind, source: source, at: judgedAt, revocation: earlier)
    }
    var judged = told(verdict, stated)
    if code == Self.chainRevoked, judged.code == code, Self.isUnsigned(evidence.json) {
      judged.restsOn = "the responder's recorded answer"
    }
    return judged
  }

  private func told(_ verdict: Verdict, _ stated: StatedPurchase?) -> Judged {
    switch verdict {
    case .pending(let proof):
      return Judged(code: "pending:" + proof.reason.rawValue, event: nil, evidence: proof.evidence)
    case .rejected(let proof):
      return Judged(
        code: proof.reason.code, event: rejected(proof.reason.code, proof.explanation, stated), evidence: proof.evidence
      )
    case .verified(let proof):
      if let (failure, restsOn) = contradiction(proof, stated) {
        return Judged(
          code: failure.rawValue, event: rejected(failure.rawValue, Reason.claim(failure).explanation, stated),
          evidence: proof.evidence, restsOn: restsOn)
      }
      return Judged(code: "verified", event: verified(proof, stated), evidence: proof.evidence)
    }
  }

  // MARK: What decided beside the proof

  private static let chainRevoked = "chain-revoked"

  /// What contradicts an authentic proof: what was reported with it. Where the evidence is older than ``StatedPurchase``, what
  /// the event repeats of the report is all there is, and for what it doesn't repeat its word.
  private func contradiction(_ proof: VerifiedProof, _ stated: StatedPurchase?) -> (ClaimFailure, restsOn: String)? {
    let report = "the report that came with the proof"
    if code == ClaimFailure.deviceMismatch.rawValue, recordedDevice == .unrecorded {
      return (.deviceMismatch, "the device that was named with the receipt")
    }
    guard !isOfReceipt else {
      let environment = stated?.environment ?? (code == "verified" ? nil : environment("environment"))
      guard let environment, environment != proof.environment else { return nil }
      return (.environmentMismatch, report)
    }
    let said =
      stated
      ?? StatedPurchase(
        environment: code == "verified" ? nil : environment("environment"),
        transaction: event["report"]?["transactionId"]?.string.flatMap { TransactionID($0) },
        product: event["report"]?["productId"]?.string.flatMap { ProductID($0) })
    if stated == nil, code == ClaimFailure.originalTransactionMismatch.rawValue {
      return (.originalTransactionMismatch, report)
    }
    return said.mismatch(proof).map { ($0, report) }
  }

  private func environment(_ name: StaticString) -> Environment? {
    event[name]?.string.flatMap { Environment(rawValue: $0) }
  }

  /// Whether an answer that revokes is there by its word alone.
  private static func isUnsigned(_ evidence: JSON) -> Bool {
    let own = evidence["revocation"]?.array ?? []
    let nested = evidence["nested"]?.object?.members ?? []
    return own.contains { $0["answer"]?.string == "revoked" && $0["body"] == nil }
      || nested.contains { isUnsigned($0.value) }
  }

  private var recordedDevice: ReceiptDevice? {
    guard evidence["receipt"]?["device"]?.string == "checked" || code == ClaimFailure.deviceMismatch.rawValue else {
      return nil
    }
    guard let hash = evidence["receipt"]?["deviceHash"]?.string else { return .unrecorded }
    return .recorded(hash: Hex.decode(hash) ?? [])
  }

  private var recordedAnswer: AppStoreAnswer? {
    guard let told = evidence["verifyReceipt"] else { return nil }
    guard told["answer"]?.string == "given", let body = told["body"]?.utf8, let at = told["at"]?.int64 else {
      return nil
    }
    return .given(
      AppStoreResponse(
        body: body, at: Instant(milliseconds: at),
        environment: told["environment"]?.string.flatMap { Environment(rawValue: $0) }))
  }

  // MARK: The event

  private var reportType: EventType? { event["report"]?["type"]?.string.flatMap { EventType(rawValue: $0) } }

  /// What belongs where the proof was sent to.
  private var expectedKind: ProofKind? {
    switch reportType {
    case nil: event["kind"]?.string.flatMap { ProofKind(rawValue: $0) }
    case .storeNotified: .notification
    default: .transaction
    }
  }

  private var source: RevisionSource {
    guard reportType == .storeNotified else { return .client }
    let told = event["parts"]?.elements.first?["source"]?.string
    return told == RevisionSource.backfill.name ? .backfill : .notification
  }

  private var report: Report { Report(type: reportType ?? .paymentPurchased) }

  /// The name of the permit that answers: of a receipt it depends on the purchase that it was sent for.
  private func permit(_ parts: [SignedPart], _ purchases: [TransactionRevision]) -> String {
    let digest = evidence["proof"]?.string ?? ""
    guard isOfReceipt else { return digest }
    if let transaction = event["report"]?["transactionId"]?.string {
      return AppReceipt.digest(ofReceipt: digest, transaction: transaction)
    }
    let newest = purchases.indices.max { purchases[$0].purchaseDate < purchases[$1].purchaseDate }
    return newest.map { parts[$0].digest } ?? digest
  }

  private func rejected(_ code: String, _ explanation: String, _ stated: StatedPurchase?) -> VerifiedEvent {
    // Where no report decided, the environment is the sender's word or the unverified proof's.
    let environment = stated?.environment ?? environment("environment")
    return .rejected(
      PurchaseRejected(
        environment: environment, proof: permit([], []), reason: code, explanation: explanation, report: report,
        evidence: .null))
  }

  private func verified(_ proof: VerifiedProof, _ stated: StatedPurchase?) -> VerifiedEvent {
    var parts = proof.parts
    var purchases = proof.purchases
    if isOfReceipt {
      let chain = chain(proof, stated)
      parts = chain.map { proof.parts[$0] }
      purchases = chain.map { proof.purchases[$0] }
    }
    return .verified(
      PurchaseVerified(
        environment: proof.environment, kind: proof.kind, proof: permit(parts, purchases), signedDate: proof.signedDate,
        parts: parts, notification: proof.notification, body: proof.body, report: report, evidence: .null))
  }

  /// Which of a receipt's purchases the event is about: all of the chain that its first part belongs to. None, where none is
  /// the reported one.
  private func chain(_ proof: VerifiedProof, _ stated: StatedPurchase?) -> [Int] {
    if let stated, let type = reportType, stated.match(type, proof.purchases) == nil { return [] }
    let first = event["parts"]?.elements.first?["digest"]?.string
    guard let index = proof.parts.firstIndex(where: { $0.digest == first }) ?? proof.parts.indices.first else {
      return []
    }
    // Before the evidence told what was reported, an event without purchases could be any receipt's.
    if first == nil, evidence["proofText"] == nil, evidence["proofNotCarried"] == nil { return [] }
    let original = proof.purchases[index].originalTransaction
    return proof.purchases.indices.filter { proof.purchases[$0].originalTransaction == original }
  }
}
