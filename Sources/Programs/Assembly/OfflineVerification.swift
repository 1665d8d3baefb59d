import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// Judges proofs without log, store or network: what `purchases verify` does.
public struct OfflineVerification {
  private let bundles: [String]
  var checksBundle: Bool { !bundles.isEmpty }
  private let appAppleID: Int64?
  /// Of a recorded verdict: what its deployment took, where nobody says otherwise.
  private let accepted: AcceptedProofs?
  /// The settings but for the apps, which the proof names itself where nobody else does.
  private let settings: @Sendable ([VerificationSettings.App]) throws -> VerificationSettings
  /// Judges by what they hold a proof against: each remembers the chains that it has seen.
  private var judges: [Claims: ProofJudge] = [:]
  /// More apps than anybody's proofs come from in one run.
  private static let rememberedJudges = 16

  public init(_ values: SettingValues, accepted: AcceptedProofs? = nil) throws(UsageError) {
    let environment = try TrustSettings.environment(values)
    self.accepted = accepted
    bundles = values.texts(.bundleID)
    appAppleID = try values.number(.appAppleID, 1...Int64.max)
    let environments = environment.map { [$0] } ?? accepted?.environments ?? [.production, .sandbox]
    if let environment, environment.isSignedLocally {
      let pinned = try TrustSettings.localAnchors(values, environment)
      settings = { try VerificationSettings(apps: $0, environments: environments, localCertificates: pinned) }
    } else {
      let anchors = try TrustSettings.anchors(values) ?? AppleRoots.storeKit
      settings = { try VerificationSettings(apps: $0, anchors: anchors, environments: environments) }
    }
    // What is wrong with the settings is told before the first proof.
    _ = try judge(for: Claims())
  }

  private mutating func judge(for claims: Claims) throws(UsageError) -> ProofJudge {
    if let judge = judges[claims] { return judge }
    var apps = (bundles.isEmpty ? [claims.bundleID ?? "none"] : bundles).map {
      VerificationSettings.App(bundleID: $0, appAppleID: appAppleID ?? claims.appAppleID ?? 0)
    }
    if let accepted, bundles.isEmpty { apps = accepted.apps }
    let judge: ProofJudge
    do { judge = ProofJudge(try settings(apps)) } catch { throw UsageError("\(error)") }
    if judges.count == Self.rememberedJudges { judges.removeAll() }
    judges[claims] = judge
    return judge
  }

  public static func kind(_ text: String?) throws(UsageError) -> ProofKind? {
    guard let text else { return nil }
    guard let kind = ProofKind(rawValue: text), ProofKind.jws.contains(kind) else {
      throw UsageError("--kind: must be one of \(ProofKind.jws.map(\.rawValue).joined(separator: ", "))")
    }
    return kind
  }

  /// What the proof says of itself, for checks that were not asked for: they then compare it with itself.
  private struct Claims: Hashable {
    var bundleID: String?
    var appAppleID: Int64?

    init() {}

    init(unverified proof: [UInt8], butBundles givesBundles: Bool, butID givesID: Bool) {
      guard let jws = try? CompactJWS.split(proof), let root = try? JSONDocument(parsing: jws.payload).root else {
        return
      }
      for place in [root, root["data"], root["summary"], root["appData"], root["externalPurchaseToken"]] {
        bundleID = bundleID ?? place?["bundleId"]?.string
        appAppleID = appAppleID ?? place?["appAppleId"]?.int64
      }
      if bundleID?.isEmpty == true || givesBundles { bundleID = nil }
      if givesID { appAppleID = nil }
    }
  }

  public enum Outcome: Sendable {
    case verified, rejected, pending

    init(_ verdict: Verdict) {
      self =
        switch verdict {
        case .verified: .verified
        case .rejected: .rejected
        case .pending: .pending
        }
    }
  }

  /// - Parameter proof: a compact JWS, as it was sent.
  mutating func verdict(
    on proof: [UInt8], kind: ProofKind?, source: RevisionSource = .client, at: Instant,
    revocation: RevocationCheck? = nil
  ) throws(UsageError) -> Verdict {
    let claims = Claims(unverified: proof, butBundles: !bundles.isEmpty, butID: appAppleID != nil)
    return try judge(for: claims).judge(proof, expecting: kind, source: source, at: at, revocation: revocation)
  }

  /// White space at the end of the proof is passed over, for files end in a newline.
  public mutating func run(
    _ proof: [UInt8], kind: ProofKind?, at: Instant, line: Line? = nil
  ) throws(UsageError) -> (outcome: Outcome, json: [UInt8]) {
    let verdict = try verdict(on: Files.withoutTrailingSpace(proof), kind: kind, at: at)
    var writer = JSONWriter(reserving: 2048)
    writer.object { json in
      json.field("line", line?.number)
      json.field("id", line?.id)
      Self.write(verdict, checksBundle: checksBundle, &json)
    }
    return (Outcome(verdict), writer.bytes + [0x0a])
  }
}
