import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct CheckpointTests {
  private func record(_ second: Int64) -> Record {
    Record(key: [1], value: [2], timestamp: Instant(milliseconds: second * 1000))
  }

  @Test func signsAfterSoManyLeavesOrSoMuchLogTimeAndNotOtherwise() throws {
    var limits = AuditLimits()
    limits.leavesPerCheckpoint = 4
    let settings = try Fixture.settings(partitions: 1, limits: limits)
    let log = MemoryLog(settings.topics)
    // Four at once; then three within ten seconds; then one that is ten seconds after the last signed one.
    for second in [0, 0, 0, 0, 1, 2, 9, 10, 11] as [Int64] { log.append(record(second), to: .received) }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 9)
    #expect(harness.checkpoints.map(\.size) == [4, 8])
    #expect(harness.emitted.map(\.timestamp.milliseconds) == [0, 10_000])
  }

  @Test func aNoteIsOneOfItsTreeAndOfTheKey() throws {
    let (harness, settings) = try Fixture.audited()
    for event in harness.checkpoints {
      let origin: String
      switch event.scope {
      case .partition(let partition): origin = "example.com/purchases/\(partition.topic)/\(partition.partition)"
      case .summary: origin = "example.com/purchases/summary/\(Fixture.late.milliseconds)"
      }
      let verifier = try NoteVerifier(name: origin, publicKey: try Fixture.key().publicKey)
      let head = try Checkpoint(verifying: Array(event.note.utf8), with: [verifier])
      #expect(head.origin == origin)
      #expect(Int64(head.size) == event.size)
      #expect(head.root.hex == event.root)
    }
    #expect(settings.verifierKey.name == "example.com/purchases")
  }

  @Test func whatIsQuietIsSignedAsItStandsAndThenNothingMore() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    for second in 0..<3 { log.append(record(Int64(second)), to: .received) }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 3)
    #expect(harness.checkpoints.isEmpty)
    let last = Instant(milliseconds: 2000)
    #expect(!harness.schedule(now: last.advanced(byMilliseconds: 999)), "not quiet for long enough")
    #expect(try !AuditProgress.isSettled(harness.reader))
    var rounds = 0
    while try !AuditProgress.isSettled(harness.reader) {
      #expect(harness.schedule(now: last.advanced(byMilliseconds: 1000)), "not settled, and nothing to do")
      rounds += 1
    }
    // The partition's checkpoint, the summary kept, the summary published.
    #expect(rounds == 3)
    #expect(!harness.schedule(now: last.advanced(byMilliseconds: 1000)))
    #expect(harness.checkpoints.map(\.size) == [3, 1])
    harness.settle(now: last.advanced(byMilliseconds: 500_000))
    #expect(harness.checkpoints.count == 2, "no checkpoint for checkpoints alone")
  }

  @Test func aDateInTheFutureDoesNotPutTheSignatureOff() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    log.append(record(0), to: .received)
    log.append(record(4_000_000_000), to: .received)
    log.append(record(4_000_000_001), to: .received)
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 3)
    harness.settle(now: Instant(milliseconds: 5000))
    #expect(harness.rows[TreeState.key(TopicPartition("purchases.received", 0))]?["checkpointed_size"] == .integer(3))
  }

  @Test func aCrashBetweenEventAndWriteLeadsToTheSameEventAgain() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    for second in 0..<3 { log.append(record(Int64(second)), to: .received) }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 3)
    for _ in 0..<4 {
      harness.schedule(now: Fixture.late, crashBeforeWrites: true)
      harness.schedule(now: Fixture.late)
    }
    #expect(Set(harness.emitted.map { "\($0.id) \($0.event)" }).count == 2)
    #expect(Set(harness.emitted.map(\.id)).count == 2)
    #expect(harness.emitted.count > 2, "the crash must have repeated something")
    let report = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(log)
    #expect(report.findings == [])
  }

  @Test func theSummaryNeverSignsTwoRootsOfOneSize() throws {
    let settings = try Fixture.settings(partitions: 2, limits: Fixture.fewLeaves)
    let log = SmallPipeline(settings.topics, payments: 90).log
    let harness = StageHarness(AuditingStage(settings), log)
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    var now = Fixture.late
    let audited = log.records.keys.sorted().filter {
      Topic.audited.contains(log.topics.topic(named: $0.topic) ?? .audit)
    }
    while let partition = audited.filter({ harness.left($0) > 0 }).randomElement(using: &random) {
      harness.work(partition, Int.random(in: 1...min(9, harness.left(partition)), using: &random))
      now = now.advanced(byMilliseconds: 4000)
      harness.schedule(now: now, crashBeforeWrites: Int.random(in: 0..<3, using: &random) == 0)
    }
    harness.settle(now: now.advanced(byMilliseconds: 100_000))
    var roots: [Int64: Set<String>] = [:]
    for event in harness.checkpoints where event.scope == summaryScope(event) {
      roots[event.size, default: []].insert(event.root)
    }
    #expect(roots.count > 3, "seed \(seed)")
    #expect(roots.values.allSatisfy { $0.count == 1 }, "seed \(seed)")
    let report = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(log)
    #expect(report.findings == [], "seed \(seed)")
    #expect(report.summary?.size == roots.keys.max())
  }

  @Test func aStoreThatBeginsAnewContradictsNothing() throws {
    let (harness, settings) = try Fixture.audited()
    let first = harness.emitted
    let again = StageHarness(AuditingStage(settings), harness.log)
    var random = SeededRandom(seed: 99)
    again.workAll(&random, longest: 7)
    again.settle(now: Fixture.late.advanced(byMilliseconds: 86_400_000))
    // The partitions' checkpoints are the same events once more; the log over them is another.
    let old = Set(first.map(\.id))
    let new = again.checkpoints.filter { summaryScope($0) != nil }
    #expect(new.count >= 1)
    #expect(again.emitted.filter { $0.event.type == .auditCheckpointed && !old.contains($0.id) }.count == new.count)
    let report = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(harness.log)
    #expect(report.findings == [])
    #expect(report.summary?.origin == "example.com/purchases/summary/\(Fixture.late.milliseconds + 86_400_000)")
  }

  private func summaryScope(_ event: AuditCheckpointed) -> AuditCheckpointed.Scope? {
    if case .summary = event.scope { event.scope } else { nil }
  }

  @Test func everyCheckpointIsTheBeginningOfEveryLaterOne() throws {
    let (harness, settings) = try Fixture.audited(payments: 60, partitions: 1)
    let prover = AuditProver(topics: settings.topics, key: settings.verifierKey)
    var byPartition: [TopicPartition: [AuditCheckpointed]] = [:]
    for event in harness.checkpoints {
      if case .partition(let partition) = event.scope { byPartition[partition, default: []].append(event) }
    }
    #expect(byPartition.count == 6)
    var pairs = 0
    for (partition, events) in byPartition {
      for (place, old) in events.enumerated() {
        for new in events[place...] {
          let proof = try prover.consistency(harness.log, partition, from: old.size, to: new.size)
          let oldRoot = try #require(Hash256(hex: old.root))
          let newRoot = try #require(Hash256(hex: new.root))
          #expect(
            MerkleTree.verifyConsistency(
              from: UInt64(old.size), to: UInt64(new.size), oldRoot: oldRoot, newRoot: newRoot, proof: proof))
          pairs += 1
        }
      }
    }
    #expect(pairs > 10)
  }

  @Test func aNameThatNoNoteCanCarryIsRefusedAtTheStart() throws {
    for name in ["", "has space", "has+plus", "new\nline"] {
      #expect(throws: NoteError.self) {
        try AuditSettings(topics: TopicSettings(), name: name, key: try Fixture.key())
      }
    }
    let names = AuditNames(name: "a")
    let born = Instant(milliseconds: 1_800_000_000_000)
    #expect(names.born(of: names.summary(born: born)) == born)
    #expect(names.partition(of: names.summary(born: born)) == nil)
    for origin in ["a", "a/summary", "a/summary/", "a/summary/01", "b/summary/1"] {
      #expect(names.born(of: origin) == nil)
    }
    #expect(names.partition(of: "a/t/3") == TopicPartition("t", 3))
    for origin in ["a", "b/t/3", "a/t", "a/t/03", "a/t/-", "a/t/3/", "ab/t/3"] {
      #expect(names.partition(of: origin) == nil)
    }
  }
}
