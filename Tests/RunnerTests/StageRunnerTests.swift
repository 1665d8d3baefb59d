import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesRunner
import PurchasesSQLiteStore
import PurchasesTestKit
import Testing

@Suite struct StageRunnerTests {
  private func expectOnce(_ bench: RunnerBench, _ expected: [String: Int64]) throws {
    for (key, count) in expected { #expect(try bench.tally(key) == count, "\(key) in the store") }
    var answers: [String: [String]] = [:]
    for stored in try bench.records(.entitlements) {
      let key = String(decoding: stored.record.key ?? [], as: UTF8.self)
      answers[key, default: []].append(String(decoding: stored.record.value ?? [], as: UTF8.self))
    }
    for (key, count) in expected {
      #expect(answers[key] == (1...count).map { #"{"count":\#($0)}"# }, "\(key) in the topic")
    }
  }

  private func failure(of body: () throws -> Void) -> RunnerFailure? {
    do {
      try body()
      Issue.record("it did not stop")
    } catch let failure as RunnerFailure { return failure } catch { Issue.record("another error: \(error)") }
    return nil
  }

  private static let load = (0..<300).map { (key: "account-\($0 % 7)", value: "record-\($0)") }
  private static let expected = Dictionary(grouping: load, by: \.key).mapValues { Int64($0.count) }

  @Test func worksOffAllRecordsOnce() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    try expectOnce(bench, Self.expected)
    let origins = try bench.records(.entitlements).map { try Envelope(reading: $0.record).origin?.coordinates }
    #expect(Set(origins).count == Self.load.count)
  }

