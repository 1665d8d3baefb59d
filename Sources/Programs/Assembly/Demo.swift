import Foundation
import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesGateway
import PurchasesHTTPServer
import PurchasesLocalAppStore
import PurchasesRunner
import PurchasesVerification

/// The main job, whole: a local App Store plays a day against the gateway, all stages run, and what they made of it is
/// shown, replayed and checked.
public struct Demo {
  /// Midnight of the played day. Fixed, so that the same seed gives the same day.
  static let day = Instant(milliseconds: 1_780_272_000_000)
  /// Clients that talk to the gateway at a time.
  static let connections = 16

  /// Longer than auditing waits before it signs for a partition that has come to rest; far shorter than the minutes that
  /// the scenario counts in.
  static let quietMilliseconds: Int64 = 10_000

  public struct Settings: Sendable {
    public var seed: UInt64
    public var accounts: Int
    /// Where log, store, catalogue and root stay; nil for a temporary folder that goes away.
    public var keep: String?

    public init(seed: UInt64, accounts: Int, keep: String?) {
      self.seed = seed
      self.accounts = accounts
      self.keep = keep
    }
  }

  public struct Outcome: Sendable {
    public var lines: [String]
    public var holds: Bool
  }

  private let settings: Settings
  private let scenario: Scenario
  private let clock: ScenarioClock
  private let folder: String
  private var deployment: Deployment
  private let values: SettingValues

  public init(_ values: SettingValues, _ settings: Settings) throws {
    self.settings = settings
    self.values = values
    scenario = Scenario(seed: settings.seed, accounts: settings.accounts, day: Self.day)
    clock = ScenarioClock(Self.day)
    folder = try Self.folder(settings.keep)
    deployment = try Deployment(values, clock: clock)
    // The day holds purchases of a product that the catalogue does not know, on purpose; the report counts them.
    deployment.logger = Logger(clock: clock, minimum: .warning, muted: [StageRunner.quarantined])
    if values.text(.log) == nil { deployment.log = .embedded(path: folder + "/log.db") }
    if values.text(.store) == nil { deployment.store = .sqlite(path: folder + "/store.db") }
    if case .kafka = deployment.log, values.text(.prefix) == nil {
      // Somebody's own Kafka may hold topics of the usual names: a demo leaves those alone.
      let name = "demo-\(UUID().uuidString.prefix(8).lowercased())"
      deployment.topics.prefix = name + "."
      deployment.group = name
    }
    do { try requireNothingYet() } catch {
      if settings.keep == nil { try? FileManager.default.removeItem(atPath: folder) }
      throw error
    }
  }

  /// A played day among somebody's real purchases could not be told from them, and never be taken out again.
  private func requireNothingYet() throws(UsageError) {
    if values.text(.store) != nil, let store = try? deployment.untouchedStore() {
      defer { store.close() }
      // What has no schema yet can't be read, and is empty.
      let reader = try? store.reader()
      defer { reader?.close() }
      let isUsed = StageName.allCases.contains { (try? reader?.books(stage: $0.rawValue))?.group != nil }
      if isUsed { throw UsageError("\(values.place(of: .store)): this store is in use; the demo needs one of its own") }
    }
    if values.text(.log) != nil, deployment.logIsThere, let log = try? deployment.openLog() {
      defer { log.close() }
      let isUsed = Topic.allCases.contains { topic in
        (try? log.bounds(of: deployment.topics.name(topic)))?.values.contains { $0.end > $0.start } ?? false
      }
      if isUsed { throw UsageError("\(values.place(of: .log)): this log holds records; the demo needs one of its own") }
    }
  }

