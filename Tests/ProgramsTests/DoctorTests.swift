import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Testing

@Suite struct DoctorTests {
  /// A deployment that has worked off an event; no process of it runs.
  private func worked() throws -> Tool {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    try publish("1", program)
    try work(program)
    return program
  }

  private func publish(_ attempt: String, _ program: Tool) throws {
    let result = try program.run(
      "publish", "--file", "-",
      input:
        #"{"type":"payment.failed","environment":"Sandbox","account":"a1","attemptId":"\#(attempt)","productId":"p","failure":{"domain":"d","code":2,"userCancelled":true}}"#
    )
    try #require(result.status == 0, "\(result.output)\(result.errors)")
  }

  private func work(_ program: Tool) throws {
    let result = try program.run(
      "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue",
      "catalogue.json")
    try #require(result.status == 0, "\(result.errors)")
  }

  /// Files of a database, with what SQLite keeps beside it.
  private func copy(_ name: String, to other: String, _ program: Tool) throws {
    for suffix in ["", "-wal", "-shm"] {
      let (from, to) = (program.folder.path + "/" + name + suffix, program.folder.path + "/" + other + suffix)
      try? FileManager.default.removeItem(atPath: to)
      if FileManager.default.fileExists(atPath: from) { try FileManager.default.copyItem(atPath: from, toPath: to) }
    }
  }

  private func append(_ records: [(Topic, Record)], _ program: Tool) throws {
    let deployment = try Deployment(
      SettingValues(flags: ["log": ["sqlite:\(program.folder.path)/purchases.log.db"]], environment: [:]))
    let log = try deployment.openLog()
    defer { log.close() }
    let producer = try log.producer()
    producer.publish(
      records.map { ProducedRecord(topic: deployment.topics.name($0.0), partition: 0, record: $0.1) }
    ) { results in for case .failure(let failure) in results { Issue.record("\(failure)") } }
    #expect(producer.close(withinMilliseconds: 10_000) == 0)
  }

