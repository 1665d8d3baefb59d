import PurchasesGateway

/// One setting: the same name as a flag (`--log`), in the environment (`PURCHASES_LOG`) and in a file (`log = …`).
public struct Setting: Sendable, Hashable {
  public let name: String
  /// What stands for the value in a usage line; nil for a switch.
  public let placeholder: String?
  private let meaning: String
  /// What is in force where nobody sets it; nil where that is nothing at all, or depends on other settings.
  public let standard: String?
  public let isRepeatable: Bool
  public let isSecret: Bool

  public init(
    _ name: String, _ placeholder: String?, _ help: String, standard: String? = nil, repeatable: Bool = false,
    secret: Bool = false
  ) {
    self.name = name
    self.placeholder = placeholder
    meaning = help
    self.standard = standard
    isRepeatable = repeatable
    isSecret = secret
  }

  public var help: String { meaning + (standard.map { " (default \($0))" } ?? "") }

  /// The same setting where it means something of its own to one command.
  public func explained(_ help: String, repeatable: Bool? = nil) -> Setting {
    Setting(name, placeholder, help, repeatable: repeatable ?? isRepeatable, secret: isSecret)
  }

  public var environmentName: String {
    "PURCHASES_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  }
}

extension Setting {
  public static let log = Setting(
    "log", "URL", "the log: sqlite:PATH or kafka://HOST:PORT,HOST:PORT", standard: Deployment.defaultLog)
  public static let kafka = Setting(
    "kafka", "NAME=VALUE", "a librdkafka setting, passed through (security.protocol=SASL_SSL, …)", repeatable: true)
  public static let store = Setting(
    "store", "URL", "the store: sqlite:PATH or postgres://…", standard: Deployment.defaultStore)
  public static let prefix = Setting(
    "prefix", "TEXT", "what topic names begin with", standard: Deployment.defaultPrefix)
  public static let partitions = Setting(
    "partitions", "N", "partitions of each topic when it is created",
    standard: String(Deployment.defaultPartitions))
  public static let replication = Setting(
    "replication", "N", "replicas of each topic when it is created",
    standard: String(Deployment.defaultReplication))
  public static let group = Setting(
    "group", "NAME", "what consumer group names begin with", standard: Deployment.defaultGroup)
  public static let instance = Setting(
    "instance", "NAME", "names this process for good: static membership, and a second one of the name fences it")
  public static let catalogue = Setting(
    "catalogue", "FILE", "the catalogue of products (JSON); without it, those that were published to the log")
  public static let environment = Setting(
    "environment", "NAME",
    "what this deployment serves: Production (with App Review's Sandbox purchases beside it), Sandbox, Xcode or LocalTesting",
    standard: "Production")
  public static let bundleID = Setting("bundle-id", "ID", "an app of this deployment", repeatable: true)
  public static let appAppleID = Setting("app-apple-id", "NUMBER", "the app's Apple id; Production needs it")
  public static let anchor = Setting(
    "anchor", "FILE", "a root certificate (DER) in place of the shipped Apple Root CA - G3", repeatable: true)
  public static let receiptAnchor = Setting(
    "receipt-anchor", "FILE", "a root certificate (DER) of app receipts in place of the shipped Apple Root CA",
    repeatable: true)
  public static let localCertificate = Setting(
    "local-certificate", "FILE", "the certificate (DER) that Xcode or local testing signs with", repeatable: true)
  public static let restorePolicy = Setting(
    "restore-policy", "NAME", "a restore on another account: keep, transfer or share", standard: "keep")
  static let standardDamping = "P1D"
  public static let restoreDamping = Setting(
    "restore-damping", "DURATION",
    "a purchase that was transferred by a restore stays for this long (ISO 8601; 0: none)",
    standard: standardDamping)
  public static let listen = Setting(
    "listen", "HOST:PORT", "where the gateway listens; port 0: any", standard: GatewaySettings.defaultListen)
  public static let health = Setting("health", "HOST:PORT", "where /livez, /readyz and /metrics are served by a stage")
  public static let token = Setting(
    "token", "SECRET",
    "what back ends send as a bearer token, at least \(Gateway.Settings.minimumTokenBytes) visible ASCII characters; needed "
      + "to listen beyond this host", repeatable: true, secret: true)
  public static let auditName = Setting(
    "audit-name", "NAME", "the origin of audit checkpoints", standard: AuditKey.defaultName)
  public static let auditKey = Setting(
    "audit-key", "FILE", "the Ed25519 seed that signs checkpoints, made on first use (default beside the store)")
  public static let untilIdle = Setting("until-idle", nil, "work off all there is, then exit 0")
  public static let verbose = Setting("verbose", nil, "log more")
  public static let config = Setting("config", "FILE", "a file of settings, one `name = value` a line")
  public static let json = Setting("json", nil, "print JSON")

  public static let connection: [Setting] = [log, kafka, store, prefix, partitions, replication, group, config]
  public static let trust: [Setting] = [environment, bundleID, appAppleID, anchor, receiptAnchor, localCertificate]
  public static let stages: [Setting] =
    trust + [catalogue, restorePolicy, restoreDamping, auditName, auditKey, instance, untilIdle, verbose] + [revocation]
    + verifyReceipt
  public static let service: [Setting] = [listen, token]
  public static let all: [Setting] = connection + stages + service + [health] + apiAlone
}
