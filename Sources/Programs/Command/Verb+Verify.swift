import PurchasesAssembly
import PurchasesRunner

extension Setting {
  static let jws = Setting("jws", "F", "the proof, a compact JWS; - is standard input")
  static let kind = Setting(
    "kind", "KIND",
    "transaction, renewal-info, notification or app-transaction (default: told from the verified payload)")
  static let at = Setting("at", "TIME", "the time to speak of (RFC 3339; default now)")
}

extension Verb {
  static let verify = Verb(
    words: ["verify"], summary: "Judge one proof offline and print the verdict and its evidence as JSON",
    settings: [.jws, .kind, .anchor, .bundleID, .appAppleID, .environment, .at],
    examples: [
      "purchases verify --jws transaction.jws --bundle-id com.example.app",
      "purchases verify --jws - --anchor root.der --environment Sandbox < notification.jws",
    ],
    statuses: [(ExitStatus.rejected, "rejected"), (ExitStatus.pending, "pending")]
  ) { call in
    guard let path = call.values.text(.jws) else { throw UsageError("purchases verify: needs --jws F (or --jws -)") }
    let verification = try OfflineVerification(
      call.values, proof: try Input.read(path, setting: "jws"), kind: call.values.text(.kind),
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