  @Test func aDeploymentThatIsWellIsFoundWell() throws {
    let program = try worked()
    let result = try program.run("doctor")
    #expect(result.status == 0, "\(result.output)")
    let settings = result.lines.filter { $0.hasSuffix("  (default)") }
    #expect(settings.count == Setting.all.count, "nobody set anything, and all of it is in force")
    #expect(result.lines.allSatisfy { $0.hasPrefix("ok  ") || settings.contains($0) })
    #expect(settings.contains("store = sqlite:purchases.db  (default)"))
    for stage in ["verification", "ownership", "entitlements", "auditing"] {
      #expect(result.output.contains("\(stage) lag: 0 records"))
    }
    #expect(result.output.contains("ownership offsets: log and store agree on 4 partitions"))
    let json = try program.run("doctor", "--json", "--catalogue", "catalogue.json")
    #expect(json.status == 0)
    let objects = try json.lines.map { try JSONDocument(parsing: Array($0.utf8)).root }
    let told = objects.filter { $0["setting"] != nil }
    let catalogue = told.first { $0["setting"]?.string == "catalogue" }
    #expect(catalogue?["value"]?.string == "catalogue.json" && catalogue?["origin"]?.string == "flag")
    #expect(
      objects.dropFirst(told.count).allSatisfy { $0["outcome"]?.string == "well" && $0["check"]?.string != nil })
  }

  @Test func theSettingsInForceAreToldWithWhereTheyComeFromAndWithoutSecrets() throws {
    let program = try Tool(["PURCHASES_TOKEN": "abcdefghijklmnop-secret"])
    try program.write("purchases.conf", "store = sqlite:other.db\nprefix = shop.\n")
    let result = try program.run(
      "doctor", "--config", "purchases.conf", "--prefix", "mine.", "--kafka", "sasl.password=hush", "--log",
      "kafka://127.0.0.1:1")
    for line in [
      "store = sqlite:other.db  (file)", "prefix = mine.  (flag)", "token = ***  (environment)",
      "kafka = sasl.password=***  (flag)", "group = purchases  (default)", "partitions = 4  (default)",
      "environment = Production  (default)", "listen = 127.0.0.1:8080  (default)", "restore-policy = keep  (default)",
      "audit-key = other.db.audit-key  (default)", "bundle-id = none  (default)", "verbose = false  (default)",
    ] {
      #expect(result.lines.contains(line), "\(line) in \(result.output)")
    }
    #expect(!result.output.contains("abcdefghijklmnop") && !result.output.contains("hush"))
  }

  @Test func aRecordInQuarantineThatNoStageWroteIsToldAsThat() throws {
    let program = try worked()
    try append([(.quarantine, Record(key: nil, value: [1], headers: [], timestamp: Instant(milliseconds: 1)))], program)
    let result = try program.run("quarantine", "list")
    #expect(result.status == 0)
    #expect(result.lines.count == 1 && result.output.contains("1  not written by a stage"), "\(result.output)")
    #expect(result.output.contains("purchases.quarantine/0/") && !result.output.contains("?"), "\(result.output)")
  }

  @Test func whatIsNotThereIsOutOfReach() throws {
    let result = try Tool().run("doctor")
    #expect(result.status == 1)
    #expect(result.lines.count { $0.hasPrefix("UNREACHABLE") } == 2, "log and store: \(result.output)")
    let away = try worked()
    #expect(try away.run("doctor", "--store", "postgres://nobody@127.0.0.1:1/none").status == 1)
  }

  /// A new group name on an old log looks just like a group that has lost its offsets.
  @Test func lostOffsetsOfAStageWithoutStateAreToldInTheWordsThatItStopsWith() throws {
    let program = try worked()
    let doctor = try program.run("doctor", "--group", "gone")
    #expect(doctor.status == 4, "\(doctor.output)")
    let line = try #require(doctor.lines.first { $0.contains("verification offsets:") })
    let reason = try #require(line.range(of: "offsets: ").map { String(line[$0.upperBound...]) })
    #expect(line.hasPrefix("NOT WELL") && reason.contains("Set its offset to 1"), "\(line)")
    let stage = try program.run(
      "stage", "verification", "--until-idle", "--group", "gone", "--bundle-id", "com.example.app", "--environment",
      "Sandbox")
    #expect(stage.status == 1)
    #expect(stage.errors.contains(reason), "\(stage.errors)")
  }

  @Test func anOlderStoreIsToldInTheWordsThatTheStageStopsWith() throws {
    let program = try worked()
    try copy("purchases.db", to: "backup.db", program)
    try publish("2", program)
    try work(program)
    try copy("backup.db", to: "purchases.db", program)
    let doctor = try program.run("doctor")
    #expect(doctor.status == 4, "\(doctor.output)")
    let line = try #require(doctor.lines.first { $0.contains("ownership offsets:") })
    #expect(line.hasPrefix("NOT WELL") && line.contains("the store only at"))
    let reason = try #require(line.range(of: "offsets: ").map { line[$0.upperBound...] })
    let run = try program.run(
      "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue",
      "catalogue.json")
    #expect(run.status == 1)
    #expect(run.errors.contains("stands at"), "\(run.errors)")
    #expect(doctor.output.contains("entitlements offsets: purchases.owned/"))
    #expect(reason.contains("purchases.verified/"))
  }

  @Test func anOlderLogIsFound() throws {
    let program = try worked()
    try copy("purchases.log.db", to: "backup.db", program)
    try publish("2", program)
    try work(program)
    try copy("backup.db", to: "purchases.log.db", program)
    let doctor = try program.run("doctor")
    #expect(doctor.status == 4, "\(doctor.output)")
    #expect(doctor.output.contains("the log is an older copy"), "\(doctor.output)")
  }

  @Test func aStoreOfAnotherGroupIsFound() throws {
    let doctor = try worked().run("doctor", "--group", "other")
    #expect(doctor.status == 4)
    #expect(doctor.output.contains("the store belongs to the group purchases.ownership, not to other.ownership"))
  }

  @Test func whatWasPutAsideAndWhatWaitsIsCounted() throws {
    let program = try worked()
    let now = Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    func ago(hours: Int64) -> Instant { now.advanced(byMilliseconds: -hours * 3_600_000) }
    func parked(_ hours: Int64) -> Record {
      Record(
        key: nil, value: nil,
        headers: [
          Header("purchases-parked-not-before", String(now.advanced(byMilliseconds: 3_600_000).milliseconds)),
          Header("purchases-parked-first-at", String(ago(hours: hours).milliseconds)),
          Header("purchases-parked-attempt", "2"), Header("purchases-parked-reason", "revocation-unknown"),
        ], timestamp: ago(hours: hours))
    }
    try append([(.parked, parked(1))], program)
    let fresh = try program.run("doctor")
    #expect(
      fresh.output.contains("ok           parked: 1 record waits for Apple (1 revocation-unknown), the oldest since"))
    #expect(fresh.output.contains("verification lag: 0 records"), "its time has not come")

    let anomaly = AuditAnomaly(
      kind: .finishedWithoutGrant, since: ago(hours: 30), ageMilliseconds: 1, explanation: "by a test")
    let event = AuditEvent.anomaly(anomaly)
    let headers = Envelope(id: "1", source: "/test", type: event.type, time: ago(hours: 2)).headers
    let told = Record(key: nil, value: event.data, headers: headers, timestamp: ago(hours: 2))
    try append(
      [
        (.parked, parked(9)), (.audit, told), (.audit, told),
        (
          .quarantine,
          Record(
            key: nil, value: nil, headers: [Header("purchases-quarantine-alarm", "unreadable")],
            timestamp: ago(hours: 2))
        ),
        (.owned, Record(key: nil, value: [], headers: [], timestamp: ago(hours: 5))),
      ], program)
    let doctor = try program.run("doctor")
    #expect(doctor.status == 4)
    for (check, text) in [
      ("parked", "2 records wait for Apple (2 revocation-unknown), the oldest since \(ago(hours: 9).rfc3339), 9 h"),
      ("anomalies", "1 finished-without-grant, the newest since \(ago(hours: 2).rfc3339)"),
      ("quarantine", "1 record that could not be processed, 1 of them in a topic that only stages may write"),
      ("entitlements lag", "1 record, the oldest waits since \(ago(hours: 5).rfc3339), 5 h"),
    ] {
      #expect(doctor.output.contains("NOT WELL     \(check): \(text)"), "\(doctor.output)")
    }
    let later = try program.run("doctor", "--since", ago(hours: 1).rfc3339)
    #expect(later.output.contains("quarantine: nothing since"))
    #expect(later.output.contains("anomalies: none since"))
    let earlier = try program.run("doctor", "--since", ago(hours: 3).rfc3339)
    #expect(earlier.output.contains("anomalies: 1 finished-without-grant since"))
  }
}
