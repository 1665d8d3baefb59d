import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// What a verdict rests on. Anyone with the anchors and this can judge again and must come to the same: a stage puts the proof
/// beside it (``CarriedProof``).
struct Evidence {
  /// Changes whenever the same proof could get another verdict than before.
  static let verifier = "purchases-jws/2"
  static let receiptVerifier = "purchases-receipt/1"

  var verifier = Evidence.verifier
  /// SHA-256 of the proof, in hex: whoever opens the proof hashes it.
  var proof = ""
  let judgedAt: Instant
  var chain: JudgedChain?
  var signedDate: Instant?
  var revocation = ProofJudge.notAsked("this verifier was set to ask no responder")
  var nested: [(member: String, evidence: JSON)] = []
  /// Of an app receipt: what it declares of itself, and what was checked beside its signature.
  var receipt: JSON?
  /// Of the oldest receipts: what the App Store said.
  var verifyReceipt: JSON?
  /// Of a proof that is another deployment's: what this one takes.
  var accepted: JSON?

  init(judgedAt: Instant) { self.judgedAt = judgedAt }

  var json: JSON {
    var members: [(String, JSON)] = [
      ("verifier", .string(verifier)), ("proof", .string(proof)),
      ("judgedAt", .integer(judgedAt.milliseconds)),
    ]
    if let signedDate { members.append(("signedDate", .integer(signedDate.milliseconds))) }
    if let chain {
      members.append(("chain", .string(chain.digest.hex)))
      if let anchor = chain.anchors.first { members.append(("anchor", .string(anchor.fingerprint.hex))) }
      members.append(("revocation", revocation))
    }
    if let receipt { members.append(("receipt", receipt)) }
    if let accepted { members.append(("accepted", accepted)) }
    if let verifyReceipt { members.append(("verifyReceipt", verifyReceipt)) }
    if !nested.isEmpty {
      members.append(("nested", .object(JSONObject(nested.map { ($0.member, $0.evidence) }))))
    }
    return .object(JSONObject(members))
  }
}
