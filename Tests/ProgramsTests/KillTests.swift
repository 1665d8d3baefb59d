import Foundation
import PurchasesJSON
import PurchasesTestKit
import Testing

/// Four stages as processes of their own, killed with SIGKILL at seeded instants in mid-work and started again: every
/// event has one effect all the same, in the store and in the topic.
@Suite(.serialized) struct KillTests {
  static let kafka = ProcessInfo.processInfo.environment["PURCHASES_TEST_KAFKA"]
  static let postgres = ProcessInfo.processInfo.environment["PURCHASES_TEST_POSTGRES"]

  @Test func onTheEmbeddedLogAndSQLite() throws {
    try kill(["PURCHASES_LOG": "sqlite:log.db", "PURCHASES_STORE": "sqlite:store.db"])
  }

  @Test(.enabled(if: kafka != nil, "needs Apache Kafka (PURCHASES_TEST_KAFKA)"))
  func onKafkaAndSQLite() throws {
    try kill([
      "PURCHASES_LOG": "kafka://\(Self.kafka ?? "")", "PURCHASES_STORE": "sqlite:store.db",
      "PURCHASES_PREFIX": "kill-\(UUID().uuidString.prefix(8)).",
      "PURCHASES_GROUP": "kill-\(UUID().uuidString.prefix(8))",
      // A killed member's partitions are free when its session has run out: the least that the broker allows.
      "PURCHASES_KAFKA": "session.timeout.ms=6000",
    ])
  }

  static let accounts = 20
  static let attempts = 2_000
  static let kills = 12

  private func kill(_ environment: [String: String]) throws {
    let seed = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...UInt64.max)
    print("SEED=\(seed)")
    var random = SeededRandom(seed: seed)
    let program = try Tool(environment)
    try program.write("catalogue.json", Tool.catalogue)
    try Self.publish(program)
    let names = ["verification", "ownership", "entitlements", "auditing"]
    func start(_ name: String) throws -> Process {
      // A name of its own per stage, so that the one that comes back takes the place of the one that was killed.
      let process = try program.process(
        ["stage", name, "--instance", "one"] + Tool.stageOptions, output: FileHandle.nullDevice,
        errors: FileHandle.nullDevice)
      try process.run()
      return process
    }
    var running = try names.map { try start($0) }
    defer { for process in running where process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }
    for _ in 0..<Self.kills {
      let victim = Int.random(in: 0..<names.count, using: &random)
      // The instant is what is drawn: work is going on all the while.
      usleep(UInt32.random(in: 1_000...300_000, using: &random))
      Foundation.kill(running[victim].processIdentifier, SIGKILL)
      running[victim].waitUntilExit()
      running[victim] = try start(names[victim])
    }
    for process in running {
      process.terminate()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
    }
    let rest = try program.process(
      ["run", "--until-idle"] + Tool.stageOptions, output: FileHandle.nullDevice, errors: FileHandle.standardError)
    try rest.run()
    rest.waitUntilExit()
    #expect(rest.terminationStatus == 0)

    try Self.judge(program, "seed \(seed)")
  }

  /// Publishes as many failed payments, which need no proof.
  static func publish(_ program: Tool) throws {
    var lines = ""
    for attempt in 0..<attempts {
      lines +=
        #"{"type":"payment.failed","environment":"Sandbox","account":"a\#(attempt % accounts)","attemptId":"\#(attempt)","productId":"coins.100","failure":{"domain":"SKErrorDomain","code":2}}"#
        + "\n"
    }
    try program.write("events.ndjson", lines)
    #expect(try program.run("publish", "--file", "events.ndjson").status == 0)
  }

  static func judge(_ program: Tool, _ run: String) throws {
    // The topic: each attempt's permit once, versions per account from 1 without a gap.
    var versions: [String: [Int64]] = [:]
    var permits: [String: Int] = [:]
    for line in try program.run("tail", "entitlements").lines {
      let value = try #require(JSON(parsing: Array(line.utf8))["value"])
      let account = try #require(value["account"]?.string)
      versions[account, default: []].append(try #require(value["version"]?.int64))
      permits[try #require(value["attemptId"]?.string), default: 0] += 1
    }
    #expect(permits.count == attempts, "\(run)")
    #expect(permits.values.allSatisfy { $0 == 1 }, "\(run)")
    for (account, found) in versions { #expect(found == Array(1...Int64(found.count)), "\(account), \(run)") }
    // The store, by the audit's own check and by a replay from zero.
    let verify = try program.run("audit", "verify")
    #expect(verify.status == 0, "\(run): \(verify.output)")
    let replay = try program.run("replay", "entitlements", "--into", "sqlite:shadow.db")
    #expect(replay.status == 0, "\(run): \(replay.output)\(replay.errors)")
  }
}