  private static func folder(_ keep: String?) throws(UsageError) -> String {
    let path = keep ?? NSTemporaryDirectory() + "/purchases-demo-\(UUID().uuidString)"
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      let isEmpty = try FileManager.default.contentsOfDirectory(atPath: path).isEmpty
      guard isEmpty else { throw UsageError("--keep \(path): the folder is not empty") }
    } catch let error as UsageError { throw error } catch { throw UsageError("--keep \(path): can't be made") }
    return path
  }

  /// - Parameter progress: one line, now and then.
  public func run(until stop: StopSignal, progress: @escaping @Sendable (String) -> Void) throws -> Outcome {
    defer { if settings.keep == nil { try? FileManager.default.removeItem(atPath: folder) } }
    let catalogue = try CatalogueFile(parsing: DemoCatalogue.json)
    try Data(DemoCatalogue.json).write(to: URL(fileURLWithPath: folder + "/catalogue.json"))
    try Data(scenario.authority.root.der).write(to: URL(fileURLWithPath: folder + "/root.der"))
    let audit = try auditSettings()
    let stages: [any Stage] = [
      VerificationStage(try trust()), StageFactory.demoOwnership, AuditingStage(audit),
    ]
    let watch = Stopwatch()
    let service = try Service(deployment, stages: stages, entitlements: .file(catalogue), stop: stop)
    let waited: Double?
    do { waited = try play(service, until: stop, progress) } catch {
      _ = service.close()
      throw error
    }
    let seconds = watch.seconds
    let wasStopped = stop.isSet
    if let failure = service.close() { throw failure }
    guard !wasStopped else { return Outcome(lines: ["stopped before the day was over"], holds: false) }
    return try report(catalogue, audit.verifierKey, seconds: seconds, waited: waited, progress)
  }

  /// Answers which part of their time the clients waited.
  private func play(
    _ service: Service, until stop: StopSignal, _ progress: @escaping @Sendable (String) -> Void
  ) throws -> Double? {
    let port = try service.openGateway(
      Gateway.Settings(http: HTTPServer.Settings(address: "127.0.0.1", port: 0), topics: deployment.topics))
    let player = ScenarioPlayer(
      scenario, ScenarioPlayer.Settings(gateway: "http://127.0.0.1:\(port)", connections: Self.connections),
      clock: clock)
    let played = player.play { now in
      progress("\(now.at.rfc3339.dropFirst(11).prefix(5))  \(now.steps) of \(now.allSteps) steps of the day")
      if stop.isSet { player.stop() }
    }
    guard !stop.isSet else { return nil }
    guard played.failed == 0 else {
      throw LogFailure(
        .unavailable, "the gateway did not take \(played.failed) requests: \(played.failures.first ?? "")")
    }
    clock.advance(to: scenario.end.advanced(byMilliseconds: RunnerSettings.settlingMilliseconds))
    progress("the day is over; working off what is left")
    try service.waitUntilIdle(upTo: .entitlements)
    // Checkpoints of what is quiet wait for log time to move on; nothing of the day is due so soon after it.
    clock.advance(to: scenario.end.advanced(byMilliseconds: Self.quietMilliseconds))
    try service.waitUntilIdle()
    return player.waitingShare
  }

  private func trust() throws -> VerificationSettings {
    try VerificationSettings(
      apps: [VerificationSettings.App(bundleID: DemoCatalogue.bundleID, appAppleID: DemoCatalogue.appAppleID)],
      anchors: TrustAnchors([(label: "the local App Store", der: scenario.authority.root.der)]))
  }

  /// In the folder, and where `audit verify` looks for it beside a SQLite store.
  private func auditSettings() throws(UsageError) -> AuditSettings {
    try AuditKey.settings(in: folder + "/store.db.audit-key", named: AuditKey.defaultName, deployment)
  }

  private func report(
    _ catalogue: CatalogueFile, _ key: NoteVerifier, seconds: Double, waited: Double?, _ progress: (String) -> Void
  ) throws -> Outcome {
    let log = try deployment.openLog()
    defer { log.close() }
    let store = try deployment.openStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    progress("reading the topics and the store")
    var report = DemoReport()
    try report.read(log, deployment.topics)
    let digest = try report.read(StateReading(reader, history: CatalogueHistory(catalogue.catalogue)), at: scenario.end)
    progress("replaying entitlements into an empty store")
    let (replayed, replay) = try replayed(catalogue, log)
    progress("checking the audit log")
    let audit = try AuditVerifier(topics: deployment.topics, key: key).verify(
      try AuditTool.live(log, deployment), store: reader)
    let events = report.received.values.reduce(0, +)
    var lines = [
      "A day of \(settings.accounts) users, seed \(settings.seed); at its end the store knows \(report.accounts) accounts"
    ]
    lines += DemoReport.lines("Events received, by type", report.received)
    lines += DemoReport.lines("Verdicts, by reason", report.verdicts)
    lines += DemoReport.lines("Changes of what accounts may use", report.changes)
    lines += DemoReport.lines("Entitlements active at the end of the day, by product", report.entitlements)
    lines += DemoReport.lines("Credits, by product", report.credits)
    lines += DemoReport.lines("Credits that accounts hold", report.balances)
    lines += DemoReport.lines("Permits to finish, by content and reason", report.permits)
    lines += DemoReport.lines("Put into quarantine for people to look at, by stage and reason", report.quarantined)
    let anomalies = Dictionary(uniqueKeysWithValues: audit.anomalies.map { ($0.key.rawValue, $0.value) })
    lines += anomalies.isEmpty ? ["", "No anomalies"] : DemoReport.lines("Anomalies", anomalies)
    lines += [
      "", "Audit log",
      "  \(audit.records) records in \(audit.trees.filter { $0.records > 0 }.count) trees, \(audit.signed) signed for in \(audit.checkpoints) checkpoints",
    ]
    if let summary = audit.summary { lines.append("  root over all partitions \(summary.root) (size \(summary.size))") }
    lines += [
      "",
      "\(events) events in \(Self.text(seconds)) s from the first post to the last commit: \(Int(Double(events) / seconds)) events per second through all stages",
    ]
    // Each client does one thing after the other: where they mostly wait, more of them would make the number larger.
    if let waited, waited > 0.5 {
      lines.append(
        "(the clients waited for a permit or balance \(Int(waited * 100)) % of the time: latency, not throughput)")
    }
    lines += [
      "", "Proofs",
      "  state at \(scenario.end)  \(digest.hex)",
      "  replay into an empty store    \(replayed.hex)  \(replayed == digest ? "the same" : "NOT THE SAME") (\(replay.records) offsets in \(Self.text(replay.seconds)) s)",
      "  audit verify                  \(audit.holds ? "holds" : "DOES NOT HOLD: \(audit.findings.first?.description ?? "")")",
    ]
    if let keep = settings.keep { lines += ["", "kept in \(keep): log, store, catalogue, root and audit key"] }
    return Outcome(lines: lines, holds: replayed == digest && audit.holds)
  }

  private func replayed(_ catalogue: CatalogueFile, _ log: any EventLog) throws -> (StateDigest, Replay.Outcome) {
    let path = folder + "/replay.db"
    let shadow = try Deployment.open(.sqlite(path: path))
    defer { shadow.close() }
    let outcome = try Replay(deployment, stage: StageFactory(values, deployment).entitlements(catalogue.catalogue)).run(
      from: log, into: shadow, until: StopSignal()
    ) { _, _ in }
    let reader = try shadow.reader()
    defer { reader.close() }
    return (try StateReading(reader, history: CatalogueHistory(catalogue.catalogue)).digest(at: scenario.end), outcome)
  }

  private static func text(_ seconds: Double) -> String { String(Double(Int(seconds * 10)) / 10) }
}