  /// The first of what a batch brings tells how late it is; records that no clock brought tell nothing.
  @Test func howLateTheClocksWorkCameIsMeasured() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, [(key: "a", value: "any")])
    try bench.run(TallyStage())
    #expect(!bench.metrics.text.contains("purchases_expiry_seconds"))
    let now = bench.clock.now().milliseconds
    try bench.publish(.owned, [(key: "a", value: "due \(now - 500)"), (key: "a", value: "due \(now - 1500)")])
    try bench.run(TallyStage())
    #expect(bench.metrics.text.contains(#"purchases_expiry_seconds_sum{stage="entitlements"} 1.5"#))
    #expect(bench.metrics.text.contains(#"purchases_expiry_seconds_count{stage="entitlements"} 1"#))
  }

  /// Few records at a time: the next ones are read when the log has the last, so that they wait for no commit but their own.
  /// Many, more than a batch takes: they are read and decided meanwhile.
  @Test(arguments: [false, true])
  func aSmallBatchIsInTheLogBeforeTheNextPoll(isLarge: Bool) throws {
    let bench = try RunnerBench()
    let log = FaultyLog(bench.log, faults: [:])
    if isLarge { try bench.publish(.owned, (0..<5000).map { (key: "a", value: "\($0)") }) }
    for part in 0..<4 where !isLarge { try bench.publish(.owned, Array(Self.load.dropFirst(part * 60).prefix(60))) }
    try bench.run(TallyStage(), on: log)
    #expect((log.pollsBeforeFinish > 0) == isLarge)
  }

  @Test func goesOnWhereItStopped() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Array(Self.load.prefix(100)))
    try bench.run(TallyStage())
    try bench.publish(.owned, Array(Self.load.dropFirst(100)))
    try bench.run(TallyStage())
    try expectOnce(bench, Self.expected)
  }

  @Test(
    arguments: [LogFailure.Kind.stale, .aborted, .indefinite, .unavailable], [true, false])
  func oneEffectWhateverBecomesOfACommit(kind: LogFailure.Kind, reachesTheLog: Bool) throws {
    // A commit that is said to be aborted or stale did not reach the log; only the others leave it open.
    if reachesTheLog && (kind == .aborted || kind == .stale) { return }
    let bench = try RunnerBench()
    let faulty = FaultyLog(
      bench.log,
      faults: [0: reachesTheLog ? .after(kind) : .before(kind), 2: reachesTheLog ? .after(kind) : .before(kind)])
    for part in [Self.load.prefix(60), Self.load.dropFirst(60).prefix(60), Self.load.dropFirst(120)] {
      try bench.publish(.owned, Array(part))
      try bench.run(TallyStage(), on: faulty)
    }
    #expect(faulty.openFaults == 0, "each fault was met")
    try expectOnce(bench, Self.expected)
  }

  @Test(arguments: [LogFailure.Kind.stale, .aborted, .indefinite])
  func aRecoveryThatIsDroppedAtAssignmentIsDoneAgain(kind: LogFailure.Kind) throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    // The first commit leaves its batch in the store alone; the second one is the recovery's.
    let faulty = FaultyLog(bench.log, faults: [0: .before(.unavailable), 1: .before(kind)])
    try bench.run(TallyStage(), on: faulty)
    #expect(faulty.openFaults == 0, "each fault was met")
    try expectOnce(bench, Self.expected)
  }

  @Test func aFencedInstanceStops() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    let faulty = FaultyLog(bench.log, faults: [0: .before(.fenced)])
    let failure = failure { try bench.run(TallyStage(), on: faulty) }
    guard case .fenced = failure else {
      Issue.record("stopped for another reason: \(String(describing: failure))")
      return
    }
    // Another instance takes over and publishes what the first one's store holds.
    try bench.run(TallyStage())
    try expectOnce(bench, Self.expected)
  }

  @Test func poisonGoesToQuarantineOnceAndTheRestGoesOn() throws {
    let bench = try RunnerBench()
    let headers = Envelope(id: "x", source: "/tests", type: .factNoted).headers
    let time = bench.clock.now()
    let key = Array("a".utf8)
    let poison: [Record] = [
      Record(key: key, value: Array("poison".utf8), headers: headers, timestamp: time),
      Record(key: key, value: nil, timestamp: time),
      Record(key: nil, value: [0xff, 0xfe], headers: [Header("ce_type", [0xff])], timestamp: time),
      Record(key: key, value: [], headers: headers + [Header("ce_id", "twice")], timestamp: time),
      Record(
        key: key, value: [UInt8](repeating: 0x41, count: 5_000_000), headers: [Header("ce_id", "big")], timestamp: time),
      Record(
        key: key, value: [], headers: headers.map { $0.name == "ce_type" ? Header("ce_type", "unheard.of.v1") : $0 },
        timestamp: time),
    ]
    let good = Record(key: key, value: Array("good".utf8), headers: headers, timestamp: time)
    let name = bench.topics.name(.owned)
    try bench.publish((poison + [good]).map { ProducedRecord(topic: name, partition: 1, record: $0) })
    try bench.run(TallyStage())
    #expect(try bench.tally("a") == 1)
    let found = try bench.records(.quarantine)
    #expect(found.count == poison.count)
    for stored in found {
      let record = stored.record
      let offset = try #require(record.headerText(SpecialHeader.quarantineOffset).flatMap { Int($0) })
      #expect(record.headerText(SpecialHeader.quarantineTopic) == name)
      #expect(record.headerText(SpecialHeader.quarantinePartition) == "1")
      #expect(record.headerText(SpecialHeader.quarantineReason)?.isEmpty == false)
      #expect(record.value == poison[offset].value, "original bytes")
      #expect(record.key == poison[offset].key)
      #expect(Array(record.headers.prefix(poison[offset].headers.count)) == poison[offset].headers)
    }
    #expect(Set(found.compactMap { $0.record.headerText(SpecialHeader.quarantineOffset) }).count == poison.count)
  }

  @Test func aNewerEventInATopicOfOursStopsTheStageBeforeIt() throws {
    let bench = try RunnerBench()
    let newer = Envelope(id: "n", source: "/tests", type: .purchaseOwned, version: 99)
    try bench.publish([
      ProducedRecord(
        topic: bench.topics.name(.owned),
        record: Record(key: [97], value: [], headers: newer.headers, timestamp: bench.clock.now()))
    ])
    let failure = failure { try bench.run(TallyStage()) }
    guard case .newerEvent = failure else {
      Issue.record("stopped for another reason: \(String(describing: failure))")
      return
    }
    #expect(try bench.log.committed(group: "tests", topic: bench.topics.name(.owned)).values.allSatisfy { $0 == 0 })
    #expect(try bench.records(.quarantine).isEmpty)
  }

  @Test func aStoreOlderThanTheLogStopsTheStage() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    bench.store.close()
    bench.store = SQLiteStore(path: bench.folder.appendingPathComponent("another").path)
    try bench.store.migrate()
    try bench.publish(.owned, [(key: "a", value: "one more")])
    let failure = failure { try bench.run(TallyStage()) }
    guard case .inconsistent(let reason) = failure else {
      Issue.record("stopped for another reason: \(String(describing: failure))")
      return
    }
    #expect(reason.contains("store"))
    #expect(try bench.tally("a") == nil, "nothing was written")
  }

  /// Another member would go on where the older store is level with the offsets, and no store were the newest any more.
  @Test func aStoreThatIsOlderOnTheOthersPartitionsStopsAMemberToo() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    let topic = bench.topics.name(.owned)
    let offsets = try bench.log.committed(group: "tests", topic: topic)
    try #require(offsets.count == 3 && offsets.values.allSatisfy { $0 > 0 })
    bench.store.close()
    bench.store = SQLiteStore(path: bench.folder.appendingPathComponent("older").path)
    try bench.store.migrate()
    let books = try bench.store.stage(TallyStage().name.rawValue, group: "tests")
    for number in Int32(0)...1 {
      let partition = TopicPartition(topic, number)
      let epoch = try #require(books.claim([partition])[partition]).epoch
      let advance = Advance(partition: partition, epoch: epoch, from: nil, next: offsets[number] ?? 0, outgoing: [])
      try books.commit(StoreTransaction(advances: [advance], writes: []), published: [:])
    }
    books.close()
    let envelope = Envelope(id: "more", source: "/tests", type: .factNoted)
    try bench.publish([
      ProducedRecord(
        topic: topic, partition: 0,
        record: Record(key: [97], value: [97], headers: envelope.headers, timestamp: bench.clock.now()))
    ])
    // The third partition is another member's.
    let other = try bench.log.worker(
      WorkerSettings(group: "tests", topics: [topic], instance: "z", isStatic: true, sessionTimeoutMilliseconds: 60_000)
    )
    defer { other.close() }
    let failure = failure { try bench.run(TallyStage()) }
    guard case .inconsistent(let reason) = failure else {
      Issue.record("stopped for another reason: \(String(describing: failure))")
      return
    }
    #expect(reason.contains("The store is older than the log's offsets"))
  }

  /// Whatever was made of the records: one that was passed on, one that waits, one in quarantine.
  @Test(arguments: ["at once", "until 9000000000000", "without headers"])
  func aStageWithoutStateWhoseOffsetsAreGoneStopsAndSaysWhereItStood(value: String) throws {
    let bench = try RunnerBench()
    func publish() throws {
      guard value == "without headers" else { return try bench.publish(.received, [(key: "a", value: value)]) }
      try bench.publish([
        ProducedRecord(
          topic: bench.topics.name(.received),
          record: Record(key: Array("a".utf8), value: [1], headers: [], timestamp: bench.clock.now()))
      ])
    }
    func outputs() throws -> Int {
      try [Topic.verified, .parked, .quarantine].reduce(0) { try $0 + bench.records($1).count }
    }
    for _ in 0..<3 { try publish() }
    try bench.run(PassingStage(), idleIn: [.received])
    #expect(try outputs() == 3)
    try publish()
    // A group that has no offsets is one whose offsets are gone.
    let settings = bench.settings(group: "gone")
    let failure = failure { try bench.run(PassingStage(), settings: settings, idleIn: [.received]) }
    let partition = try #require(bench.records(.received).first).coordinates.topicPartition
    let stood = try #require(bench.log.committed(group: "tests", topic: partition.topic)[partition.partition])
    #expect(
      failure
        == .inconsistent(Standing.lostOffset(of: partition, group: "gone", .init(next: stood, end: 4), hasState: false)),
      "it stood at \(stood)")
    #expect(try outputs() == 3)
    try bench.commit([partition: stood], group: "gone")
    try bench.run(PassingStage(), settings: settings, idleIn: [.received])
    #expect(try outputs() == 4, "it goes on where it is told")
  }

  /// Else each later start, while a first record waits, would read all that the stage ever put out, and be taken for dead
  /// meanwhile.
  @Test func aStageWithoutStateCommitsTheFirstOffsetOfEachPartition() throws {
    let bench = try RunnerBench()
    try bench.publish(.received, [(key: "a", value: "until 9000000000000")])
    try bench.run(PassingStage(), idleIn: [.received])
    #expect(try bench.records(.parked).count == 1)
    for topic in [Topic.received, .parked] {
      let committed = try bench.log.committed(group: "tests", topic: bench.topics.name(topic))
      #expect(committed.keys.sorted() == [0, 1, 2], "\(topic): \(committed)")
    }
  }

  /// What was made of records that the partition does not hold: to go on behind its end, or at the end of what came since,
  /// would leave records out.
  @Test(arguments: [1_000, Int64.max - 1, .max])
  func aStageWithoutStateIsToldOfATopicThatWasMadeAnew(offset: Int64) throws {
    let bench = try RunnerBench()
    try bench.publish(.received, [(key: "a", value: "at once")])
    let source = try #require(bench.records(.received).first).coordinates
    let origin = Envelope.Origin(
      coordinates: Coordinates(topic: source.topic, partition: source.partition, offset: offset), index: 0, count: 1)
    let headers = Envelope(id: "old", source: "/purchases/verification", type: .factNoted, origin: origin).headers
    try bench.publish([
      ProducedRecord(
        topic: bench.topics.name(.verified),
        record: Record(key: Array("a".utf8), value: [], headers: headers, timestamp: bench.clock.now()))
    ])
    let failure = failure { try bench.run(PassingStage(), idleIn: [.received]) }
    guard case .inconsistent(let reason)? = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(reason.contains("ends at 1") && !reason.contains("goes on there"), "\(reason)")
  }

  /// A new store and a new group beside a log that the stage has filled: it would all stand there twice.
  @Test func aNewStoreAndANewGroupOnALogThatWasWorkedOnStopTheStage() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    let outputs = try bench.records(.entitlements).count
    bench.store.close()
    bench.store = SQLiteStore(path: bench.folder.appendingPathComponent("another").path)
    try bench.store.migrate()
    let failure = failure { try bench.run(TallyStage(), settings: bench.settings(group: "another")) }
    guard case .inconsistent(let reason) = failure else {
      Issue.record("stopped for another reason: \(String(describing: failure))")
      return
    }
    #expect(reason.contains("The store has worked on none of them") && reason.contains("purchases replay"))
    #expect(try bench.records(.entitlements).count == outputs)
    #expect(try bench.tally("account-0") == nil, "nothing was written")
  }

  @Test func aStoreOfAnotherGroupIsRefused() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    let failure = failure { try bench.run(TallyStage(), settings: bench.settings(group: "another")) }
    #expect(failure != nil, "a store belongs to one group")
    #expect(try bench.tally("account-0") == Self.expected["account-0"])
  }

  @Test func parkedRecordsComeBackWhenTheirTimeHasCome() throws {
    let bench = try RunnerBench()
    let due = bench.clock.now().milliseconds + 60_000
    try bench.publish(.received, [(key: "a", value: "until \(due)"), (key: "a", value: "at once")])
    try bench.run(PassingStage())
    #expect(try bench.records(.verified).map { String(decoding: $0.record.value ?? [], as: UTF8.self) } == ["at once"])
    let parked = try #require(bench.records(.parked).first)
    #expect(try bench.records(.parked).count == 1)
    #expect(Parking(parked.record)?.notBefore == Instant(milliseconds: due))
    #expect(Parking(parked.record)?.attempt == 1)
    bench.clock.advance(milliseconds: 60_000)
    try bench.run(PassingStage())
    #expect(
      try bench.records(.verified).map { String(decoding: $0.record.value ?? [], as: UTF8.self) } == [
        "at once", "until \(due)",
      ])
    let last = try #require(bench.records(.verified).last)
    #expect(try Envelope(reading: last.record).origin?.coordinates == parked.coordinates)
  }

  /// Always has something due, and stops its runner once it was told how far the stages before have come.
  private struct DueStage: Stage {
    let stop: StopSignal
    let told: Box<[Instant]>

    var name: StageName { .entitlements }
    var inputs: [Topic] { [.owned] }
    func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] { [] }

    func schedule(
      _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
    ) -> [Scheduled] {
      if workedOff < now {
        told.value.append(workedOff)
        stop.set()
      }
      return [Scheduled(event: nil, id: "due", writes: [], timestamp: now)]
    }
  }

  /// Writes accounts that are due, and answers how many there are where it is asked to.
  private struct CountingStage: Stage {
    var name: StageName { .entitlements }
    var inputs: [Topic] { [.owned] }

    private func isQuestion(_ record: Incoming) -> Bool { record.stored.record.value == Array("how many".utf8) }
    func beginsBatch(_ record: Incoming) -> Bool { isQuestion(record) }

    func needs(_ record: Incoming, _ facts: any Facts) -> [Need] {
      guard isQuestion(record) else { return [] }
      return [.due(partition: record.coordinates.partition, upTo: .distantFuture, limit: 100)]
    }

    func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
      let partition = record.coordinates.partition
      if isQuestion(record) {
        let count = needs(record, facts).flatMap { facts.rows($0) }.count
        let answer = Outgoing(
          topic: .entitlements, key: "\(partition)", type: .creditAdded, data: Array("\(count)".utf8))
        return [.emit(answer)]
      }
      guard let account = Account("\(partition)-\(record.coordinates.offset)") else { return [] }
      let row = AccountRow(
        environment: .sandbox, account: account, partition: partition, version: 0, catalogueVersion: "1",
        isWaiting: false, state: AccountState(dueAt: Instant(milliseconds: 1)))
      return [.write(.put(row.row))]
    }
  }

  /// A search of the store comes behind what its own partition brought before; the other partitions are no reason for a
  /// transaction more.
  @Test func aSearchBeginsItsPartitionsNextPartAndNoOtherOnes() throws {
    let bench = try RunnerBench()
    let log = FaultyLog(bench.log, faults: [:])
    try bench.run(CountingStage(), on: log)
    let without = log.commitsSoFar
    let contents = [["a", "a", "how many", "a", "how many"], ["a", "how many"], ["how many", "a", "a", "how many"]]
    let headers = Envelope(id: "x", source: "/tests", type: .factNoted).headers
    try bench.publish(
      contents.enumerated().flatMap { partition, values in
        values.map {
          ProducedRecord(
            topic: bench.topics.name(.owned), partition: Int32(partition),
            record: Record(key: nil, value: Array($0.utf8), headers: headers, timestamp: bench.clock.now()))
        }
      })
    try bench.run(CountingStage(), on: log)
    var answers: [String: [String]] = [:]
    for stored in try bench.records(.entitlements) {
      let key = String(decoding: stored.record.key ?? [], as: UTF8.self)
      answers[key, default: []].append(String(decoding: stored.record.value ?? [], as: UTF8.self))
    }
    #expect(answers == ["0": ["2", "3"], "1": ["1"], "2": ["0", "2"]])
    // One that joining takes, and as many parts as the partition has that asks most often behind records of its own.
    #expect(log.commitsSoFar - without <= 1 + 3)
  }

  /// The stage that a running loop is handed takes over from the next batch on.
  @Test func aStageIsReplacedWhileTheLoopRuns() throws {
    struct Naming: Stage {
      let word: String
      var name: StageName { .entitlements }
      var inputs: [Topic] { [.owned] }
      func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
        [.emit(Outgoing(topic: .entitlements, key: "k", type: .creditAdded, data: Array(word.utf8)))]
      }
    }
    let bench = try RunnerBench()
    let source = StageSource()
    let stop = StopSignal()
    let runner = StageRunner(
      stage: Naming(word: "first"), source: source, log: bench.log, store: bench.store, settings: bench.settings(),
      clock: bench.clock, logger: Logger(clock: bench.clock, minimum: .error), metrics: bench.metrics)
    let handed = Box(runner)
    let worker = Worker<RunnerFailure?>(name: "stage") {
      do throws(RunnerFailure) {
        try handed.value.run(until: stop)
        return nil
      } catch { return error }
    }
    defer {
      stop.set()
      _ = worker.wait()
    }
    func words(_ count: Int) throws -> [String] {
      let watch = Stopwatch()
      while true {
        let words = try bench.records(.entitlements).map { String(decoding: $0.record.value ?? [], as: UTF8.self) }
        if words.count >= count { return words }
        try #require(watch.seconds < 60)
        stop.wait(milliseconds: 5)
      }
    }
    try bench.publish(.owned, [(key: "k", value: "1")])
    #expect(try words(1) == ["first"])
    source.replace(by: Naming(word: "between"))
    source.replace(by: Naming(word: "second"))
    // What is polled at this moment may be the first one's still: the loop has come round when another batch was done.
    try bench.publish(.owned, [(key: "k", value: "2")])
    _ = try words(2)
    try bench.publish(.owned, [(key: "k", value: "3")])
    let all = try words(3)
    #expect(all.last == "second" && !all.contains("between"))
  }

  @Test func theClockComesAfterARecordThatWaitsBehindANewerOne() throws {
    let bench = try RunnerBench()
    let name = bench.topics.name(.received)
    let now = bench.clock.now()
    // Two producers, one of them a little slower than the other.
    let ages: [Int64] = [60_000, 60_000 + RunnerSettings.settlingMilliseconds]
    try bench.publish(
      ages.map {
        ProducedRecord(
          topic: name, partition: 1, record: Record(key: nil, value: nil, timestamp: now.advanced(byMilliseconds: -$0)))
      })
    var settings = bench.settings()
    settings.stagesBefore = [("before", .received)]
    let stage = DueStage(stop: StopSignal(), told: Box([]))
    try StageRunner(
      stage: stage, log: bench.log, store: bench.store, settings: settings, clock: bench.clock,
      logger: Logger(clock: bench.clock, minimum: .error), metrics: bench.metrics
    ).run(until: stage.stop)
    let oldest = now.advanced(byMilliseconds: -ages[1])
    #expect(!stage.told.value.isEmpty && stage.told.value.allSatisfy { $0 <= oldest })
    #expect(bench.metrics.value("purchases_clock_behind_seconds", ["stage": "entitlements"]) == 60.3)
  }

  @Test func aReplayEndsInTheSameStateAndTouchesNothing() throws {
    let bench = try RunnerBench()
    try bench.publish(.owned, Self.load)
    try bench.run(TallyStage())
    let before = try bench.records(.entitlements)
    let name = bench.topics.name(.owned)
    let replay = try ReplayLog(source: bench.log, topics: [name], resumed: [:])
    let live = bench.store
    bench.store = SQLiteStore(path: bench.folder.appendingPathComponent("shadow").path)
    try bench.store.migrate()
    var settings = bench.settings(group: "replay")
    settings.isReplay = true
    let stop = StopSignal()
    let runner = StageRunner(
      stage: TallyStage(), log: replay, store: bench.store, settings: settings, clock: bench.clock,
      logger: Logger(clock: bench.clock, minimum: .error), metrics: Metrics())
    let handed = Box(runner)
    let worker = Worker<RunnerFailure?>(name: "replay") {
      do throws(RunnerFailure) {
        try handed.value.run(until: stop)
        return nil
      } catch { return error }
    }
    let watch = Stopwatch()
    while replay.progress.done < replay.progress.total {
      try #require(watch.seconds < 60)
      stop.wait(milliseconds: 5)
    }
    stop.set()
    #expect(worker.wait() == nil)
    #expect(replay.outputs == Int64(Self.load.count))
    for (key, count) in Self.expected { #expect(try bench.tally(key) == count) }
    #expect(try bench.records(.entitlements) == before)
    live.close()
  }
}
