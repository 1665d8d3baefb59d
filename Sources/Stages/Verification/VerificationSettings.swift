import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// What a deployment verifies, and under which trust. Incomplete or contradictory settings can't be built: the program
/// refuses to start with them.
public struct VerificationSettings: Sendable {
  /// An app whose purchases the deployment takes.
  public struct App: Sendable, Hashable {
    public var bundleID: String
    /// The number in the app's App Store address; needed for Production.
    public var appAppleID: Int64?

    public init(bundleID: String, appAppleID: Int64? = nil) {
      self.bundleID = bundleID
      self.appAppleID = appAppleID
    }
  }

  /// Five minutes: clocks of servers that keep time at all differ by less; a purchase dated further ahead waits.
  public static let defaultFutureSkewMilliseconds: Int64 = 300_000

  public let apps: [App]
  public let anchors: TrustAnchors
  /// The RSA roots of app receipts.
  public let receiptAnchors: TrustAnchors
  public let environments: Set<Environment>
  /// Certificates that sign for Xcode and local testing, each trusted for itself.
  public let localCertificates: PinnedCertificates?
  public let futureSkewMilliseconds: Int64
  public let revocation: RevocationPolicy

  /// - Parameters:
  ///   - environments: Production and Sandbox unless said otherwise: App Review buys in the sandbox.
  ///   - localCertificates: needed for Xcode and LocalTesting, which no deployment takes together with Production.
  public init(
    apps: [App], anchors: TrustAnchors = AppleRoots.storeKit, receiptAnchors: TrustAnchors = AppleRoots.receipts,
    environments: Set<Environment> = [.production, .sandbox], localCertificates: PinnedCertificates? = nil,
    futureSkewMilliseconds: Int64 = VerificationSettings.defaultFutureSkewMilliseconds,
    revocation: RevocationPolicy = .off
  ) throws(VerificationSettingsFailure) {
    guard !apps.isEmpty else { throw .noApp }
    guard apps.allSatisfy({ !$0.bundleID.isEmpty }) else { throw .emptyBundleID }
    guard Set(apps.map(\.bundleID)).count == apps.count else { throw .repeatedBundleID }
    guard !environments.isEmpty else { throw .noEnvironment }
    guard futureSkewMilliseconds >= 0 else { throw .negativeSkew }
    if environments.contains(.production) {
      if let app = apps.first(where: { $0.appAppleID == nil }) { throw .appAppleIDMissing(bundleID: app.bundleID) }
      guard localCertificates == nil, !environments.contains(where: \.isSignedLocally) else {
        throw .localTestingInProduction
      }
    }
    let takesLocal = environments.contains(where: \.isSignedLocally)
    if takesLocal && localCertificates == nil { throw .localCertificatesMissing }
    if !takesLocal && localCertificates != nil { throw .localCertificatesUnused }
    self.apps = apps
    self.anchors = anchors
    self.receiptAnchors = receiptAnchors
    self.environments = environments
    self.localCertificates = localCertificates
    self.futureSkewMilliseconds = futureSkewMilliseconds
    self.revocation = revocation
  }
}

/// Why settings are refused at start.
public enum VerificationSettingsFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case noApp
  case emptyBundleID
  case repeatedBundleID
  case noEnvironment
  case negativeSkew
  case appAppleIDMissing(bundleID: String)
  case localTestingInProduction
  case localCertificatesMissing
  case localCertificatesUnused

  public var description: String {
    switch self {
    case .noApp: "no bundle id is configured: every purchase would be another app's"
    case .emptyBundleID: "a bundle id is empty"
    case .repeatedBundleID: "a bundle id is configured twice"
    case .noEnvironment: "no environment is accepted: every purchase would be rejected"
    case .negativeSkew: "the limit on dates in the future must not be negative"
    case .appAppleIDMissing(let bundleID):
      "Production is accepted, but the app Apple id of \(bundleID) is not configured"
    case .localTestingInProduction:
      "Xcode and LocalTesting are not signed by Apple: a deployment that accepts Production can't take them"
    case .localCertificatesMissing: "Xcode or LocalTesting is accepted, but no local certificate is configured"
    case .localCertificatesUnused: "a local certificate is configured, but neither Xcode nor LocalTesting is accepted"
    }
  }
}
