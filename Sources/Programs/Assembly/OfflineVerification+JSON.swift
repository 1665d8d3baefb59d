import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesVerification

extension OfflineVerification {
  /// One code for programs, one sentence for people, and the evidence.
  static func write(_ verdict: Verdict, checksBundle: Bool, _ json: inout JSONWriter) {
    switch verdict {
    case .verified(let verdict):
      json.field("verdict", "verified")
      json.field("kind", verdict.kind.rawValue)
      json.field("environment", verdict.environment.rawValue)
      json.field("signedDate", verdict.signedDate.rfc3339)
      json.field("proof", verdict.digest)
      // Renewal info names no app: there is nothing to hold against a bundle id.
      json.field("bundleIdChecked", checksBundle && verdict.kind != .renewalInfo)
      if let notification = verdict.notification { json.field("notification", object: { notification.write(&$0) }) }
      json.field("body", raw: verdict.body)
      json.field("parts", array: { json in for part in verdict.parts { part.write(&json) } })
      json.field("findings", findings(verdict))
      json.field("evidence", verdict.evidence)
    case .rejected(let verdict):
      json.field("verdict", "rejected")
      json.field("reason", verdict.reason.code)
      json.field("field", verdict.field)
      json.field("explanation", verdict.explanation)
      json.field("proof", verdict.digest)
      json.field("evidence", verdict.evidence)
    case .pending(let verdict):
      json.field("verdict", "pending")
      json.field("reason", verdict.reason.rawValue)
      json.field("explanation", verdict.reason.explanation)
      if verdict.until != .distantFuture { json.field("until", verdict.until.rfc3339) }
      json.field("proof", verdict.digest)
      json.field("evidence", verdict.evidence)
    }
  }

  /// What Apple's documentation doesn't hold of what was verified; nil where it holds everything.
  private static func findings(_ proof: VerifiedProof) -> JSON? {
    var members: [(String, JSON)] = []
    func add(_ place: String, _ findings: PayloadFindings?) {
      guard let findings, !findings.isEmpty else { return }
      let lists = [
        ("unknownMembers", findings.unknownMembers), ("unknownValues", findings.unknownValues),
        ("unreadableMembers", findings.unreadableMembers),
      ]
      let told = lists.filter { !$0.1.isEmpty }.map { ($0.0, JSON.array($0.1.map(JSON.string))) }
      members.append((place, .object(JSONObject(told))))
    }
    if let body = proof.body, let root = try? JSONDocument(parsing: body).root {
      add("body", PayloadReading<SignedNotification>(root).findings)
    }
    for part in proof.parts { add(part.kind.rawValue, try? part.findings()) }
    return members.isEmpty ? nil : .object(JSONObject(members))
  }
}
