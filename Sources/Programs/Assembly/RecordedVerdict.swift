import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// A verdict that stands in the log, held against what its proof gets when it is judged again: with the time, the rules and the
/// recorded answers of its evidence, and nobody asked.
public struct RecordedVerdict {
  /// The code of the list in `docs/verdicts.md`, or `verified`.
  private let code: String
  private let kind: ProofKind?
  private let environment: String?
  private let evidence: JSONView

  /// What people are told that differs.
  private struct Difference {
    let field: String
    let recorded: String
    let judged: String
  }

  /// The report beside a proof can contradict it; the proof alone does not tell.
  private static let ofReport: Set<String> = Set(
    [ClaimFailure.environmentMismatch, .transactionMismatch, .originalTransactionMismatch, .productMismatch].map(
      \.rawValue))
  private static let revoked = "chain-revoked"

  private let document: JSONDocument

  /// - Parameter file: the data of a `purchase.verified` or `purchase.rejected` event, or an object that
  ///   holds it as `data`, or as `value` as `purchases tail` prints it.
  public init(file: [UInt8]) throws(UsageError) {
    do { document = try JSONDocument(parsing: file) } catch { throw UsageError("--verdict: is not JSON: \(error)") }
    let root = document.root
    let data = [root["data"], root["value"]].compactMap { $0 }.first { $0.kind == .object } ?? root
    guard data["nextTry"] == nil else {
      throw UsageError("--verdict: is a pending one, which is no verdict yet: there is nothing to judge again")
    }
    guard let evidence = data["evidence"], evidence.kind == .object, evidence["proof"]?.string != nil,
      evidence["judgedAt"]?.int64 != nil
    else { throw UsageError("--verdict: holds no evidence: it must be a purchase.verified or purchase.rejected event") }
    self.evidence = evidence
    code = data["reason"]?.string ?? "verified"
    kind = data["kind"]?.string.flatMap { ProofKind(rawValue: $0) }
    environment = code == "verified" ? data["environment"]?.string : nil
  }

  var judgedAt: Instant { Instant(milliseconds: evidence["judgedAt"]?.int64 ?? 0) }

  /// Judges the proof again. Agrees: the same proof, and the same of everything that the verdict says of it.
  public func judge(
    _ proof: [UInt8], by verification: inout OfflineVerification
  ) throws(UsageError) -> (agrees: Bool, json: [UInt8]) {
    let verdict = try verification.verdict(on: proof, kind: kind, at: judgedAt)
    var differences: [Difference] = []
    func hold(_ field: String, _ recorded: String?, _ judged: String?) {
      guard recorded != judged else { return }
      differences.append(Difference(field: field, recorded: recorded ?? "none", judged: judged ?? "none"))
    }
    let (judged, judgedEnvironment, again) = Self.told(verdict)
    hold("proof", evidence["proof"]?.string, again["proof"]?.string)
    hold("verifier", evidence["verifier"]?.string, again["verifier"]?.string)
    hold("signedDate", evidence["signedDate"]?.int64.map(String.init), again["signedDate"]?.int64.map(String.init))
    for field in ["chain", "anchor"] { hold(field, evidence[field]?.string, again[field]?.string) }
    if let environment { hold("environment", environment, judgedEnvironment) }
    let restsOn = restsOn
    if restsOn == nil || judged != "verified" { hold("verdict", code, judged) }
    var writer = JSONWriter()
    writer.object { json in
      json.field("agrees", differences.isEmpty)
      json.field("recorded", code)
      json.field("judged", judged)
      json.field("restsOn", restsOn)
      json.field(
        "differences",
        array: { json in
          for difference in differences {
            json.object { json in
              json.field("field", difference.field)
              json.field("recorded", difference.recorded)
              json.field("judged", difference.judged)
            }
          }
        })
    }
    return (differences.isEmpty, writer.bytes + [0x0a])
  }

  /// What was recorded beside the proof and decided the verdict. The proof alone is authentic then.
  private var restsOn: String? {
    if Self.ofReport.contains(code) { return "the report that came with the proof" }
    guard code == Self.revoked else { return nil }
    let told = evidence["revocation"]?.elements.contains { $0["answer"]?.string == "revoked" } ?? false
    return told ? "the responder's recorded answer" : nil
  }

  private static func told(_ verdict: Verdict) -> (code: String, environment: String?, evidence: JSON) {
    switch verdict {
    case .verified(let proof): ("verified", proof.environment.rawValue, proof.evidence)
    case .rejected(let proof): (proof.reason.code, nil, proof.evidence)
    case .pending(let proof): ("pending:" + proof.reason.rawValue, nil, proof.evidence)
    }
  }
}
