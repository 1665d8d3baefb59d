import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesSQLite
import PurchasesTestKit
import Testing

/// What the file itself refuses, and what becomes of a log whose disk is full or whose file is not what it should be.
@Suite struct FileTests {
  let test: TestLog

  init() throws { test = try TestLog() }

  @Test func aFullDiskIsTypedAndNothingIsHalfWritten() throws {
    let log = try test.open(maximumSize: 2 << 20)
    try log.ensure([test.spec("t"), test.spec("out")])
    var written: [String] = []
    var failures = 0
    for round in 0..<60 {
      let batch = (0..<20).map { test.produced("t", "\(round)-\($0)", bytes: 3_000) }
      let results = try test.publish(batch, to: log)
      let succeeded = results.filter { (try? $0.get()) != nil }.count
      #expect(succeeded == 0 || succeeded == 20, "a batch of one publish was torn")
      if succeeded == 20 { written += (0..<20).map { "\(round)-\($0)" } } else { failures += 1 }
      for case .failure(let failure) in results { #expect(failure.kind == .unavailable, "\(failure)") }
    }
    #expect(failures > 0 && !written.isEmpty)
    let seen = try test.contents(of: "t", in: log)
    #expect(seen.map { text($0).prefix { $0 != "." } }.map(String.init) == written)
    #expect(seen.map(\.coordinates.offset) == (0..<Int64(seen.count)).map { $0 })

    let worker = try test.worker("w", on: log)
    #expect(
      kind {
        try worker.commit(
          (0..<100).map { test.produced("out", "\($0)", bytes: 30_000) }, offsets: [TopicPartition("t", 0): 1],
          membership: worker.membership())
      } != nil)
    #expect(try log.committed(group: "g", topic: "t") == [:])
    #expect(try test.contents(of: "out", in: log).isEmpty)
    worker.close()
    log.close()

    // With room again, it goes on where it stood.
    let roomy = try test.open()
    defer { roomy.close() }
    let more = try test.publish([test.produced("t", "more")], to: roomy)
    #expect(try more[0].get().offset == Int64(written.count))
  }

  private func text(_ stored: StoredRecord) -> String { String(decoding: stored.record.value ?? [], as: UTF8.self) }

  @Test func aFileThatIsGoneTakesAndGivesNothingMore() throws {
    let log = try test.open()
    defer { log.close() }
    try log.ensure([test.spec("t")])
    _ = try test.publish([test.produced("t", "before")], to: log).map { try $0.get() }
    let reader = try log.reader()
    defer { reader.close() }
    let worker = try test.worker("w", on: log)
    #expect(try reader.read(TopicPartition("t", 0), from: 0, max: 9).count == 1)
    #expect(unlink(test.path) == 0)

    let results = try test.publish([test.produced("t", "after"), test.produced("t", "too")], to: log)
    #expect(results.count == 2)
    for result in results {
      guard case .failure(let failure) = result else {
        Issue.record("a record was acknowledged that nobody will find")
        continue
      }
      #expect(failure.kind == .refused && failure.reason.contains("was deleted, moved or replaced"))
    }
    #expect(kind { _ = try reader.read(TopicPartition("t", 0), from: 0, max: 9) } == .refused)
    #expect(kind { _ = try reader.wait(TopicPartition("t", 0), beyond: 1, milliseconds: 60_000) } == .refused)
    #expect(kind { _ = try worker.poll(max: 1, waitMilliseconds: 60_000) } == .refused)
    #expect(kind { try worker.commit([], offsets: [:], membership: worker.membership()) } == .refused)
    #expect(kind { _ = try log.reader() } == .refused)
    #expect(kind { _ = try test.worker("v", on: log) } == .refused)
    #expect(kind { try log.probe() } == .refused)
    #expect(kind { _ = try log.bounds(of: "t") } == .refused)
    #expect(kind { _ = try log.committed(group: "g", topic: "t") } == .refused)

    // Another file under its name is not it.
    let other = try test.open()
    defer { other.close() }
    try other.ensure([test.spec("t")])
    #expect(kind { try log.probe() } == .refused)
    for case .success in try test.publish([test.produced("t", "elsewhere")], to: log) {
      Issue.record("a record was acknowledged that is in the other file")
    }
    #expect(try test.contents(of: "t", in: other).isEmpty)
  }

  @Test func refusesFilesThatAreNoLog() throws {
    let other = test.folder.file("other.db")
    try SQLiteConnection(path: other).execute("CREATE TABLE t(a)")
    #expect(kind { _ = try EmbeddedLog(path: other) } == .refused)
    let newer = test.folder.file("newer.db")
    try EmbeddedLog(path: newer).close()
    try SQLiteConnection(path: newer).execute("PRAGMA user_version=99")
    #expect(kind { _ = try EmbeddedLog(path: newer) } == .refused)
    let noise = test.folder.file("noise.db")
    try Data(repeating: 0x5a, count: 65_536).write(to: URL(fileURLWithPath: noise))
    #expect(kind { _ = try EmbeddedLog(path: noise) } == .corrupt)
    #expect(kind { _ = try EmbeddedLog(path: test.folder.file("none/log.db")) } == .unavailable)
  }

