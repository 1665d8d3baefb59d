import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

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
      let record = stored.record
      func header(_ name: String) -> String { record.headerText(name) ?? "?" }
      let cause = "\(header(SpecialHeader.quarantineStage)): \(header(SpecialHeader.quarantineReason))"
      let place =
        "\(header(SpecialHeader.quarantineTopic))/\(header(SpecialHeader.quarantinePartition))/"
        + header(SpecialHeader.quarantineOffset)
      let isAlarm = header(SpecialHeader.quarantineAlarm) == "1"
      var group = groups[cause] ?? (0, false, place, place)
      group.count += 1
      group.alarm = group.alarm || isAlarm
      group.last = place
      groups[cause] = group
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
    settings: Setting.all, examples: ["purchases doctor --config purchases.conf"],
    statuses: [(ExitStatus.found, "something is not well")]
  ) { call in
    for setting in Setting.all {
      guard let found = call.values.values[setting.name] else { continue }
      for value in found.values { Output.line("\(setting.name) = \(mask(setting, value))  (\(found.origin.rawValue))") }
    }
    let deployment = try Deployment(call.values)
    var isWell = true
    for finding in Doctor(deployment, call.values).findings() {
      Output.line("\(finding.isWell ? "ok " : "NOT WELL")  \(finding.text)")
      isWell = isWell && finding.isWell
    }
    return isWell ? 0 : ExitStatus.found
  }

  /// Secrets stay out of what is printed: tokens, passwords in an address, and librdkafka's own.
  private static func mask(_ setting: Setting, _ value: String) -> String {
    if setting.isSecret { return "***" }
    if setting == .kafka, let mark = value.firstIndex(of: "=") {
      let name = value[..<mark].lowercased()
      let isSecret = ["password", "secret", "key.pem", "token", "jaas", "oauthbearer.config"].contains {
        name.contains($0)
      }
      return isSecret ? value[...mark] + "***" : value
    }
    return Redaction.address(value)
  }
}
