import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Looks at a deployment as an operator would at 3 a.m.: is everything there, and how far behind is each stage.
public struct Doctor {
  public struct Finding: Sendable {
    public let isWell: Bool
    public let text: String
  }

  private let deployment: Deployment
  private let values: SettingValues

  public init(_ deployment: Deployment, _ values: SettingValues) {
    self.deployment = deployment
    self.values = values
  }

  public func findings() -> [Finding] { logFindings() + storeFindings() + settingFindings() }

  private func logFindings() -> [Finding] {
    let log: any EventLog
    do {
      if case .embedded(let path) = deployment.log, !Files.exists(path) {
        return [Finding(isWell: false, text: "log: there is no file \(path)")]
      }
      log = try deployment.openLog()
      try log.probe()
    } catch { return [Finding(isWell: false, text: "log: \(error)")] }
    defer { log.close() }
    var findings = [Finding(isWell: true, text: "log: can be reached")]
    for topic in Topic.allCases {
      do { _ = try log.partitionCount(of: deployment.topics.name(topic)) } catch {
        findings.append(Finding(isWell: false, text: "topic \(deployment.topics.name(topic)): \(error)"))
      }
    }
    let progress = GroupProgress(log: log, topics: deployment.topics)
    defer { progress.close() }
    for stage in [StageName.verification, .ownership, .entitlements] {
      do {
        let topic = Deployment.input(stage)
        let waiting = try progress.firstWaiting(group: deployment.group(stage), topic: topic)
        let lag = waiting.map { "has work since \($0)" } ?? "has nothing to do"
        findings.append(Finding(isWell: true, text: "stage \(stage.rawValue): \(lag)"))
      } catch { findings.append(Finding(isWell: false, text: "stage \(stage.rawValue): \(error)")) }
    }
    return findings
  }

  private func storeFindings() -> [Finding] {
    do {
      let store = try deployment.openExistingStore()
      defer { store.close() }
      let reader = try store.reader()
      defer { reader.close() }
      let accounts = try reader.count(.account)
      return [Finding(isWell: true, text: "store: can be reached, \(accounts) accounts")]
    } catch { return [Finding(isWell: false, text: "store: \(error)")] }
  }

  private func settingFindings() -> [Finding] {
    var findings: [Finding] = []
    if values.text(.catalogue) != nil {
      do {
        let catalogue = try StageFactory(values, deployment).catalogue()
        findings.append(Finding(isWell: true, text: "catalogue: version \(catalogue.version)"))
      } catch { findings.append(Finding(isWell: false, text: "\(error)")) }
    }
    if !values.texts(.bundleID).isEmpty {
      do {
        _ = try TrustSettings(values)
        findings.append(Finding(isWell: true, text: "trust: complete"))
      } catch { findings.append(Finding(isWell: false, text: "\(error)")) }
    }
    return findings
  }
}

public enum Redaction {
  /// An address without the password that may be in it.
  public static func address(_ text: String) -> String {
    guard let scheme = text.range(of: "://") else { return text }
    var rest = String(text[scheme.upperBound...])
    if let at = rest.firstIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
      rest.replaceSubrange(rest.index(after: colon)..<at, with: "***")
    }
    let parts = rest.split(separator: "&", omittingEmptySubsequences: false).map { part -> Substring in
      guard let mark = part.range(of: "password=") else { return part }
      return part[..<mark.upperBound] + "***"
    }
    return text[..<scheme.upperBound] + parts.joined(separator: "&")
  }
}
