import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Looks at a deployment as an operator would at 3 a.m.: is everything there, does each stage's store agree with its
/// group's offsets, how far behind is each stage, and what has been put aside. It only reads, and looks by the same rule
/// that a stage recovers by, so that what would stop a stage is known before it is started.
public struct Doctor {
  /// One check and what came of it.
  public struct Finding: Sendable {
    public enum Outcome: String, Sendable {
      case well
      case wrong
      /// Could not be looked at.
      case unreachable
    }

    public let check: String
    public let outcome: Outcome
    /// What is so; where something is wrong, what to do about it.
    public let text: String

    init(_ check: String, _ outcome: Outcome, _ text: String) {
      self.check = check
      self.outcome = outcome
      self.text = text
    }

    /// What can be reached later is not wrong, only unknown.
    init(_ check: String, _ error: any Error) {
      let isAway =
        switch error {
        case let failure as LogFailure: failure.kind == .unavailable
        case let failure as StoreFailure: failure.kind == .unavailable
        default: false
        }
      self.init(check, isAway ? .unreachable : .wrong, "\(error)")
    }
  }

  /// A stage works off a record within a second, and a restart with a rebalance takes less than a minute: what waits for ten
  /// minutes waits for somebody to do something.
  public static let patienceMilliseconds: Int64 = 600_000

  let deployment: Deployment
  let now: Instant
  /// What was put aside before this time is known already.
  let since: Instant?
  private let values: SettingValues

  public init(_ deployment: Deployment, _ values: SettingValues, since: Instant? = nil) {
    self.deployment = deployment
    self.values = values
    self.since = since
    now = deployment.clock.now()
  }

  public func findings() -> [Finding] {
    var findings: [Finding] = []
    let log = opened("log", into: &findings, openLog)
    let store = opened("store", into: &findings) { try deployment.untouchedStore() }
    let reader = store.flatMap { store in opened("store", into: &findings) { try store.reader() } }
    if reader != nil { findings.append(Finding("store", .well, "can be reached")) }
    if let log {
      findings.append(Finding("log", .well, "can be reached"))
      findings += logFindings(log, reader)
    }
    if let reader { findings += storeFindings(reader) }
    reader?.close()
    store?.close()
    log?.close()
    return findings + settingFindings()
  }

  /// What can't even be opened is out of reach, unless it says that it refuses.
  private func opened<Part>(_ check: String, into findings: inout [Finding], _ open: () throws -> Part) -> Part? {
    do { return try open() } catch {
      let isMissing = error is UsageError
      findings.append(isMissing ? Finding(check, .unreachable, "\(error)") : Finding(check, error))
      return nil
    }
  }

  private func openLog() throws -> any EventLog {
    if case .embedded(let path) = deployment.log, !Files.exists(path) {
      throw UsageError("there is no file \(path): nothing has run yet, or the log is somewhere else")
    }
    let log = try deployment.openLog()
    do { try log.probe() } catch {
      log.close()
      throw error
    }
    return log
  }

  private func logFindings(_ log: any EventLog, _ reader: (any StoreReader)?) -> [Finding] {
    var findings: [Finding] = []
    var bounds: [Topic: [Int32: OffsetBounds]] = [:]
    for topic in Topic.allCases {
      let name = deployment.topics.name(topic)
      do { bounds[topic] = try log.bounds(of: name) } catch {
        findings.append(
          error.kind == .refused
            ? Finding("topic \(name)", .wrong, "\(error.reason). `purchases topics` creates what is missing.")
            : Finding("topic \(name)", error))
      }
    }
    if findings.isEmpty { findings.append(Finding("topics", .well, "all \(Topic.allCases.count) are there")) }
    for stage in StageName.allCases {
      let topics = Deployment.inputs(stage).filter { bounds[$0] != nil }
      guard !topics.isEmpty else { continue }
      findings += standing(of: stage, topics, log, stage.hasState ? reader : nil)
    }
    let progress = GroupProgress(log: log, topics: deployment.topics)
    defer { progress.close() }
    for stage in StageName.allCases {
      let topics = Deployment.inputs(stage).filter { bounds[$0] != nil }
      if !topics.isEmpty { findings.append(lag(of: stage, topics, progress)) }
    }
    if bounds[.parked] != nil { findings.append(parked(log)) }
    if bounds[.quarantine] != nil { findings.append(quarantined(log)) }
    if bounds[.audit] != nil { findings.append(anomalies(log)) }
    return findings
  }

  private func settingFindings() -> [Finding] {
    var findings: [Finding] = []
    if values.text(.catalogue) != nil {
      do {
        let catalogue = try StageFactory(values, deployment).catalogue()
        findings.append(Finding("catalogue", .well, "version \(catalogue.version)"))
      } catch { findings.append(Finding("catalogue", error)) }
    }
    if !values.texts(.bundleID).isEmpty {
      do {
        _ = try TrustSettings(values)
        findings.append(Finding("trust", .well, "complete"))
      } catch { findings.append(Finding("trust", error)) }
    }
    let apple = AppleSettings(values)
    if apple.hasKey {
      do {
        _ = try apple.key()
        findings.append(Finding("App Store Server API", .well, "the key can be read"))
      } catch { findings.append(Finding("App Store Server API", error)) }
    }
    return findings
  }

  /// A time and how long it is ago, as people say it.
  func age(_ instant: Instant) -> String {
    let (difference, overflow) = now.milliseconds.subtractingReportingOverflow(instant.milliseconds)
    let seconds = overflow ? 0 : max(0, difference) / 1000
    let text =
      switch seconds {
      case ..<120: "\(seconds) s"
      case ..<7_200: "\(seconds / 60) min"
      case ..<172_800: "\(seconds / 3_600) h"
      default: "\(seconds / 86_400) days"
      }
    return "since \(instant.rfc3339), \(text)"
  }

  func isTooOld(_ instant: Instant) -> Bool {
    instant < now.advanced(byMilliseconds: -Self.patienceMilliseconds)
  }

  static func count(_ number: Int64, _ one: String, _ many: String) -> String {
    number == 1 ? "1 \(one)" : "\(number) \(many)"
  }
}
