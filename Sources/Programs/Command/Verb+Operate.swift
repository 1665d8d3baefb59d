import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let since = Setting(
    "since", "TIME", "leave out what was put into quarantine or found by audit before this time (RFC 3339)")
}

extension Verb {
  static let quarantineList = Verb(
    words: ["quarantine", "list"], summary: "Records that could not be processed, grouped by stage and reason",
    settings: [.json] + Setting.connection, examples: ["purchases quarantine list", "purchases tail quarantine"],
    statuses: [(1, "the log can't be read")]
  ) { call in
    let deployment = try Deployment(call.values)
    let log = try deployment.openLog()
    defer { log.close() }
    var groups: [String: (count: Int, alarm: Bool, first: String, last: String)] = [:]
    try TopicTail(log: log, topic: deployment.topics.name(.quarantine)).run(
      from: nil, follow: false, limit: nil, until: StopSignal()
    ) { stored in
      let cause = QuarantineCause(stored)
      var group = groups[cause.text] ?? (0, false, cause.place, cause.place)
      group.count += 1
      group.alarm = group.alarm || cause.isAlarm
      group.last = cause.place
      groups[cause.text] = group
    }
    let asJSON = try call.values.flag(.json)
    for (cause, group) in groups.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
      if asJSON {
        var writer = JSONWriter()
        writer.object { json in
          json.field("cause", cause)
          json.field("count", group.count)
          json.field("alarm", group.alarm)
          json.field("first", group.first)
          json.field("last", group.last)
        }
        Output.bytes(writer.bytes + [0x0a])
      } else {
        Output.line("\(group.count)  \(group.alarm ? "ALARM  " : "")\(cause)  (\(group.first) … \(group.last))")
      }
    }
    if groups.isEmpty, !asJSON { Output.line("nothing is in quarantine") }
    return 0
  }

  static let doctor = Verb(
    words: ["doctor"], summary: "Print the settings in force and whether log, store and stages are well",
    settings: [.since, .json] + Setting.all,
    examples: [
      "purchases doctor --config purchases.conf", "purchases doctor --since 2026-11-30T00:00:00Z --json | jq -r .check",
    ],
    statuses: [
      (ExitStatus.failed, "something can't be reached, so not all could be looked at"),
      (ExitStatus.found, "something is not well"),
    ]
  ) { call in
    let asJSON = try call.values.flag(.json)
    let since = try instant(call, .since)
    for setting in EffectiveSetting.all(call.values) { print(setting, asJSON: asJSON) }
    let deployment = try Deployment(call.values)
    let findings = Doctor(deployment, call.values, since: since).findings()
    for finding in findings { print(finding, asJSON: asJSON) }
    if findings.contains(where: { $0.outcome == .unreachable }) { return ExitStatus.failed }
    return findings.contains { $0.outcome == .wrong } ? ExitStatus.found : 0
  }

  private static func print(_ setting: EffectiveSetting, asJSON: Bool) {
    guard asJSON else {
      return Output.line("\(setting.name) = \(setting.value ?? "none")  (\(setting.origin.rawValue))")
    }
    var writer = JSONWriter()
    writer.object { json in
      json.field("setting", setting.name)
      json.field("value", setting.value)
      json.field("origin", setting.origin.rawValue)
    }
    Output.bytes(writer.bytes + [0x0a])
  }

  private static func print(_ finding: Doctor.Finding, asJSON: Bool) {
    guard asJSON else {
      let mark =
        switch finding.outcome {
        case .well: "ok         "
        case .wrong: "NOT WELL   "
        case .unreachable: "UNREACHABLE"
        }
      return Output.line("\(mark)  \(finding.check): \(finding.text)")
    }
    var writer = JSONWriter()
    writer.object { json in
      json.field("check", finding.check)
      json.field("outcome", finding.outcome.rawValue)
      json.field("text", finding.text)
    }
    Output.bytes(writer.bytes + [0x0a])
  }
}
