import PurchasesAppStoreClient
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let to = Setting("to", "TIME", "end at this time (RFC 3339; default now)")
  static let dryRun = Setting("dry-run", nil, "look and count, and put nothing on the log")
}

extension Verb {
  static let backfill = Verb(
    words: ["backfill"], summary: "Put notifications on the log that Apple sent and the log never got",
    notes: [
      "Reads Apple's notification history and what the topic `received` holds, publishes what is missing, marked as backfill,",
      "and says how complete the log was and is, as a number from 0 to 1. A second run finds nothing to do. Apple keeps 180",
      "days in production and 30 in the sandbox: no further back is asked, and a cut is said. The sandbox sends each",
      "notification once: there this is the only cure.",
    ],
    settings: [
      .from.explained("begin at this time (RFC 3339; default as far back as Apple keeps)"), .to, .dryRun, .json,
      .environment.explained("which history: Production or Sandbox (default Production)"),
      .bundleID.explained("the app", repeatable: false),
    ] + Setting.serverAPI + Setting.connection,
    examples: [
      "purchases backfill --from 2026-11-01T00:00:00Z --to 2026-11-30T00:00:00Z --bundle-id com.example.app \\\n"
        + "      --api-key AuthKey_2X9R4HXF34.p8 --api-key-id 2X9R4HXF34 --api-issuer-id 57246542-96fe-1a63-e053-0824d011072a",
      "purchases backfill --dry-run --json --config purchases.conf | jq .completeness",
    ],
    statuses: [
      (1, "Apple or the log failed, or it was stopped: run it again"),
      (ExitStatus.refused, "some notifications can't be put on the log"),
    ]
  ) { call in
    let stop = StopSignal()
    Signals.stop(stop)
    let apple = AppleSettings(call.values)
    let side = try apple.side()
    let deployment = try Deployment(call.values)
    let now = deployment.clock.now()
    // As far back as will be asked: nothing that nobody named is cut.
    let from =
      try instant(call, .from) ?? now.advanced(byMilliseconds: 2 * Backfill.margin - side.historyMilliseconds)
    let to = try instant(call, .to) ?? now
    guard from < to else { throw UsageError("--from: must be before --to") }
    let asJSON = try call.values.flag(.json)
    let isDry = try call.values.flag(.dryRun)
    let api = try apple.serverAPI(
      side, clock: deployment.clock, alarms: AppleSettings.alarms(deployment.logger, deployment.metrics))
    let log = isDry ? try deployment.openLog() : try deployment.openLogWithTopics()
    defer { log.close() }
    let backfill = Backfill(api: api, log: log, topics: deployment.topics, clock: deployment.clock)
    let outcome: Backfill.Outcome
    do {
      outcome = try backfill.run(from: from, to: to, publishing: !isDry, until: stop) { Output.progress($0) }
      Output.endProgress()
    } catch {
      Output.endProgress()
      throw error
    }
    if asJSON { Output.bytes(json(outcome, side, isDry)) } else { explain(outcome, side, isDry) }
    guard outcome.isWhole else {
      Output.error("purchases: stopped before Apple's list was read to its end")
      return ExitStatus.failed
    }
    return outcome.refused == 0 ? 0 : ExitStatus.refused
  }

  /// Six digits: one notification of a million.
  private static func ratio(_ value: Double) -> String {
    let millionths = Int64((value * 1_000_000).rounded(.down))
    let digits = String(millionths % 1_000_000)
    return "\(millionths / 1_000_000)." + String(repeating: "0", count: 6 - digits.count) + digits
  }

  private static func explain(_ outcome: Backfill.Outcome, _ side: AppleSide, _ isDry: Bool) {
    if outcome.isCut {
      Output.line(
        "Apple keeps \(side.historyMilliseconds / 86_400_000) days of \(side.rawValue): asked from \(outcome.from), and not "
          + "from \(outcome.asked.from)")
    }
    Output.line("\(outcome.from) to \(outcome.to), \(side.rawValue)")
    Output.line(
      "\(outcome.listed) notifications at Apple's, \(outcome.present) of them on the log, "
        + "\(outcome.published) \(isDry ? "missing" : "published now"), \(outcome.refused) refused; "
        + "\(outcome.undelivered) that Apple could not deliver")
    Output.line(
      "completeness \(ratio(outcome.completenessBefore))" + (isDry ? "" : " before, \(ratio(outcome.completeness)) now")
    )
  }

  private static func json(_ outcome: Backfill.Outcome, _ side: AppleSide, _ isDry: Bool) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("environment", side.environment.rawValue)
      json.field("askedFrom", outcome.asked.from.rfc3339)
      json.field("from", outcome.from.rfc3339)
      json.field("to", outcome.to.rfc3339)
      json.field("isCut", outcome.isCut)
      json.field("isDryRun", isDry)
      json.field("isWhole", outcome.isWhole)
      json.field("listed", outcome.listed)
      json.field("present", outcome.present)
      json.field(isDry ? "missing" : "published", outcome.published)
      json.field("refused", outcome.refused)
      json.field("undelivered", outcome.undelivered)
      json.field("completenessBefore", JSON.number(ratio(outcome.completenessBefore)))
      json.field("completeness", JSON.number(ratio(isDry ? outcome.completenessBefore : outcome.completeness)))
    }
    return writer.bytes + [0x0a]
  }
}
