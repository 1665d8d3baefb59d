import PurchasesContracts

/// A setting as it is in force, ready to be shown: secrets are masked.
public struct EffectiveSetting: Sendable {
  public let name: String
  /// Nil where nothing is set and nothing stands in for it.
  public let value: String?
  public let origin: SettingValues.Origin

  /// All of a deployment's, in their order; one with several values several times.
  public static func all(_ values: SettingValues) -> [EffectiveSetting] {
    Setting.all.flatMap { setting in
      guard let found = values.values[setting.name] else {
        return [EffectiveSetting(name: setting.name, value: standard(setting, values), origin: .standard)]
      }
      return found.values.map {
        EffectiveSetting(name: setting.name, value: mask(setting, $0), origin: found.origin)
      }
    }
  }

  private static func standard(_ setting: Setting, _ values: SettingValues) -> String? {
    switch setting {
    case .auditKey:
      (try? StoreAddress(values.text(.store) ?? Deployment.defaultStore)).map(AuditKey.standardPath)
    case .anchor: "the shipped Apple Root CA - G3"
    case _ where setting.placeholder == nil: "false"
    default: setting.standard
    }
  }

  /// Secrets stay out of what is printed: tokens, passwords in an address, and librdkafka's own.
  private static func mask(_ setting: Setting, _ value: String) -> String {
    if setting.isSecret { return "***" }
    if setting == .kafka, let mark = value.firstIndex(of: "=") {
      let name = value[..<mark].lowercased()
      let isSecret = ["password", "secret", "key.pem", "token", "jaas", "oauthbearer.config"].contains {
        name.contains($0)
      }
      return isSecret ? value[...mark] + "***" : value
    }
    return Redaction.address(value)
  }
}
