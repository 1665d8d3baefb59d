import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesPostgres

/// The measurements in their order.
final class Bench {
  private(set) var brokers = ""
  private var postgres = ""
  private var loop = ""
  /// The released program, for the rows of it.
  private(set) var purchases = ""
  var folder = "."
  /// The folder of Node's packages with Apple's library in it; empty where it could not be fetched.
  var apple = ""
  /// The class path of `Streams.java`; empty where Kafka Streams could not be fetched.
  private(set) var streams = ""
  private var json: String?
  private var isQuick = false
  private var only: Set<String> = []
  private var memoryCount: Int?
  private var largeCount: Int?
  /// What people must be told beside the table.
  var notes: [String] = []
  private var runs = 0

  /// Pairs per row: five, so that the median has two on each side.
  var pairs: Int { isQuick ? 1 : 5 }
  /// A day of so many accounts has some 62,000 received events.
  private var accounts: Int { isQuick ? 1_200 : 5_500 }
  private var verifications: Int { memoryCount ?? (isQuick ? 20_000 : 300_000) }
  var latencySeconds: Int { isQuick ? 15 : 60 }
  var expiring: Int { isQuick ? 4_000 : 20_000 }
  var largeAccounts: Int { largeCount ?? (isQuick ? 20_000 : 1_000_000) }
  /// Records of one run on the large store: a multiple of ten.
  var largeSlice: Int { isQuick ? 20_000 : 50_000 }
  private var appended: Int { isQuick ? 20_000 : 100_000 }

  /// What a run may hold more at any later time than after a fifth of it, in KiB. Verifying keeps nothing. The entitlements stage
  /// fills SQLite's page cache (32 MiB) on the way, and its batches differ in size.
  private static let verificationMargin = 8 * 1024
  private static let stageMargin = 64 * 1024

  init(_ words: [String]) throws {
    var rest = words[...]
    while let option = rest.popFirst() {
      if option == "--quick" {
        isQuick = true
        continue
      }
      guard let value = rest.popFirst() else { throw BenchFailure("\(option) needs a value") }
      switch option {
      case "--kafka": brokers = value
      case "--postgres": postgres = value
      case "--loop": loop = value
      case "--folder": folder = value
      case "--json": json = value
      case "--apple": apple = value
      case "--streams": streams = value
      case "--purchases": purchases = value
      case "--verifications":
        guard let count = Int(value), count > 0 else { throw BenchFailure("--verifications needs a number") }
        memoryCount = count
      case "--large":
        guard let count = Int(value), count > 0 else { throw BenchFailure("--large needs a number of accounts") }
        largeCount = count
      case "--only": only = Set(value.split(separator: ",").map(String.init))
      default: throw BenchFailure("unknown option \(option)")
      }
    }
  }

  private func wants(_ row: String) -> Bool { only.isEmpty || only.contains(row) }

  /// Answers whether every floor is met and memory stays flat.
  func run() throws -> Bool {
    let load = Gauge.load
    var rows: [Row] = []
    var memory: [FlatMemory] = []
    var claims: [Claim] = []
    if wants("jws") { rows.append(try oneCore()) }
    if wants("cores") { rows += try bothCores() }
    if wants("cold") { rows += try coldChains() }
    if wants("apple") { rows += try apple(measured: pairs) }
    if wants("append") { rows.append(try append()) }
    if wants("memory") {
      let sample = try Child.own(["child", "verify-many", "\(verifications)"]).sample()
      memory += Self.flat("verification", sample, margin: Self.verificationMargin)
    }
    var stages: [(StageName, store: String?, floor: Double?)] = []
    if wants("verification") { stages.append((.verification, nil, nil)) }
    if wants("ownership") { stages.append((.ownership, "SQLite", nil)) }
    if wants("entitlements") { stages.append((.entitlements, "SQLite", 0.45)) }
    if wants("auditing") { stages.append((.auditing, "SQLite", 0.4)) }
    if wants("postgres"), !postgres.isEmpty {
      stages += [(.entitlements, "PostgreSQL", 0.3), (.auditing, "PostgreSQL", nil)]
    }
    if !stages.isEmpty || wants("streams") && !streams.isEmpty {
      say("filling the topics")
      let received = try Inputs(brokers: brokers, folder: folder).fill(accounts: accounts)
      say("\(received) events received")
    }
    for stage in stages {
      let row = try self.stage(stage.0, stage.store, floor: stage.floor)
      rows.append(row)
      if stage.0 == .entitlements, stage.store == "SQLite", let sample = row.pairs.last?.ours {
        memory += Self.flat("entitlements stage", sample, margin: Self.stageMargin)
      }
    }
    if wants("streams") { rows += try streams(measured: pairs) }
    // Tens of gigabytes and much time: only for who asks.
    if only.contains("large") || largeCount != nil {
      let (row, resident) = try large()
      rows.append(row)
      claims += resident
    }
    if wants("latency") { claims += try latency() }
    if wants("expiry") { claims += try expiry() }
    let noise = noise(rows, load: load)
    print("\n" + Report.text(rows, memory, claims, notes) + noise)
    let isOK = rows.allSatisfy(\.isOK) && memory.allSatisfy(\.isOK) && claims.allSatisfy(\.isOK)
    if let json {
      let report = JSON.object(
        JSONObject([
          ("rows", .array(rows.map(\.json))), ("memory", .array(memory.map(\.json))),
          ("claims", .array(claims.map(\.json))),
          ("notes", .array(notes.map { .string($0) })),
          ("noise", .string(noise)),
          ("ok", .bool(isOK)),
        ]))
      try File.write(report.bytes + [0x0a], to: json)
    }
    return isOK
  }

