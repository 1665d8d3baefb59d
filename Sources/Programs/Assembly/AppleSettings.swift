import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPClient
import PurchasesRunner
import PurchasesVerification

extension Setting {
  public static let apiKey = Setting("api-key", "FILE", "the App Store Server API key (.p8) of App Store Connect")
  public static let apiKeyID = Setting("api-key-id", "ID", "the key's id")
  public static let apiIssuerID = Setting("api-issuer-id", "ID", "the issuer id of App Store Connect")
  public static let apiHost = Setting(
    "api-host", "URL", "the App Store Server API in production", standard: AppleHost.serverAPI.url)
  public static let apiSandboxHost = Setting(
    "api-sandbox-host", "URL", "the App Store Server API in the sandbox", standard: AppleHost.sandboxServerAPI.url)
  public static let sharedSecret = Setting(
    "shared-secret", "SECRET", "the app's shared secret for verifyReceipt; better in the environment than in a flag",
    secret: true)
  public static let receiptHost = Setting(
    "receipt-host", "URL", "verifyReceipt in production", standard: AppleHost.verifyReceipt.url)
  public static let receiptSandboxHost = Setting(
    "receipt-sandbox-host", "URL", "verifyReceipt in the sandbox", standard: AppleHost.sandboxVerifyReceipt.url)
  public static let appleCA = Setting(
    "apple-ca", "FILE", "certificates (PEM) to trust Apple's hosts by, in place of the system's; for tests")

  static let apiAlone: [Setting] = [apiKey, apiKeyID, apiIssuerID, apiHost, apiSandboxHost]
  public static let serverAPI: [Setting] = apiAlone + [appleCA]
  public static let revocation = Setting(
    "revocation", "POLICY",
    "where nobody can tell whether a signer's certificate was revoked: off (nobody is asked), soft (noted) or hard (waits)",
    standard: RevocationPolicy.soft.rawValue)
  public static let verifyReceipt: [Setting] = [sharedSecret, receiptHost, receiptSandboxHost, appleCA]
}

/// How Apple's servers are reached, from the settings.
public struct AppleSettings: Sendable {
  private let values: SettingValues

  public init(_ values: SettingValues) { self.values = values }

  /// The side that `--environment` names.
  public func side() throws(UsageError) -> AppleSide {
    let environment = try TrustSettings.environment(values) ?? .production
    guard let side = AppleSide(environment) else {
      throw UsageError(
        "--environment: Apple's servers know Production and Sandbox only, and not \(environment.rawValue)")
    }
    return side
  }

  /// Whether the settings name a key at all.
  public var hasKey: Bool { values.text(.apiKey) != nil }

  /// The key with the one app that it is used for.
  public func key() throws(UsageError) -> APIKey {
    func needed(_ setting: Setting) throws(UsageError) -> String {
      guard let text = values.text(setting) else {
        throw UsageError("--\(setting.name): is missing: the App Store Server API needs it")
      }
      return text
    }
    let bundles = values.texts(.bundleID)
    guard bundles.count == 1, let bundle = bundles.first else {
      throw UsageError("--bundle-id: the App Store Server API is asked for one app at a time: name one")
    }
    let path = try needed(.apiKey)
    let text = String(decoding: try Files.read(path, .apiKey), as: UTF8.self)
    let issuer = try needed(.apiIssuerID)
    let id = try needed(.apiKeyID)
    do { return try APIKey(issuerID: issuer, keyID: id, bundleID: bundle, p8: text) } catch {
      throw UsageError("--api-key \(path): \(error)")
    }
  }

  public func serverAPI(_ side: AppleSide, clock: any Clock, alarms: @escaping StoreAlarms) throws(UsageError)
    -> ServerAPI
  {
    let settings = ServerAPI.Settings(
      side: side, host: try host(side == .production ? .apiHost : .apiSandboxHost), caFile: values.text(.appleCA))
    return ServerAPI(settings, key: try key(), clock: clock, alarms: alarms)
  }

  /// For one call of `verifyReceipt`. Responders, the questions of a batch and the last call's second side must be over before the
  /// group gives the stage's partitions away: 9, 10 and 10 s of 30 by default.
  private static let receiptSeconds = 5.0

  /// A client of `verifyReceipt`, which asks the environment's own side first.
  public func receipts(clock: any Clock, alarms: @escaping StoreAlarms) throws(UsageError) -> ReceiptClient {
    let own = ReceiptClient.Settings()
    let hosts = BothSides(
      production: try host(.receiptHost) ?? own.hosts.production,
      sandbox: try host(.receiptSandboxHost) ?? own.hosts.sandbox)
    return ReceiptClient(
      ReceiptClient.Settings(
        hosts: hosts, first: try side(), secret: values.text(.sharedSecret).map(Secret.init),
        totalSeconds: Self.receiptSeconds, caFile: values.text(.appleCA)), clock: clock, alarms: alarms)
  }

  /// The port of the verification stage to Apple; nil where Apple knows nothing of the environment.
  public func desk(clock: any Clock, alarms: @escaping StoreAlarms) throws(UsageError) -> AppStoreDesk? {
    let environment = try TrustSettings.environment(values) ?? .production
    guard AppleSide(environment) != nil else { return nil }
    let http = HTTPClient(HTTPClient.Settings(maxAnswer: OCSP.maximumAnswerBytes))
    let responders = try Self.revocation(values) == .off ? nil : Responders(http: http, clock: clock)
    return AppStoreDesk(receipts: try receipts(clock: clock, alarms: alarms), others: responders, clock: clock)
  }

  static func revocation(_ values: SettingValues) throws(UsageError) -> RevocationPolicy {
    guard let text = values.text(.revocation) else { return .soft }
    guard let policy = RevocationPolicy(rawValue: text) else {
      throw UsageError(
        "--revocation: must be one of \(RevocationPolicy.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return policy
  }

  private func host(_ setting: Setting) throws(UsageError) -> AppleHost? {
    guard let text = values.text(setting) else { return nil }
    do { return try AppleHost(text) } catch { throw UsageError("--\(setting.name): \(error)") }
  }

  /// Alarms as log lines and a counter.
  public static func alarms(_ logger: Logger, _ metrics: Metrics) -> StoreAlarms {
    { alarm in
      metrics.count(
        "purchases_apple_alarms_total", "What went wrong at Apple's servers, by kind", ["kind": alarm.kind.rawValue])
      logger.error(
        "Apple's servers", ["kind": alarm.kind.rawValue, "place": alarm.place, "reason": alarm.detail])
    }
  }
}
