import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesLocalAppStore
import PurchasesRunner

extension Setting {
  static let folder = Setting(
    "dir", "DIR", "where the authority lives; made on first use, with root.der to configure as --anchor")
  static let asStore = Setting(
    "as-store", nil, "sign Xcode and LocalTesting payloads with the store's chain, as a forger would")
  static let gatewayURL = Setting("gateway", "URL", "play a scenario against this gateway, report and end")
  static let day = Setting("day", "TIME", "midnight of the scenario's day (RFC 3339; default 24 hours ago)")
}

extension Verb {
  static let appstore = Verb(
    words: ["appstore"], summary: "A local App Store: serves signing and scenarios over HTTP, or plays one scenario",
    settings: [.folder, .listen, .gatewayURL, .token, .seed, .accounts, .day, .json],
    examples: [
      "purchases appstore --dir store --listen 127.0.0.1:8090",
      "purchases appstore --dir store --gateway http://127.0.0.1:8080 --seed 7 --accounts 200",
    ],
    statuses: [(1, "it could not listen, or the gateway did not take everything")]
  ) { call in
    let stop = StopSignal()
    Signals.stop(stop)
    if let gateway = call.values.text(.gatewayURL) { return try play(call, gateway, stop) }
    let authority = try authority(call)
    let address = try Address(call.values.text(.listen) ?? "127.0.0.1:8090", setting: .listen)
    let server = try AppStoreServer(
      authority, settings: HTTPServer.Settings(address: address.host, port: address.port), clock: SystemClock())
    Output.error("the local App Store listens on \(Address(host: address.host, port: server.port))")
    stop.wait()
    return server.stop(within: 10) ? 0 : ExitStatus.failed
  }

  private static func authority(_ call: Call) throws -> LocalAuthority {
    guard let folder = call.values.text(.folder) else {
      throw UsageError("purchases \(call.verb.name): needs --dir DIR")
    }
    return try LocalAuthority(folder: folder)
  }

  private static func play(_ call: Call, _ gateway: String, _ stop: StopSignal) throws -> Int32 {
    let day =
      try instant(call, .day) ?? SystemClock().now().advanced(byMilliseconds: -Scenario.dayMilliseconds)
    let scenario = Scenario(
      seed: try call.values.number(.seed, 0...UInt64.max) ?? 1,
      accounts: try call.values.number(.accounts, 1...1_000_000) ?? 200, day: day)
    if let folder = call.values.text(.folder) {
      // A scenario signs under a root of its own, made from its seed: here is what to configure as --anchor.
      try ScenarioFolder.keep(scenario, in: folder)
    }
    let player = ScenarioPlayer(
      scenario, ScenarioPlayer.Settings(gateway: gateway, token: call.values.text(.token)), clock: nil)
    let report = player.play { now in
      Output.progress("\(now.steps) of \(now.allSteps) steps")
      if stop.isSet { player.stop() }
    }
    Output.endProgress()
    if try call.values.flag(.json) {
      Output.bytes(ScenarioFolder.json(report))
    } else {
      for line in DemoReport.lines("Events that the gateway took, by type", report.posted) { Output.line(line) }
      for line in DemoReport.lines("Answers to who wanted to finish", report.permits) { Output.line(line) }
      for line in report.failures { Output.line("failed: \(line)") }
    }
    return report.failed == 0 ? 0 : ExitStatus.failed
  }

  static let appstoreSign = Verb(
    words: ["appstore", "sign"], summary: "Sign a payload from standard input and print the JWS",
    settings: [.kind, .folder, .asStore],
    examples: ["purchases appstore sign --kind transaction --dir store < payload.json > transaction.jws"]
  ) { call in
    guard let kind = call.values.text(.kind).flatMap({ ProofKind(rawValue: $0) }) else {
      throw UsageError("--kind: must be one of \(ProofKind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    let authority = try authority(call)
    let payload = try Input.read("-", setting: "payload")
    do {
      Output.line(try authority.sign(kind, payload: payload, asStore: try call.values.flag(.asStore)))
    } catch let failure as SigningFailure { throw UsageError("the payload: \(failure)") }
    return 0
  }
}
