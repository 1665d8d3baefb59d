import PurchasesAssembly
import PurchasesContracts
import PurchasesRunner

extension Verb {
  static let run = Verb(
    words: ["run"], summary: "Gateway and all stages in one process",
    settings: Setting.connection + Setting.stages + Setting.service,
    examples: [
      "purchases run --bundle-id com.example.app --app-apple-id 1234567890 --catalogue catalogue.json",
      "purchases run --log kafka://localhost:9092 --store postgres:///purchases --until-idle …",
    ],
    statuses: [(1, "a stage or the gateway could not go on")]
  ) { call in
    try service(
      call, stages: StageName.allCases, gateway: !call.values.flag(.untilIdle) || call.values.text(.listen) != nil)
  }

  static let gateway = Verb(
    words: ["gateway"], summary: "The HTTP door alone",
    settings: Setting.connection + Setting.service + [.instance, .verbose],
    examples: [
      "purchases gateway --listen 0.0.0.0:8080 --token \"$TOKEN\" --log kafka://localhost:9092 --store postgres:///purchases"
    ],
    statuses: [(1, "the gateway could not go on")]
  ) { call in try service(call, stages: [], gateway: true) }

  static let stage = Verb(
    words: ["stage"], summary: "One stage alone: verification, ownership, entitlements or auditing",
    arguments: ["STAGE"],
    settings: Setting.connection + Setting.stages + [.health],
    examples: [
      "purchases stage verification --log kafka://localhost:9092 --bundle-id com.example.app --app-apple-id 1234567890",
      "purchases stage entitlements --log kafka://localhost:9092 --store postgres:///purchases --catalogue catalogue.json",
    ],
    statuses: [(1, "the stage could not go on")]
  ) { call in
    guard let name = StageName(rawValue: call.arguments[0]) else {
      throw UsageError(
        "purchases stage: STAGE must be one of \(StageName.allCases.map(\.rawValue).joined(separator: ", ")), and not "
          + call.arguments[0])
    }
    return try service(call, stages: [name], gateway: false)
  }

  private static func service(_ call: Call, stages names: [StageName], gateway: Bool) throws -> Int32 {
    let stop = StopSignal()
    Signals.stop(stop)
    let deployment = try Deployment(call.values, quietly: call.values.flag(.untilIdle))
    let factory = StageFactory(call.values, deployment)
    let entitlements: Service.Catalogues? =
      names.contains(.entitlements) ? try factory.givenCatalogue().map { .file($0) } ?? .published : nil
    let appStore =
      names.contains(.verification)
      ? try AppleSettings(call.values).desk(
        clock: deployment.clock, alarms: AppleSettings.alarms(deployment.logger, deployment.metrics)) : nil
    let made = try factory.stages(names.filter { $0 != .entitlements })
    let service: Service
    do {
      service = try Service(
        deployment, stages: made, entitlements: entitlements, appStore: appStore,
        isPatient: !call.values.flag(.untilIdle), stop: stop)
    } catch is Service.Stopped { return 0 }
    do {
      if gateway {
        let settings = try GatewaySettings(call.values, deployment).settings
        let port = try service.openGateway(settings)
        deployment.logger.info("listening", ["address": Address(host: settings.http.address, port: port).description])
      } else if let text = call.values.text(.health) {
        let address = try Address(text, setting: .health)
        let port = try service.openHealth(address)
        deployment.logger.info("health is served", ["address": Address(host: address.host, port: port).description])
      }
      if try call.values.flag(.untilIdle) { try service.waitUntilIdle() } else { stop.wait() }
    } catch {
      let failure = service.close()
      guard error is Service.Stopped else { throw error }
      if let failure { throw failure }
      return 0
    }
    if let failure = service.close() { throw failure }
    return 0
  }
}
