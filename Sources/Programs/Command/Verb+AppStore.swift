import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import PurchasesLocalAppStore
import PurchasesRunner

extension Setting {
  static let folder = Setting(
    "dir", "DIR",
    "serving: the authority's folder, made on first use, with root.der to configure as --anchor; playing: where "
      + "\(ScenarioFolder.root) and \(ScenarioFolder.catalogue) are put")
  static let asStore = Setting(
    "as-store", nil, "sign Xcode and LocalTesting payloads with the store's chain, as a forger would")
  static let form = Setting("form", "NAME", "of a receipt: der, or ber with open lengths as Xcode writes (default der)")
  static let fault = Setting(
    "fault", "NAME",
    "of a receipt: what to do wrong: \(ReceiptFault.allCases.map(\.rawValue).joined(separator: ", "))")
  static let gatewayURL = Setting("gateway", "URL", "play a scenario against this gateway, report and end")
  static let production = Setting(
    "production", "HOST:PORT", "serving: play Apple's production servers here, over TLS (verifyReceipt and Server API)")
  static let responder = Setting(
    "responder", "HOST:PORT", "serving: play the OCSP responder here; the certificates then name it")
  static let sandboxServers = Setting(
    "sandbox", "HOST:PORT", "serving: play Apple's sandbox servers here, over TLS (default a free port)")
  static let day = Setting("day", "TIME", "midnight of the scenario's day (RFC 3339; default yesterday's, UTC)")
}

extension Verb {
  private static let defaultListen = "127.0.0.1:8090"
  private static let defaultAccounts = 200

  static let appstore = Verb(
    words: ["appstore"], summary: "A local App Store: serves signing and scenarios over HTTP, or plays one scenario",
    notes: [
      "Without --gateway it serves until it is stopped: signing under the authority in --dir, and scenarios on request.",
      "With --production it also plays Apple's servers, over TLS: give their clients DIR/tls.pem as --apple-ca,",
      "DIR/AuthKey_\(APICredentials.keyID).p8 as --api-key, \(APICredentials.keyID) as --api-key-id and",
      "\(APICredentials.issuerID) as --api-issuer-id. What they have sold and sent, and how they fail,",
      "is told to the first port: POST /v1/books/KIND, POST /v1/outages.",
      "With --gateway it plays one scenario. That is signed under a root of its own, made from --seed, and sells its own",
      "products: with --dir it writes \(ScenarioFolder.root) and \(ScenarioFolder.catalogue) there before its first request,",
      "also where no gateway answers yet. Start the gateway and stages with",
      "  --anchor DIR/\(ScenarioFolder.root) --catalogue DIR/\(ScenarioFolder.catalogue)",
      "  --bundle-id \(DemoCatalogue.bundleID) --app-apple-id \(DemoCatalogue.appAppleID)",
      "and play again. A gateway that restarts in mid-play is waited for; one that is not there is told at once.",
    ],
    settings: [
      .folder,
      .listen.explained("serving: where the local App Store listens (default \(defaultListen); port 0: any)"),
      .production, .sandboxServers, .responder,
      .sharedSecret.explained("serving: the secret that verifyReceipt asks for"),
      .gatewayURL, .token.explained("playing: the bearer token that the gateway asks for", repeatable: false),
      .seed.explained("playing: the same seed gives the same scenario (default 1)"),
      .accounts.explained("playing: how many users take part (default \(defaultAccounts))"),
      .day.explained("playing: \(Setting.day.help)"), .json.explained("playing: print the report as JSON"),
    ],
    examples: [
      "purchases appstore --dir store --listen 127.0.0.1:8090",
      "purchases appstore --dir store --gateway http://127.0.0.1:8080 --seed 7 --accounts 200",
    ],
    statuses: [
      (1, "it could not listen, the gateway can't be reached or did not take everything, or the play was stopped")
    ]
  ) { call in
    let stop = StopSignal()
    Signals.stop(stop)
    if let gateway = call.values.text(.gatewayURL) { return try play(call, gateway, stop) }
    let responder = try call.values.text(.responder).map { text in
      let address = try Address(text, setting: .responder)
      return try ResponderServer(
        HTTPServer.Settings(address: address.host, port: address.port), clock: SystemClock())
    }
    defer { responder?.stop(within: 10) }
    let authority = try authority(call, responder: responder?.url)
    responder?.serve(authority)
    let address = try Address(call.values.text(.listen) ?? defaultListen, setting: .listen)
    let apple = try appleServers(call, authority)
    defer { apple?.stop(within: 10) }
    let server = try AppStoreServer(
      authority, settings: HTTPServer.Settings(address: address.host, port: address.port), clock: SystemClock(),
      apple: apple, responder: responder)
    if let responder { Output.error("the OCSP responder is played at \(responder.url)") }
    if let apple {
      for environment in [Environment.production, .sandbox] {
        Output.error("Apple's \(environment.rawValue) servers are played on port \(apple.port(environment))")
      }
    }
    Output.error("the local App Store listens on \(Address(host: address.host, port: server.port))")
    stop.wait()
    return server.stop(within: 10) ? 0 : ExitStatus.failed
  }

