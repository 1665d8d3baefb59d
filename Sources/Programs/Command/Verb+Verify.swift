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
      "a root certificate (DER) in place of the shipped Apple Root CA - G3; for Xcode and LocalTesting, the certificate that "
        + "signs"),
  ]
  static let at = Setting("at", "TIME", "the time to speak of (RFC 3339; default now)")
}

extension Verb {
  static let verify = Verb(
    words: ["verify"], summary: "Judge proofs offline and print each verdict and its evidence as JSON",
    settings: [.jws, .lines, .kind] + Setting.ofProof + [
      .at.explained("the time to judge at (RFC 3339; default now)")
    ],
    examples: [
      "purchases verify --jws transaction.jws --bundle-id com.example.app",
      "purchases verify --jws - --anchor root.der --environment Sandbox < notification.jws",
      "purchases verify --lines proofs.txt --bundle-id com.example.app > verdicts.ndjson",
    ],
    statuses: [
      (ExitStatus.refused, "with --lines, some lines were no proof"), (ExitStatus.rejected, "with --jws, rejected"),
      (ExitStatus.pending, "with --jws, pending"),
    ]
  ) { call in
    let path = call.values.text(.jws)
    let lines = call.values.text(.lines)
    guard (path == nil) != (lines == nil) else {
      throw UsageError("purchases verify: needs either --jws F or --lines F (- is standard input)")
    }
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
    switch outcome {
    case .verified: return 0
    case .rejected: return ExitStatus.rejected
    case .pending: return ExitStatus.pending
    }
  }
}
