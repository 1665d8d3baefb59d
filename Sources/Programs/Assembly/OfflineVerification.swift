import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// Judges one proof without log, store or network: what `purchases verify` does.
public struct OfflineVerification {
  private let judge: ProofJudge
  private let proof: [UInt8]
  private let kind: ProofKind?
  private let at: Instant
  private let checksBundle: Bool

  public init(_ values: SettingValues, proof: [UInt8], kind: String?, at: Instant) throws(UsageError) {
    // Files end in a newline more often than not; a proof never does.
    var trimmed = proof[...]
    while let last = trimmed.last, last == 0x0a || last == 0x0d || last == 0x20 { trimmed = trimmed.dropLast() }
    self.proof = Array(trimmed)
    self.at = at
    if let kind {
      guard let known = ProofKind(rawValue: kind) else {
        throw UsageError("--kind: must be one of \(ProofKind.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      self.kind = known
    } else {
      self.kind = nil
    }
    let environment = try TrustSettings.environment(values)
    let named = Claims(unverified: self.proof)
    let bundles = values.texts(.bundleID)
    checksBundle = !bundles.isEmpty
    let apple: Int64? = try values.number(.appAppleID, 1...Int64.max) ?? named.appAppleID ?? 0
    let apps = (bundles.isEmpty ? [named.bundleID ?? "none"] : bundles).map {
      VerificationSettings.App(bundleID: $0, appAppleID: apple)
    }
    let environments: Set<Environment> = environment.map { [$0] } ?? [.production, .sandbox]
    do {
      if let environment, environment.isSignedLocally {
        // What signs for Xcode is one certificate of its own: here the anchor is that certificate.
        var certificates: [(label: String, der: [UInt8])] = []
        for path in values.texts(.anchor) { certificates.append((path, try Files.read(path, .anchor))) }
        guard !certificates.isEmpty else {
          throw UsageError("--anchor: \(environment.rawValue) needs the certificate that it signs with")
        }
        judge = ProofJudge(
          try VerificationSettings(
            apps: apps, environments: environments, localCertificates: try PinnedCertificates(certificates)))
      } else {
        judge = ProofJudge(
          try VerificationSettings(
            apps: apps, anchors: try TrustSettings.anchors(values) ?? AppleRoots.storeKit, environments: environments))
      }
    } catch let error as UsageError { throw error } catch { throw UsageError("\(error)") }
  }

  /// What the proof says of itself, for checks that were not asked for: they then compare it with itself.
  private struct Claims {
    var bundleID: String?
    var appAppleID: Int64?

    init(unverified proof: [UInt8]) {
      guard let jws = try? CompactJWS.split(proof), let root = try? JSONDocument(parsing: jws.payload).root else {
        return
      }
      for place in [root, root["data"], root["summary"], root["appData"], root["externalPurchaseToken"]] {
        bundleID = bundleID ?? place?["bundleId"]?.string
        appAppleID = appAppleID ?? place?["appAppleId"]?.int64 ?? place?["appAppleID"]?.int64
      }
    }
  }

  public enum Outcome: Sendable { case verified, rejected, pending }

  public func run() -> (outcome: Outcome, json: [UInt8]) {
    var writer = JSONWriter(reserving: 2048)
    let outcome: Outcome
    switch judge.judge(proof, expecting: kind, at: at) {
    case .verified(let verdict):
      outcome = .verified
      writer.object { json in
        json.field("verdict", "verified")
        json.field("kind", verdict.kind.rawValue)
        json.field("environment", verdict.environment.rawValue)
        json.field("signedDate", verdict.signedDate.rfc3339)
        json.field("proof", verdict.digest)
        // Renewal info names no app: there is nothing to hold against a bundle id.
        json.field("bundleIdChecked", checksBundle && verdict.kind != .renewalInfo)
        if let notification = verdict.notification { json.field("notification", object: { notification.write(&$0) }) }
        json.field("parts", array: { json in for part in verdict.parts { part.write(&json) } })
        json.field("evidence", verdict.evidence)
      }
    case .rejected(let verdict):
      outcome = .rejected
      writer.object { json in
        json.field("verdict", "rejected")
        json.field("reason", verdict.reason.code)
        json.field("field", verdict.field)
        json.field("explanation", verdict.explanation)
        json.field("proof", verdict.digest)
        json.field("evidence", verdict.evidence)
      }
    case .pending(let verdict):
      outcome = .pending
      writer.object { json in
        json.field("verdict", "pending")
        json.field("reason", verdict.reason.rawValue)
        json.field("explanation", verdict.reason.explanation)
        json.field("until", verdict.until.rfc3339)
        json.field("proof", verdict.digest)
        json.field("evidence", verdict.evidence)
      }
    }
    return (outcome, writer.bytes + [0x0a])
  }
}
