import PurchasesAuditing
import PurchasesContracts
import PurchasesCryptography

/// The key that signs a deployment's checkpoints, and the public half that everybody checks them with.
public enum AuditKey {
  public static let defaultName = "purchases.local/audit"

  static func path(_ values: SettingValues, _ deployment: Deployment) -> String {
    values.text(.auditKey) ?? standardPath(beside: deployment.store)
  }

  static func standardPath(beside store: StoreAddress) -> String {
    if case .sqlite(let path) = store { return path + ".audit-key" }
    return "purchases.audit-key"
  }

  static func name(_ values: SettingValues) -> String { values.text(.auditName) ?? defaultName }

  public static func settings(_ values: SettingValues, _ deployment: Deployment) throws(UsageError) -> AuditSettings {
    try settings(in: path(values, deployment), named: name(values), deployment)
  }

  /// Of the key in a file, which is made on first use.
  static func settings(
    in path: String, named name: String, _ deployment: Deployment
  ) throws(UsageError) -> AuditSettings {
    let seed = try Files.secret(path, .auditKey)
    guard let key = Ed25519PrivateKey(seed: seed) else { throw UsageError("--audit-key: is no Ed25519 seed") }
    do { return try AuditSettings(topics: deployment.topics, name: name, key: key) } catch {
      throw UsageError("--audit-name or --prefix: no checkpoint can be signed under it (\(error.rawValue))")
    }
  }

  /// The public key: as given, else derived from the deployment's own.
  public static func verifier(_ values: SettingValues, _ deployment: Deployment) throws(UsageError) -> NoteVerifier {
    if let text = values.text(.vkey) {
      do { return try NoteVerifier(text: text) } catch {
        throw UsageError("--vkey: must be NAME+HEX+BASE64 (\(error.rawValue))")
      }
    }
    let path = path(values, deployment)
    guard Files.exists(path) else {
      throw UsageError("--vkey: is missing, and there is no --audit-key \(path) to take it from")
    }
    return try settings(values, deployment).verifierKey
  }
}

extension Setting {
  public static let vkey = Setting("vkey", "KEY", "the public key of the audit log (default: from --audit-key)")
}
