import PurchasesAssembly
import PurchasesRunner

extension Setting {
  static let jws = Setting("jws", "F", "the proof, a compact JWS; - is standard input")
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
    words: ["verify"], summary: "Judge one proof offline and print the verdict and its evidence as JSON",
    settings: [.jws, .kind] + Setting.ofProof + [.at.explained("the time to judge at (RFC 3339; default now)")],
    examples: [
      "purchases verify --jws transaction.jws --bundle-id com.example.app",
      "purchases verify --jws - --anchor root.der --environment Sandbox < notification.jws",
    ],
    statuses: [(ExitStatus.rejected, "rejected"), (ExitStatus.pending, "pending")]
  ) { call in
    guard let path = call.values.text(.jws) else { throw UsageError("purchases verify: needs --jws F (or --jws -)") }
    let verification = try OfflineVerification(
      call.values, proof: try Input.read(path, .jws), kind: call.values.text(.kind),
      at: try instant(call, .at) ?? SystemClock().now())
    let (outcome, json) = verification.run()
    Output.bytes(json)
    switch outcome {
    case .verified: return 0
    case .rejected: return ExitStatus.rejected
    case .pending: return ExitStatus.pending
    }
  }
}