  func say(_ line: String) { print("bench: \(line)") }

  /// How much the limits alone, which are the same program each time, differ from run to run.
  private func noise(_ rows: [Row], load: String) -> String {
    let spreads = rows.filter { $0.pairs.count > 1 }.map { row in
      "\(row.name) \(Spread.text((row.limit.most / row.limit.least - 1) * 100, 0)) %"
    }
    return "noise: load \(load) before and \(Gauge.load) after; the limits alone spread by "
      + (spreads.isEmpty ? "(one run each)" : spreads.joined(separator: ", ")) + "\n"
  }

  private static func flat(_ name: String, _ sample: Sample, margin: Int) -> [FlatMemory] {
    guard let memory = sample.memory else { return [] }
    return [FlatMemory(name: name, count: sample.count, memory: memory, margin: margin)]
  }

  // MARK: Rows

  private func append() throws -> Row {
    var row = Row("embedded append, 1 KB", beside: "SQLite's bulk insert of the same bytes", unit: "records")
    let path = "\(folder)/append.db"
    try row.measure(pairs) {
      try Child.own(["child", "append", path, "\(appended)"]).sample()
    } limit: {
      try Child.own(["child", "plain", path, "\(appended)"]).sample()
    }
    return row
  }

  private func stage(_ name: StageName, _ store: String?, floor: Double?) throws -> Row {
    let title = name.rawValue + (store.map { " on \($0)" } ?? "")
    let hashes = name == .auditing
    var row = Row(
      title,
      beside: hashes
        ? "a C loop that consumes, hashes each record and commits positions" : "a C loop that moves the same records",
      unit: "records", floor: floor)
    say(title)
    let inputs = try Day.stage(name, StageRun.topics).inputs.map { StageRun.topics.name($0) }
    try row.measure(pairs) {
      try scratch { prefix, group in
        try withStore(store) { store in
          try Child.own(["child", "stage", name.rawValue, brokers, store, prefix, group]).sample()
        }
      }
    } limit: {
      try scratch { prefix, group in
        try Child(loop, [hashes ? "hash" : "copy", brokers, group, prefix + ScratchTopics.loop] + inputs).sample()
      }
    }
    for pair in row.pairs where pair.ours.count != pair.limit.count {
      throw BenchFailure("\(title): \(pair.ours.count) records worked off, the loop found \(pair.limit.count)")
    }
    return row
  }

  /// A new group, and topics of its own to write to.
  func scratch(_ body: (_ prefix: String, _ group: String) throws -> Sample) throws -> Sample {
    runs += 1
    let topics = try ScratchTopics(brokers: brokers, prefix: "bench-out-\(runs).")
    try topics.make()
    let sample = try body(topics.prefix, "bench-\(runs)")
    try topics.remove()
    return sample
  }

  /// A store that nothing has been written to.
  func withStore(_ kind: String?, _ body: (String) throws -> Sample) throws -> Sample {
    switch kind {
    case "SQLite":
      let path = "\(folder)/store-\(runs).db"
      defer { File.removeDatabase(path) }
      return try body(path)
    case "PostgreSQL":
      let connection = try PostgresConnection(postgres)
      defer { connection.close() }
      let schema = "bench_\(runs)"
      try connection.execute("CREATE SCHEMA \(schema)")
      let sample = try body(postgres + "&options=-csearch_path%3D\(schema)")
      try connection.execute("DROP SCHEMA \(schema) CASCADE")
      return sample
    default: return try body("")
    }
  }
}