  private static func appleServers(_ call: Call, _ authority: LocalAuthority) throws -> AppleServers? {
    guard let text = call.values.text(.production), let folder = call.values.text(.folder) else { return nil }
    let files = try authority.keepServerFiles(in: folder)
    let tls = HTTPServer.Settings.TLS(certificatePath: files.certificate, keyPath: files.key)
    func settings(_ text: String, _ setting: Setting) throws -> HTTPServer.Settings {
      let address = try Address(text, setting: setting)
      return HTTPServer.Settings(address: address.host, port: address.port, tls: tls)
    }
    return try AppleServers(
      AppleBooks(authority),
      settings: AppleServers.Settings(
        production: try settings(text, .production),
        sandbox: try settings(call.values.text(.sandboxServers) ?? "127.0.0.1:0", .sandboxServers),
        secret: call.values.text(.sharedSecret)), clock: SystemClock())
  }

  private static func authority(_ call: Call, responder: String? = nil) throws -> LocalAuthority {
    guard let folder = call.values.text(.folder) else {
      throw UsageError("purchases \(call.verb.name): needs --dir DIR")
    }
    return try LocalAuthority(folder: folder, responder: responder)
  }

  private static func play(_ call: Call, _ gateway: String, _ stop: StopSignal) throws -> Int32 {
    guard gateway.hasPrefix("http://") || gateway.hasPrefix("https://") else {
      throw UsageError("--gateway: must be a URL, such as http://127.0.0.1:8080")
    }
    let asJSON = try call.values.flag(.json)
    let day = try instant(call, .day) ?? Scenario.dayBefore(SystemClock().now())
    let scenario = Scenario(
      seed: try call.values.number(.seed, 0...UInt64.max) ?? 1,
      accounts: try call.values.number(.accounts, 1...1_000_000) ?? defaultAccounts, day: day)
    // A scenario signs under a root of its own, made from its seed: a deployment needs it before it can take anything.
    let folder = call.values.text(.folder)
    if let folder { try ScenarioFolder.keep(scenario, in: folder) }
    let player = ScenarioPlayer(
      scenario, ScenarioPlayer.Settings(gateway: gateway, token: call.values.text(.token)), clock: nil)
    let report = ScenarioWatch(player).play(until: stop)
    if let reason = report.unreachable {
      let written = folder.map { "; \($0) holds the root and the catalogue that it needs" } ?? ""
      Output.error(
        "purchases: --gateway \(Redaction.address(gateway)): the gateway can't be reached (\(reason))\(written)")
      return ExitStatus.failed
    }
    if asJSON {
      Output.bytes(ScenarioFolder.json(report))
    } else {
      for line in DemoReport.lines("Events that the gateway took, by type", report.posted) { Output.line(line) }
      for line in DemoReport.lines("Answers to who wanted to finish", report.permits) { Output.line(line) }
      for line in report.failures { Output.line("failed: \(line)") }
    }
    guard report.isComplete else {
      Output.error("purchases: stopped before the scenario was over")
      return ExitStatus.failed
    }
    return report.failed == 0 ? 0 : ExitStatus.failed
  }

  static let appstoreSign = Verb(
    words: ["appstore", "sign"], summary: "Sign a payload from standard input and print the JWS",
    settings: [
      .kind.explained("what the payload is: \(ProofKind.allCases.map(\.rawValue).joined(separator: ", ")); needed"),
      .folder.explained("the authority's folder, made on first use, with root.der to configure as --anchor"), .asStore,
      .form, .fault,
    ],
    examples: [
      "purchases appstore sign --kind transaction --dir store < payload.json > transaction.jws",
      "purchases appstore sign --kind app-receipt --form ber --dir store < receipt.json > receipt.b64",
    ]
  ) { call in
    guard let kind = call.values.text(.kind).flatMap({ ProofKind(rawValue: $0) }) else {
      throw UsageError("--kind: must be one of \(ProofKind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    let authority = try authority(call)
    let payload = Input.standard()
    if kind == .appReceipt { return try signReceipt(call, authority, payload) }
    do {
      Output.line(try authority.sign(kind, payload: payload, asStore: try call.values.flag(.asStore)))
    } catch let failure as SigningFailure { throw UsageError("the payload: \(failure)") }
    return 0
  }

  /// A receipt out of its description; the folder then holds `receipt-root.der`, to configure as --receipt-anchor.
  private static func signReceipt(_ call: Call, _ authority: LocalAuthority, _ payload: [UInt8]) throws -> Int32 {
    var form = SignedData.Form()
    switch call.values.text(.form) ?? "der" {
    case "der": break
    case "ber": form.isIndefinite = true
    default: throw UsageError("--form: must be der or ber")
    }
    var fault: ReceiptFault?
    if let name = call.values.text(.fault) {
      guard let known = ReceiptFault(rawValue: name) else {
        throw UsageError("--fault: must be one of \(ReceiptFault.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      fault = known
    }
    do {
      let receipt = try AppReceipt(Fields(fromOutside: payload))
      if let folder = call.values.text(.folder) { try authority.keepReceiptCertificates(folder: folder) }
      Output.line(authority.receipts.sign(receipt, form: form, fault: fault))
    } catch let failure as FieldFailure { throw UsageError("the receipt: \(failure)") }
    return 0
  }
}
