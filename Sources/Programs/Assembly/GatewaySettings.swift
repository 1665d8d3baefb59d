import PurchasesContracts
import PurchasesGateway
import PurchasesHTTPServer

/// The gateway's settings, from the deployment's.
public struct GatewaySettings {
  public let settings: Gateway.Settings

  public static let defaultListen = "127.0.0.1:8080"

  public init(_ values: SettingValues, _ deployment: Deployment) throws(UsageError) {
    let address = try Address(values.text(.listen) ?? Self.defaultListen, setting: .listen)
    settings = Gateway.Settings(
      http: HTTPServer.Settings(address: address.host, port: address.port), tokens: values.texts(.token),
      topics: deployment.topics)
  }
}
