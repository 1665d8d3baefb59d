import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesVerification

/// What a deployment verifies, from its settings. Incomplete or contradictory ones are refused by name.
public struct TrustSettings {
  public let verification: VerificationSettings

  public init(_ values: SettingValues) throws {
    let environment = try Self.environment(values) ?? .production
    let bundles = values.texts(.bundleID)
    guard !bundles.isEmpty else { throw UsageError("--bundle-id: is missing: every purchase would be another app's") }
    let apple: Int64? = try values.number(.appAppleID, 1...Int64.max)
    guard environment != .production || apple != nil else {
      throw UsageError("--app-apple-id: is missing: a Production deployment needs it")
    }
    var anchors = AppleRoots.storeKit
    if let given = try Self.anchors(values) { anchors = given }
    let locals = try values.texts(.localCertificate).map { (label: $0, der: try Files.read($0, .localCertificate)) }
    do {
      verification = try VerificationSettings(
        apps: bundles.map { VerificationSettings.App(bundleID: $0, appAppleID: apple) }, anchors: anchors,
        receiptAnchors: try Self.anchors(values, .receiptAnchor) ?? AppleRoots.receipts,
        environments: Self.accepted(by: environment),
        localCertificates: locals.isEmpty ? nil : try PinnedCertificates(locals),
        revocation: environment.isSignedLocally ? .off : try AppleSettings.revocation(values))
    } catch let failure as VerificationSettingsFailure { throw UsageError(failure.description) } catch let failure
      as TrustAnchorError
    { throw UsageError("--local-certificate: \(failure)") }
  }

  /// A production deployment also verifies what App Review buys in the sandbox, and keeps it there.
  static func accepted(by environment: Environment) -> Set<Environment> {
    environment == .production ? [.production, .sandbox] : [environment]
  }

  public static func environment(_ values: SettingValues) throws(UsageError) -> Environment? {
    guard let text = values.text(.environment) else { return nil }
    guard let environment = Environment(rawValue: text) else {
      throw UsageError("--environment: must be one of \(Environment.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return environment
  }

  /// What signs for Xcode and local testing is one certificate of its own: where one proof is judged, the anchor is that
  /// certificate.
  static func localAnchors(
    _ values: SettingValues, _ environment: Environment
  ) throws(UsageError) -> PinnedCertificates {
    var certificates: [(label: String, der: [UInt8])] = []
    for path in values.texts(.anchor) { certificates.append((path, try Files.read(path, .anchor))) }
    guard !certificates.isEmpty else {
      throw UsageError("--anchor: \(environment.rawValue) needs the certificate that it signs with")
    }
    do { return try PinnedCertificates(certificates) } catch { throw UsageError("\(error)") }
  }

  static func anchors(_ values: SettingValues, _ setting: Setting = .anchor) throws(UsageError) -> TrustAnchors? {
    var sources: [(label: String, der: [UInt8])] = []
    for path in values.texts(setting) { sources.append((path, try Files.read(path, setting))) }
    guard !sources.isEmpty else { return nil }
    do { return try TrustAnchors(sources) } catch { throw UsageError("--\(setting.name): \(error)") }
  }
}
