import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// Whose proofs a deployment takes. It stands in the evidence of those that were refused for it, since another deployment
/// would have taken them.
public struct AcceptedProofs: Sendable, Hashable {
  public var apps: [VerificationSettings.App]
  public var environments: Set<Environment>

  init(apps: [VerificationSettings.App], environments: Set<Environment>) {
    self.apps = apps
    self.environments = environments
  }

  /// Reads it from an evidence; nil where these settings did not decide.
  public init?(evidence: JSONView) throws(FieldFailure) {
    guard let fields = try Fields(evidence, path: "evidence").object("accepted") else { return nil }
    var apps: [VerificationSettings.App] = []
    for element in fields.member("apps")?.elements ?? [] {
      let app = try Fields(element, path: fields.name("apps"))
      apps.append(.init(bundleID: try app.requiredText("bundleId"), appAppleID: try app.integer("appAppleId")))
    }
    var environments: Set<Environment> = []
    for element in fields.member("environments")?.elements ?? [] {
      guard let environment = element.string.flatMap({ Environment(rawValue: $0) }) else {
        throw fields.failure("environments", "holds an unknown environment")
      }
      environments.insert(environment)
    }
    self.init(apps: apps, environments: environments)
  }

  var json: JSON {
    .object([
      "apps": .array(
        apps.map { app in
          var members: JSONObject = ["bundleId": .string(app.bundleID)]
          if let id = app.appAppleID { members["appAppleId"] = .integer(id) }
          return .object(members)
        }),
      "environments": .array(environments.map(\.rawValue).sorted().map(JSON.string)),
    ])
  }
}

extension VerificationSettings {
  var accepted: AcceptedProofs { AcceptedProofs(apps: apps, environments: environments) }
}

extension Reason {
  /// Whether another deployment might have taken the proof.
  var isOfSettings: Bool {
    switch self {
    case .claim(.wrongBundle), .claim(.wrongAppAppleID), .claim(.environmentNotAccepted): true
    default: false
    }
  }
}
