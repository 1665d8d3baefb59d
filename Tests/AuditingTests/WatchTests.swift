import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct WatchTests {
  private static let start: Int64 = 1_800_000_000_000
  private static let hour: Int64 = 3_600_000
  private static let day = 24 * hour

  /// What the log says of transaction 7, each with its time in milliseconds from the start.
  private enum Said {
    case purchased(Int64)
    case failed(Int64)
    case finished(Int64)
    case verified(Int64)
    case rejected(Int64)
    case granted(Int64)
  }

  private func instant(_ after: Int64) -> Instant { Instant(milliseconds: Self.start + after) }

  private func append(_ said: Said, to log: MemoryLog, subject: String? = "Sandbox/7") {
    let (topic, type, at): (Topic, EventType, Int64) =
      switch said {
      case .purchased(let at): (.received, .paymentPurchased, at)
      case .failed(let at): (.received, .paymentFailed, at)
      case .finished(let at): (.received, .paymentFinished, at)
      case .verified(let at): (.verified, .purchaseVerified, at)
      case .rejected(let at): (.verified, .purchaseRejected, at)
      case .granted(let at): (.entitlements, .paymentFinishable, at)
      }
    let envelope = Envelope(id: "x", source: "/test", type: type, subject: subject, time: instant(at))
    let data = #"{"account":"a","environment":"Sandbox","transactionId":"7","signedTransaction":"a.b.c"}"#
    log.append(
      Record(
        key: Array("Sandbox/\(type.rawValue)".utf8), value: Array(data.utf8),
        headers: envelope.headers,
        timestamp: instant(at)), to: topic)
  }

  /// Kinds and ages of the anomalies that are found while the clock looks every hour, for thirty days.
  private func found(_ said: [Said], days: Int64 = 30) throws -> [String] {
    let settings = try Fixture.settings(partitions: 2)
    let log = MemoryLog(settings.topics)
    for item in said { append(item, to: log) }
    let harness = StageHarness(AuditingStage(settings), log)
    var random = SeededRandom(seed: 3)
    harness.workAll(&random, longest: 2)
    for hour in 0..<days * 24 { harness.schedule(now: instant(hour * Self.hour)) }
    #expect(harness.anomalies.allSatisfy { $0.subject?.text == "Sandbox/7" })
    return harness.anomalies.map { "\($0.kind.rawValue) \($0.ageMilliseconds / Self.hour)h" }
  }

  @Test func aPurchaseThatIsGrantedAndFinishedIsFine() throws {
    #expect(try found([.purchased(0), .verified(10), .granted(20), .finished(30)]) == [])
  }

  @Test func purchasedAndNeverGranted() throws {
    #expect(try found([.purchased(0)]) == ["purchased-never-granted 1h"])
    #expect(try found([.purchased(0), .verified(10)]) == ["purchased-never-granted 1h"])
  }

  @Test func grantedAndNeverFinished() throws {
    #expect(try found([.purchased(0), .verified(10), .granted(0)]) == ["granted-never-finished 168h"])
  }

  @Test func grantedWithoutAClientsReportIsNotExpectedToFinish() throws {
    #expect(try found([.verified(0), .granted(10)]) == [])
  }

  @Test func finishedWithoutGrant() throws {
    #expect(try found([.finished(0)]) == ["finished-without-grant 1h"])
    let both = try found([.purchased(0), .finished(0)])
    #expect(both.sorted() == ["finished-without-grant 1h", "purchased-never-granted 1h"])
    // Rejected, and finished all the same: there was no permit.
    #expect(try found([.purchased(0), .rejected(5), .finished(0)]) == ["finished-without-grant 1h"])
  }

  @Test func aRejectedPurchaseIsNoAnomaly() throws {
    #expect(try found([.purchased(0), .rejected(10)]) == [])
  }

  @Test func aForgeryOfTheSameTransactionHidesNothing() throws {
    #expect(try found([.purchased(0), .rejected(10), .verified(20)]) == ["purchased-never-granted 1h"])
  }

  @Test func aFailedPaymentThatIsFinishedIsNoAnomaly() throws {
    #expect(try found([.failed(0), .finished(10)]) == [])
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    append(.failed(0), to: log, subject: nil)
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 1)
    harness.settle(now: instant(40 * Self.day))
    #expect(harness.anomalies == [])
  }

  @Test func laterEventsOfAnotherPartitionCloseWhatIsOpen() throws {
    // A late grant: reported once, and then watched until it is finished.
    #expect(try found([.purchased(0), .granted(5 * Self.hour), .finished(6 * Self.hour)]) == [])
    #expect(try found([.purchased(0), .granted(20 * Self.day), .finished(21 * Self.day)]) == [])
  }

  @Test func whatComesAfterTheReportIsStillWatched() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    let harness = StageHarness(AuditingStage(settings), log)
    var random = SeededRandom(seed: 4)
    append(.purchased(0), to: log)
    harness.workAll(&random, longest: 1)
    harness.settle(now: instant(2 * Self.hour))
    #expect(harness.anomalies.map(\.kind) == [.purchasedNeverGranted])
    append(.granted(3 * Self.hour), to: log)
    harness.workAll(&random, longest: 1)
    harness.settle(now: instant(5 * Self.hour))
    #expect(harness.anomalies.count == 1)
    harness.settle(now: instant(8 * Self.day))
    #expect(harness.anomalies.map(\.kind) == [.purchasedNeverGranted, .grantedNeverFinished])
    // The client reports the same purchase at every launch: nothing new.
    append(.purchased(9 * Self.day), to: log)
    harness.workAll(&random, longest: 1)
    harness.settle(now: instant(40 * Self.day))
    #expect(harness.anomalies.count == 2)
    append(.finished(41 * Self.day), to: log)
    harness.workAll(&random, longest: 1)
    harness.settle(now: instant(50 * Self.day))
    #expect(harness.anomalies.count == 2)
    #expect(
      harness.rows[Watched.key(TransactionSubject(.sandbox, try #require(TransactionID("7"))))]?["look_at"] == .null)
  }

  @Test func theOrderInWhichPartitionsAreReadChangesNothing() throws {
    let said: [Said] = [.purchased(0), .verified(10), .rejected(12), .granted(20), .finished(30)]
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let settings = try Fixture.settings(partitions: 2)
    let key = Watched.key(TransactionSubject(.sandbox, try #require(TransactionID("7"))))
    var rows: Set<[Value]> = []
    for _ in 0..<30 {
      let log = MemoryLog(settings.topics)
      for item in said.shuffled(using: &random) { append(item, to: log) }
      let harness = StageHarness(AuditingStage(settings), log)
      harness.workAll(&random, longest: 3)
      rows.insert(try #require(harness.rows[key]).values)
    }
    #expect(rows.count == 1, "seed \(seed)")
  }

  @Test func newsThatComesBetweenLookAndWriteIsNotLost() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    append(.purchased(0), to: log)
    append(.granted(10), to: log)
    let harness = StageHarness(AuditingStage(settings), log)
    var random = SeededRandom(seed: 5)
    harness.workAll(&random, longest: 2)
    append(.finished(20), to: log)
    harness.beforeScheduledWrites = { harness in
      if harness.left(TopicPartition("purchases.received", 0)) > 0 {
        harness.work(TopicPartition("purchases.received", 0), 1)
      }
    }
    harness.schedule(now: instant(2 * Self.hour))
    for day in 1..<30 { harness.schedule(now: instant(Int64(day) * Self.day)) }
    #expect(harness.anomalies == [])
  }

  @Test func aCrashAfterTheEventLeadsToTheSameEventAgain() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    append(.purchased(0), to: log)
    let harness = StageHarness(AuditingStage(settings), log)
    var random = SeededRandom(seed: 6)
    harness.workAll(&random, longest: 2)
    harness.schedule(now: instant(2 * Self.hour), crashBeforeWrites: true)
    harness.schedule(now: instant(2 * Self.hour))
    let found = harness.emitted.filter { $0.event.type == .auditAnomalyFound }
    #expect(found.count == 2)
    #expect(Set(found.map(\.id)).count == 1)
  }

  @Test func nothingIsLookedAtBeforeTheStagesBeforeHaveWorked() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    append(.purchased(0), to: log)
    let harness = StageHarness(AuditingStage(settings), log)
    var random = SeededRandom(seed: 7)
    harness.workAll(&random, longest: 2)
    for _ in 0..<5 { harness.schedule(now: instant(9 * Self.day), workedOff: instant(Self.hour - 1)) }
    #expect(harness.anomalies == [])
    harness.schedule(now: instant(9 * Self.day), workedOff: instant(Self.hour))
    #expect(harness.anomalies.count == 1)
  }

  @Test func aForeignProducersEventWithoutSubjectIsFollowedByItsData() throws {
    let settings = try Fixture.settings(partitions: 1)
    for subject in [nil, "user/42", "Sandbox/", "Nowhere/7"] as [String?] {
      let log = MemoryLog(settings.topics)
      append(.purchased(0), to: log, subject: subject)
      let harness = StageHarness(AuditingStage(settings), log)
      harness.work(TopicPartition("purchases.received", 0), 1)
      harness.settle(now: instant(2 * Self.hour))
      #expect(harness.anomalies.first?.subject?.text == "Sandbox/7", "subject \(subject ?? "none")")
    }
  }

  @Test(arguments: [Int64.min, -1, Int64.max]) func anyTimestampIsBorne(milliseconds: Int64) throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    let envelope = Envelope(id: "x", source: "/test", type: .paymentFinished, subject: "Sandbox/7")
    let alarm = [
      Header("purchases-quarantine-stage", "ownership"), Header("purchases-quarantine-topic", "t"),
      Header("purchases-quarantine-partition", "0"), Header("purchases-quarantine-offset", "0"),
      Header("purchases-quarantine-alarm", "unreadable"),
    ]
    for (topic, headers) in [(Topic.received, envelope.headers), (.quarantine, alarm)] {
      for _ in 0..<3 {
        log.append(
          Record(key: nil, value: nil, headers: headers, timestamp: Instant(milliseconds: milliseconds)), to: topic)
      }
    }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 3)
    harness.work(TopicPartition("purchases.quarantine", 0), 3)
    harness.settle(now: instant(0))
    #expect(harness.anomalies.filter { $0.kind == .unreadableInInternalTopic }.count == 3)
    #expect(harness.anomalies.filter { $0.kind == .finishedWithoutGrant }.count == (milliseconds < 0 ? 1 : 0))
    #expect(try AuditProgress.isSettled(harness.reader))
  }

  @Test func headersThatNobodyCanStoreAreNoKeys() {
    for subject in ["Sandbox/7\u{0}", "Sandbox/a b", "Sandbox/7/8", "/7", "Sandbox", ""] {
      #expect(TransactionSubject(subject) == nil)
    }
    #expect(TransactionSubject("Production/2000000123")?.text == "Production/2000000123")
  }

  @Test func aRecordInQuarantineIsAnAlarmOnlyWhereOurOwnStagesWrote() throws {
    let settings = try Fixture.settings(partitions: 1)
    let log = MemoryLog(settings.topics)
    for alarm in ["none", "unreadable", "contradiction"] {
      log.append(
        Record(
          key: nil, value: Array("secret".utf8),
          headers: [
            Header("purchases-quarantine-reason", "x"), Header("purchases-quarantine-stage", "ownership"),
            Header("purchases-quarantine-topic", "purchases.verified"), Header("purchases-quarantine-partition", "3"),
            Header("purchases-quarantine-offset", "44"), Header("purchases-quarantine-alarm", alarm),
          ], timestamp: instant(0)), to: .quarantine)
    }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.quarantine", 0), 3)
    let anomaly = try #require(harness.anomalies.first)
    #expect(harness.anomalies.map(\.kind) == [.unreadableInInternalTopic, .contradictingNotification])
    #expect(harness.anomalies.last?.kind.severity == .high)
    #expect(anomaly.kind == .unreadableInInternalTopic)
    #expect(anomaly.kind.severity == .highest)
    #expect(anomaly.coordinates == Coordinates(topic: "purchases.verified", partition: 3, offset: 44))
    #expect(!anomaly.explanation.contains("secret"))
  }

  @Test func manyDueRowsAreWorkedOffInParts() throws {
    var limits = AuditLimits()
    limits.rowsPerLook = 3
    let settings = try Fixture.settings(partitions: 1, limits: limits)
    let log = MemoryLog(settings.topics)
    for number in 0..<10 { append(.purchased(Int64(number)), to: log, subject: "Sandbox/\(number)") }
    let harness = StageHarness(AuditingStage(settings), log)
    harness.work(TopicPartition("purchases.received", 0), 10)
    harness.settle(now: instant(2 * Self.hour))
    #expect(harness.anomalies.count == 10)
    #expect(Set(harness.emitted.map(\.id)).count == harness.emitted.count)
  }
}
