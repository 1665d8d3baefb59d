import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesSQLite
import PurchasesTestKit
import Testing

/// Kills and stops other processes in the middle of their work. The seed is printed; set PURCHASES_TEST_SEED to repeat a run.
@Suite(.serialized) struct CrashTests {
  let folder: TemporaryFolder
  let path: String
  var random: SeededRandom

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("log.db")
    let seed =
      ProcessInfo.processInfo.environment["PURCHASES_TEST_SEED"].flatMap(UInt64.init) ?? .random(in: 0..<1 << 32)
    print("CrashTests seed \(seed)")
    random = SeededRandom(seed: seed)
  }

  private func spec(_ name: String) -> TopicSpec {
    TopicSpec(name: name, partitions: 3, replication: 1, isCompacted: false, maximumBytes: 1 << 20)
  }

  private func contents(of topic: String, in log: EmbeddedLog) throws -> [[StoredRecord]] {
    let reader = try log.reader()
    defer { reader.close() }
    return try (Int32(0)..<3).map { partition in
      var records: [StoredRecord] = []
      while true {
        let read = try reader.read(TopicPartition(topic, partition), from: Int64(records.count), max: 10_000)
        if read.isEmpty { return records }
        records += read
      }
    }
  }

  private func isIntact() throws -> Bool {
    try SQLiteConnection(path: path).scalar("PRAGMA integrity_check") == .text("ok")
  }

  @Test mutating func acknowledgedRecordsOutliveKills() throws {
    var acknowledged: [String: [Int]] = [:]
    let rounds = 12
    for round in 0..<rounds {
      let log = try EmbeddedLog(path: path)
      try log.ensure([spec("t\(round)")])
      log.close()
      // Two processes append at once; both are killed somewhere in the middle of a commit.
      let names = ["a\(round)", "b\(round)"]
      let programs = try names.map { try Program(["append", path, "t\(round)", $0]) }
      let counts = names.map { _ in Int.random(in: 1...150, using: &random) }
      for (index, program) in programs.enumerated() {
        var numbers: [Int] = []
        for _ in 0..<counts[index] {
          guard let line = program.line(), let number = Int(line) else { break }
          numbers.append(number)
        }
        #expect(numbers.count == counts[index], "\(names[index]) said something else than a number")
        usleep(UInt32.random(in: 0...2_000, using: &random))
        numbers += program.killed().compactMap(Int.init)
        #expect(numbers == Array(0..<numbers.count), "\(names[index]) was acknowledged out of order")
        acknowledged[names[index]] = numbers
      }
      try expectAll(acknowledged.filter { names.contains($0.key) }, in: "t\(round)")
      #expect(try isIntact())
    }
    // Later crashes have taken nothing from earlier topics.
    for round in 0..<rounds {
      try expectAll(acknowledged.filter { ["a\(round)", "b\(round)"].contains($0.key) }, in: "t\(round)")
    }
    #expect(acknowledged.count == 2 * rounds)
  }

  /// Every acknowledged record is there once, none is torn, offsets have no gaps and each key is in order.
  private func expectAll(_ acknowledged: [String: [Int]], in topic: String) throws {
    let log = try EmbeddedLog(path: path)
    defer { log.close() }
    var seen: [String: Int] = [:]
    var lastOfKey: [String: Int] = [:]
    for (partition, records) in try contents(of: topic, in: log).enumerated() {
      for (offset, stored) in records.enumerated() {
        let value = String(decoding: stored.record.value ?? [], as: UTF8.self)
        let key = String(decoding: stored.record.key ?? [], as: UTF8.self)
        let number = try #require(value.split(separator: "-").last.flatMap { Int($0) })
        let isWhole =
          stored.record.headerText("number") == "\(number)" && stored.record.timestamp.milliseconds == Int64(number)
        if stored.coordinates.offset != Int64(offset) || !isWhole || lastOfKey[key] ?? -1 >= number {
          Issue.record("\(topic)/\(partition): \(value) at \(stored.coordinates.offset) is torn or out of place")
        }
        lastOfKey[key] = number
        seen[value, default: 0] += 1
      }
    }
    #expect(seen.values.allSatisfy { $0 == 1 }, "records that stand twice")
    for (name, numbers) in acknowledged {
      #expect(numbers.allSatisfy { seen["\(name)-\($0)"] == 1 }, "\(name): an acknowledged record is gone")
    }
  }

  /// The file is taken away from a process that appends. Kept under other names, it is put back afterwards, as the failure
  /// asks for: all that was acknowledged is there, before and after that moment.
  @Test func whatWasAcknowledgedBeforeTheFileWasDeletedIsInIt() throws {
    let log = try EmbeddedLog(path: path)
    try log.ensure([spec("t")])
    let program = try Program(["append", path, "t", "a"])
    var numbers: [Int] = []
    while numbers.count < 200, let line = program.line(), let number = Int(line) { numbers.append(number) }
    #expect(numbers.count == 200)
    for suffix in ["", "-wal"] { #expect(link(path + suffix, path + ".kept" + suffix) == 0) }
    for suffix in ["", "-wal", "-shm"] { #expect(unlink(path + suffix) == 0) }
    var refusal: String?
    while refusal == nil, let line = program.line() {
      if let number = Int(line) { numbers.append(number) } else { refusal = line }
    }
    #expect(refusal?.contains("was deleted, moved or replaced") == true, "\(refusal ?? "it went on or ended")")
    // Batches may be reported from more than one transaction; each of them is refused from here on.
    #expect(program.killed().allSatisfy { $0.contains("was deleted, moved or replaced") })
    log.close()
    #expect(access(path, F_OK) != 0, "nobody made another file in its place")
    for suffix in ["", "-wal"] { #expect(rename(path + ".kept" + suffix, path + suffix) == 0) }
    let again = try EmbeddedLog(path: path)
    defer { again.close() }
    let found = Set(
      try contents(of: "t", in: again).joined().map { String(decoding: $0.record.value ?? [], as: UTF8.self) })
    #expect(numbers.allSatisfy { found.contains("a-\($0)") }, "an acknowledged record is gone")
    #expect(try isIntact())
  }

  @Test mutating func killedWorkersCopyEveryRecordOnce() throws {
    let log = try EmbeddedLog(path: path)
    defer { log.close() }
    try log.ensure([spec("in"), spec("out")])
    let producer = try log.producer()
    let rounds = 15
    let recordsPerRound = 400
    var kills = 0
    func worker(_ name: String, session: Int) throws -> Program {
      try Program(["work", path, "g", name, "\(session)", "in", "out"])
    }
    func kill(_ program: Program) {
      for line in program.killed() where line.hasPrefix("failed") { Issue.record("\(line)") }
      kills += 1
    }
    // Each round brings more to do, so that every pair of workers is killed with work before it.
    for round in 0..<rounds {
      let numbers = round * recordsPerRound..<(round + 1) * recordsPerRound
      let records = numbers.map { number in
        ProducedRecord(
          topic: "in",
          record: Record(
            key: Array("k\(number % 31)".utf8), value: Array("\(number)".utf8), timestamp: Instant(milliseconds: 1)))
      }
      producer.publish(records) { _ in }
      // Both are started under the names of their killed predecessors and take their places. On a slow disk a session this
      // short runs out, and shares are lost and taken over as well.
      let programs = try ["w1", "w2"].map { try worker($0, session: 200) }
      let watched = programs[Int.random(in: 0...1, using: &random)]
      let wanted = Int.random(in: 0...4, using: &random)
      var commits = 0
      var idles = 0
      while commits < wanted, let line = watched.line() {
        if line.hasPrefix("committed") { commits += 1 }
        if line.hasPrefix("failed") { Issue.record("\(line)") }
        // The other one may have everything: then this one would be watched for ever.
        if line.hasPrefix("idle") { idles += 1 }
        if idles == 50 { break }
      }
      usleep(UInt32.random(in: 0...3_000, using: &random))
      for program in programs { kill(program) }
    }
    #expect(producer.close(withinMilliseconds: 60_000) == 0)
    // The last one lives until it holds all partitions and has come to their ends; how long that takes is the disk's affair.
    let last = try worker("w1", session: 3_000)
    #expect(last.line { $0 == "idle 3" || $0.hasPrefix("failed") } == "idle 3")
    kill(last)
    print("CrashTests killed \(kills) workers")
    #expect(try contents(of: "out", in: log) == contents(of: "in", in: log).map { $0.map(Self.moved) })
    #expect(try log.committed(group: "g", topic: "in") == log.bounds(of: "in").mapValues(\.end))
    #expect(try isIntact())
  }

  private static func moved(_ stored: StoredRecord) -> StoredRecord {
    StoredRecord(
      coordinates: Coordinates(
        topic: "out", partition: stored.coordinates.partition, offset: stored.coordinates.offset),
      record: stored.record)
  }

  @Test mutating func aStoppedWorkerIsReplacedAndComesBackStale() throws {
    let log = try EmbeddedLog(path: path)
    defer { log.close() }
    try log.ensure([spec("in"), spec("out")])
    let producer = try log.producer()
    let stopped = try Program(["work", path, "g", "w1", "200", "in", "out"])
    #expect(stopped.line { $0 == "assigned 3" } != nil)
    stopped.send(SIGSTOP)
    let replacement = try Program(["work", path, "g", "w2", "200", "in", "out"])
    #expect(replacement.line { $0 == "assigned 3" } != nil)
    producer.publish(
      (0..<30).map {
        ProducedRecord(
          topic: "in", partition: Int32($0 % 3),
          record: Record(key: nil, value: Array("\($0)".utf8), timestamp: Instant(milliseconds: 1)))
      }
    ) { _ in }
    #expect(producer.close(withinMilliseconds: 10_000) == 0)
    #expect(replacement.line { $0 == "idle 3" } != nil)
    stopped.send(SIGCONT)
    // Whatever it was about to do, it finds that it has lost its share, and gets a new one.
    #expect(stopped.line { $0.hasPrefix("lost") } != nil)
    #expect(stopped.line { $0.hasPrefix("assigned") } != nil)
    for program in [stopped, replacement] {
      for line in program.killed() where line.hasPrefix("failed") { Issue.record("\(line)") }
    }
    #expect(try contents(of: "out", in: log).joined().count == 30)
  }
}
