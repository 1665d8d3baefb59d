import PurchasesAssembly
import PurchasesRunner

extension Setting {
  static let jws = Setting("jws", "F", "the proof, a compact JWS; - is standard input")
  static let lines = Setting(
    "lines", "F",
    #"many proofs, one a line: a JWS, or {"jws":…, "kind":…, "at":…, "id":…}; - is standard input"#)
  static let kind = Setting(
    "kind", "KIND",
    "transaction, renewal-info, notification or app-transaction (default: told from the verified payload)")
  static let ofProof: [Setting] = [
    .bundleID.explained("the app that the proof must be of (default: any, told as bundleIdChecked false)"),
    .appAppleID.explained("the app's Apple id that a Production proof must carry (default: any)"),
    .environment.explained(
      "accept proofs of this environment only: Production, Sandbox, Xcode or LocalTesting (default: Production and Sandbox)"
    ),
    .anchor.explained(
      "a root certificate (DER) in place of the shipped Apple Root CA - G3 (of receipts: Apple Root CA); for Xcode and "
        + "LocalTesting, the certificate that signs"),
  ]
  static let receipt = Setting(
    "receipt", "F", "an app receipt in place of a JWS, in base64 or as it is; - is standard input")
  static let deviceID = Setting(
    "device-id", "ID", "with --receipt: the device that it must be of, a UUID or a network address in hex")
  static let legacy = Setting(
    "legacy", "F", "a receipt of the oldest kind (property-list text, or base64 of it); - is standard input")
  static let verdict = Setting(
    "verdict", "F",
    "a recorded purchase.verified or purchase.rejected event, to be judged again from its evidence; its proof is that of "
      + "--jws, --receipt or --legacy, else the one that it carries, else that of the record in --log that it names; - is "
      + "standard input")
  static let at = Setting("at", "TIME", "the time to speak of (RFC 3339; default now)")
}

extension Verb {
  static let verify = Verb(
    words: ["verify"], summary: "Judge proofs offline and print each verdict and its evidence as JSON",
    settings: [.jws, .lines, .receipt, .legacy, .verdict, .kind, .deviceID] + Setting.ofProof + [
      .at.explained("the time to judge at (RFC 3339; default now)"),
      .log.explained("with --verdict: where the proof is read that an event doesn't carry"), .kafka,
    ],
    examples: [
      "purchases verify --jws transaction.jws --bundle-id com.example.app",
      "purchases verify --jws - --anchor root.der --environment Sandbox < notification.jws",
      "purchases verify --receipt receipt.b64 --bundle-id com.example.app",
      "purchases tail verified --limit 1 > event.json && purchases verify --verdict event.json",
      "purchases verify --lines proofs.txt --bundle-id com.example.app > verdicts.ndjson",
    ],
    statuses: [
      (ExitStatus.refused, "with --lines, some lines were no proof"), (ExitStatus.rejected, "of one proof, rejected"),
      (ExitStatus.pending, "of one proof, pending"),
      (ExitStatus.found, "with --verdict, the proof gets another verdict than the recorded one"),
    ]
  ) { call in
    let given = [Setting.jws, .lines, .receipt, .legacy].filter { call.values.text($0) != nil }
    if let recorded = call.values.text(.verdict) { return try judgeAgain(call, recorded, given) }
    guard given.count == 1 else {
      throw UsageError(
        "purchases verify: needs one of --jws F, --lines F, --receipt F, --legacy F and --verdict F (- is standard input)"
      )
    }
    if given[0] == .receipt || given[0] == .legacy { return try judgeReceipt(call, given[0]) }
    guard call.values.text(.deviceID) == nil else {
      throw UsageError("--device-id: goes with --receipt, since a signed transaction is of no device")
    }
    let path = call.values.text(.jws)
    let lines = call.values.text(.lines)
    var verification = try OfflineVerification(call.values)
    let kind = try OfflineVerification.kind(call.values.text(.kind))
    let time = try instant(call, .at) ?? SystemClock().now()
    guard let path else {
      let input = try Input.read(lines ?? "-", .lines)
      let unreadable = try verification.run(lines: input, kind: kind, at: time) { Output.bytes($0) }
      return unreadable == 0 ? 0 : ExitStatus.refused
    }
    let (outcome, json) = try verification.run(try Input.read(path, .jws), kind: kind, at: time)
    Output.bytes(json)
    return status(outcome)
  }

  private static func status(_ outcome: OfflineVerification.Outcome) -> Int32 {
    switch outcome {
    case .verified: 0
    case .rejected: ExitStatus.rejected
    case .pending: ExitStatus.pending
    }
  }

  private static func judgeAgain(_ call: Call, _ file: String, _ given: [Setting]) throws -> Int32 {
    guard given.count <= 1, given.first != .lines else {
      throw UsageError("--verdict: is held against one proof: --jws F, --receipt F or --legacy F, or what it carries")
    }
    for setting in [Setting.at, .kind] where call.values.text(setting) != nil {
      throw UsageError("--\(setting.name): a recorded verdict says so itself")
    }
    let path = given.first.flatMap { call.values.text($0) }
    guard file != "-" || path != "-" else { throw UsageError("--verdict: only one of two files can be standard input") }
    let recorded = try RecordedVerdict(file: try Input.read(file, .verdict))
    if let setting = given.first, recorded.isOfReceipt == (setting == .jws) {
      throw UsageError("--\(setting.name): the recorded verdict is on \(recorded.isOfReceipt ? "a receipt" : "a JWS")")
    }
    guard recorded.isOfReceipt || call.values.text(.deviceID) == nil else {
      throw UsageError("--device-id: goes with a receipt, since a signed transaction is of no device")
    }
    let (agrees, json) = try recorded.judge(
      try proof(call, of: recorded, path, given.first), call.values, device: call.values.text(.deviceID))
    Output.bytes(json)
    return agrees ? 0 : ExitStatus.found
  }

  private static func proof(
    _ call: Call, of recorded: RecordedVerdict, _ path: String?, _ setting: Setting?
  ) throws -> [UInt8] {
    if let path, let setting { return recorded.proof(file: try Input.read(path, setting)) }
    if let carried = recorded.carriedProof { return carried }
    if let found = try recorded.proof(in: try Deployment(call.values)) { return found }
    throw UsageError(
      "--verdict: the evidence does not carry its proof: \(recorded.whyNotCarried); give it with "
        + (recorded.isOfReceipt ? "--receipt F" : "--jws F")
        + ", or the event as purchases tail prints it, with the --log that it is from")
  }

  private static func judgeReceipt(_ call: Call, _ setting: Setting) throws -> Int32 {
    guard call.values.text(.kind) == nil else { throw UsageError("--kind: goes with a JWS; a receipt has one kind") }
    let file = try Input.read(call.values.text(setting) ?? "-", setting)
    let receipt = try OfflineReceipt(
      call.values, file: file, device: call.values.text(.deviceID), at: try instant(call, .at) ?? SystemClock().now())
    guard setting != .legacy || receipt.isOldest else {
      throw UsageError("--legacy: is no receipt of the oldest kind; app receipts go with --receipt")
    }
    let (outcome, json) = receipt.run()
    Output.bytes(json)
    return status(outcome)
  }
}
