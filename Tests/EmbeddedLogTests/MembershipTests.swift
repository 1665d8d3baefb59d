import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

@testable import PurchasesEmbeddedLog

/// Leases on a clock that the test turns, so that nothing here waits.
@Suite struct MembershipTests {
  let test: TestLog
  let log: EmbeddedLog

  init() throws {
    test = try TestLog()
    log = try test.open()
    try log.ensure([test.spec("t", partitions: 4)])
  }

  private func assignment(_ worker: any LogWorker) throws -> Set<TopicPartition> {
    guard case .assigned(let partitions) = try worker.poll(max: 1, waitMilliseconds: 0) else { return [] }
    return Set(partitions)
  }

  private var all: Set<TopicPartition> { Set((0..<4).map { TopicPartition("t", $0) }) }

  @Test func aLeaseThatRanOutCountsOnceSomebodyLooks() throws {
    let first = try test.worker("w1", on: log)
    #expect(try assignment(first) == all)
    let membership = try first.membership()
    test.clock.advance(milliseconds: 10_001)
    // Nobody has taken over yet, so the work is still this member's alone.
    try first.commit([], offsets: [TopicPartition("t", 0): 0], membership: membership)
    test.clock.advance(milliseconds: 10_001)
    let second = try test.worker("w2", on: log)
    #expect(try assignment(second) == all)
    #expect(kind { try first.commit([], offsets: [:], membership: membership) } == .stale)
    #expect(kind { try first.commit([], offsets: [TopicPartition("t", 0): 0], membership: membership) } == .stale)
    guard case .revoked(let lost, lost: true) = try first.poll(max: 1, waitMilliseconds: 0) else {
      Issue.record("the loss was not reported")
      return
    }
    #expect(Set(lost) == all)
  }

  @Test func aLeaseWithinItsTimeIsKept() throws {
    let first = try test.worker("w1", on: log)
    #expect(try assignment(first) == all)
    test.clock.advance(milliseconds: 10_000)
    let second = try test.worker("w2", on: log)
    #expect(try assignment(second).isEmpty)
    try first.commit([], offsets: [TopicPartition("t", 0): 0], membership: first.membership())
  }

  @Test func aClockSetBackDoesNotKeepTheDeadAlive() throws {
    test.clock.advance(milliseconds: 3_600_000)
    let dead = try test.worker("w1", on: log)
    #expect(try assignment(dead) == all)
    test.clock.advance(milliseconds: -3_600_000)
    let second = try test.worker("w2", on: log)
    #expect(try assignment(second) == all)
  }

  @Test func aBatchFromBeforeAPartitionLeftAndCameBackIsStale() throws {
    let first = try test.worker("w1", on: log)
    #expect(try assignment(first) == all)
    let before = try first.membership()
    let second = try test.worker("w2", on: log)
    guard case .revoked(let moved, lost: false) = try first.poll(max: 1, waitMilliseconds: 0) else {
      Issue.record("nothing was revoked")
      return
    }
    #expect(moved == [TopicPartition("t", 2), TopicPartition("t", 3)])
    try first.release(moved)
    #expect(try assignment(second) == Set(moved))
    second.close()
    #expect(try assignment(first) == Set(moved))
    #expect(kind { try first.commit([], offsets: [moved[0]: 0], membership: before) } == .stale)
    // The partitions that stayed are not touched by that.
    try first.commit([], offsets: [TopicPartition("t", 0): 0], membership: before)
    try first.commit([], offsets: [moved[0]: 0], membership: first.membership())
    #expect(kind { try first.commit([], offsets: [:], membership: Membership(token: [1, 2])) } == .stale)
  }

  @Test func aTakenOverWorkerIsFencedWhereverItTurns() throws {
    let older = try test.worker("w", on: log)
    #expect(try assignment(older) == all)
    let other = try test.open()
    defer { other.close() }
    let newer = try test.worker("w", on: other)
    #expect(kind { _ = try older.poll(max: 1, waitMilliseconds: 0) } == .fenced)
    #expect(kind { try older.commit([], offsets: [:], membership: older.membership()) } == .fenced)
    // Leaving must not take the newer one's place with it.
    older.close()
    #expect(try assignment(newer) == all)
    try newer.commit([], offsets: [TopicPartition("t", 0): 0], membership: newer.membership())
  }

  @Test func startingBeyondTheEndIsALoss() throws {
    let worker = try test.worker("w", on: log)
    #expect(try assignment(worker) == all)
    #expect(kind { try worker.start([TopicPartition("t", 0): 1]) } == .lost)
    #expect(kind { try worker.start([TopicPartition("t", 0): -1]) } == .lost)
    #expect(kind { try worker.start([TopicPartition("u", 0): 0]) } == .stale)
    try worker.start([TopicPartition("t", 0): 0])
    #expect(kind { _ = try test.worker("x", on: log, topics: ["unknown"]) } == .refused)
  }

  @Test func rangesCoverEveryPartitionOnce() {
    for partitions: Int32 in 0..<14 {
      for count in 1..<9 {
        let members = (0..<count).map { "m\($0)" }.shuffled()
        let ranges = members.map { RangeAssignment.range(of: $0, among: members, partitions: partitions) }
        #expect(ranges.flatMap { $0 }.sorted() == Array(0..<partitions))
        let sizes = ranges.map(\.count)
        #expect((sizes.max() ?? 0) - (sizes.min() ?? 0) <= 1)
      }
    }
    #expect(RangeAssignment.range(of: "stranger", among: ["m"], partitions: 4).isEmpty)
  }
}