  @Test func aDamagedFileIsReportedAsCorrupt() throws {
    let log = try test.open()
    try log.ensure([test.spec("t")])
    _ = try test.publish((0..<2_000).map { test.produced("t", "\($0)", bytes: 1_000) }, to: log)
    log.close()
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: test.path))
    let size = try handle.seekToEnd()
    // The head of every page in the second half: no record of that half can be reached any more.
    var page = size / 2 / 16_384 * 16_384
    while page < size {
      try handle.seek(toOffset: page)
      handle.write(Data(repeating: 0xff, count: 512))
      page += 16_384
    }
    try handle.close()
    let again = try test.open()
    defer { again.close() }
    #expect(kind { _ = try test.contents(of: "t", in: again) } == .corrupt)
  }

  @Test func theFileRefusesWhatMustNeverHappen() throws {
    let log = try test.open()
    defer { log.close() }
    try log.ensure([test.spec("t")])
    _ = try test.publish((0..<3).map { test.produced("t", "\($0)") }, to: log)
    let worker = try test.worker("w", on: log)
    try worker.commit([], offsets: [:], membership: worker.membership())
    guard case .assigned = try worker.poll(max: 1, waitMilliseconds: 0) else {
      Issue.record("no assignment")
      return
    }
    try worker.commit([], offsets: [TopicPartition("t", 0): 2], membership: worker.membership())
    #expect(
      kind { try worker.commit([], offsets: [TopicPartition("t", 0): 1], membership: worker.membership()) } == .refused)
    #expect(
      kind { try worker.commit([], offsets: [TopicPartition("t", 0): 4], membership: worker.membership()) } == .refused)
    let raw = try SQLiteConnection(path: test.path)
    for sql in [
      "UPDATE record_1 SET value = x'00'", "DELETE FROM record_1", "UPDATE committed_offset SET next = 1",
      "DELETE FROM committed_offset", "UPDATE consumer_group SET generation = 0", "UPDATE instance SET epoch = 0",
      "INSERT INTO owner VALUES (1, 1, 'w', 1)", "INSERT INTO owner VALUES (1, 1, 'nobody', 1)",
      "INSERT INTO record_1 VALUES (-1, 0, NULL, x'', NULL)", "INSERT INTO record_1 VALUES (0, 0, NULL, x'', NULL)",
    ] {
      #expect(throws: SQLiteError.self, "\(sql)") { try raw.execute(sql) }
    }
    #expect(try raw.integer("SELECT count(*) FROM \"t\" WHERE partition = 0") == 3)
    #expect(try log.committed(group: "g", topic: "t") == [0: 2])
  }

  @Test func topicNamesAreOnlyNames() throws {
    let log = try test.open()
    defer { log.close() }
    let names = ["a\"b", "topic", "member", "x; DROP TABLE topic; --", "sqlite_x", "Großes 🛒", "record_1"]
    try log.ensure(names.map { test.spec($0) })
    for name in names { _ = try test.publish([test.produced(name, name)], to: log).map { try $0.get() } }
    for name in names { #expect(try test.contents(of: name, in: log).map(text) == [name]) }
    #expect(kind { try log.ensure([test.spec("")]) } == .refused)
    #expect(kind { try log.ensure([test.spec("none", partitions: 0)]) } == .refused)
  }

  @Test func instantsAreFoundAmongManyUnsortedOnes() throws {
    let seed = UInt64.random(in: 0..<1 << 32)
    var random = SeededRandom(seed: seed)
    let log = try test.open()
    defer { log.close() }
    try log.ensure([test.spec("t")])
    var times: [Int64] = []
    for index in 0..<5_000 { times.append(Int64(index) * 10 + Int64.random(in: -3_000...3_000, using: &random)) }
    for start in stride(from: 0, to: times.count, by: 700) {
      let records = times[start..<min(times.count, start + 700)].map { test.produced("t", "x", at: $0) }
      _ = try test.publish(records, to: log).map { try $0.get() }
    }
    for _ in 0..<500 {
      let instant = Int64.random(in: -5_000...55_000, using: &random)
      let expected = times.firstIndex { $0 >= instant }.map(Int64.init)
      let found = try log.offset(of: TopicPartition("t", 0), at: Instant(milliseconds: instant))
      #expect(found == expected, "seed \(seed), instant \(instant)")
    }
  }
}
