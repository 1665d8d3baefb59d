import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesKafka
import PurchasesKafkaLog
import PurchasesTestKit
import Synchronization
import Testing

/// What only Kafka does: rebalances under load, records that age away, transactions that run out of time.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaWorkerTests {
  func publish(_ count: Int, to topic: String, partitions: Int32, on log: any EventLog, from first: Int = 0) throws {
    let producer = try log.producer()
    let results = Mutex<[Result<Coordinates, LogFailure>]?>(nil)
    let done = DispatchSemaphore(value: 0)
    let records = (first..<first + count).map { index in
      ProducedRecord(
        topic: topic, partition: Int32(index) % partitions,
        record: Record(key: nil, value: Array("\(index)".utf8), timestamp: Instant(milliseconds: 1_000 + Int64(index))))
    }
    producer.publish(records) { reported in
      results.withLock { $0 = reported }
      done.signal()
    }
    done.wait()
    for result in results.withLock({ $0 ?? [] }) { _ = try result.get() }
    #expect(producer.close(withinMilliseconds: 1_000) == 0)
  }

  @Test(arguments: ["range", "cooperative-sticky"])
  func everyRecordIsCopiedOnceWhileMembersComeAndGo(strategy: String) throws {
    let partitions: Int32 = 6
    let total = 6_000
    let settings = ["partition.assignment.strategy": strategy]
    let log = try Broker.log(settings)
    let input = try Broker.topic("in", partitions: partitions, on: log)
    let output = try Broker.topic("out", partitions: partitions, on: log)
    let group = Broker.fresh("g")
    try publish(total, to: input, partitions: partitions, on: log)
    let copied = Atomic<Bool>(false)
    let commits = Mutex<[Int]>([])
    // Two stay; the third comes and goes.
    try Conformance.atOnce(3) { index in
      let deadline = Date(timeIntervalSinceNow: 120)
      let log = try Broker.log(settings)
      var visits = 0
      while !copied.load(ordering: .acquiring), Date() < deadline {
        let copier = try Copier(log, group: group, instance: "m\(index)-\(visits)", from: input, to: output)
        visits += 1
        while !copied.load(ordering: .acquiring), Date() < deadline {
          try copier.step()
          if index == 2, copier.commits >= 5 { break }
          if index == 0 {
            let done = try log.committed(group: group, topic: input).values.reduce(0, +)
            if done >= total { copied.store(true, ordering: .releasing) }
          }
        }
        commits.withLock { $0.append(copier.commits) }
        copier.close()
      }
    }
    let everything = copied.load(ordering: .acquiring)
    #expect(everything, "not everything was copied in time")
    let before = try values(of: input, in: log)
    let after = try values(of: output, in: log)
    #expect(before == after)
  }

  @Test func positionsThatAreGoneAreNamed() throws {
    let log = try Broker.log()
    let topic = try Broker.topic("gone", on: log)
    try publish(50, to: topic, partitions: 1, on: log)
    let admin = try KafkaAdmin(settings: Broker.settings())
    try admin.deleteRecords(before: [KafkaPartition(topic, 0): 20], milliseconds: Broker.askMilliseconds)
    let partition = TopicPartition(topic, 0)
    let worker = try log.worker(WorkerSettings(group: Broker.fresh("g"), topics: [topic], instance: "one"))
    defer { worker.close() }
    try assign(worker)
    for (offset, lost) in [(0, "offsets 0 to 19"), (19, "offsets 19 to 19"), (60, "offsets 50 to 59")]
      as [(Int64, String)]
    {
      do {
        try worker.start([partition: offset])
        Issue.record("started at \(offset)")
      } catch {
        #expect(error.kind == .lost)
        #expect(error.reason.contains(topic + "/0") && error.reason.contains(lost), "\(error)")
      }
    }
    try worker.start([partition: 20])
    var seen: [Int64] = []
    while seen.count < 30 {
      if case .records(let records, _) = try worker.poll(max: 100, waitMilliseconds: 500) {
        seen += records.map(\.coordinates.offset)
      }
    }
    #expect(seen == Array(20..<50))
    let reader = try log.reader()
    #expect(throws: LogFailure.self) { try reader.read(partition, from: 3, max: 1) }
    reader.close()
  }

  @Test func recordsThatGoWhileTheyWaitAreNamed() throws {
    let log = try Broker.log(["queued.min.messages": "1", "fetch.message.max.bytes": "1000"])
    let topic = try Broker.topic("going", on: log)
    let worker = try log.worker(WorkerSettings(group: Broker.fresh("g"), topics: [topic], instance: "one"))
    defer { worker.close() }
    try assign(worker)
    try publish(50, to: topic, partitions: 1, on: log)
    let partition = TopicPartition(topic, 0)
    try worker.start([partition: 0])
    try worker.pause([partition])
    let admin = try KafkaAdmin(settings: Broker.settings())
    try admin.deleteRecords(before: [KafkaPartition(topic, 0): 40], milliseconds: Broker.askMilliseconds)
    do {
      try worker.start([partition: 10])
      Issue.record("started at what is gone")
    } catch {
      #expect(error.kind == .lost)
      #expect(error.reason.contains("offsets 10 to 39"), "\(error)")
    }
  }

  @Test func theMarkOfATransactionIsNotARecordToWaitFor() throws {
    let log = try Broker.log()
    let topic = try Broker.topic("marks", on: log)
    let partition = TopicPartition(topic, 0)
    let worker = try log.worker(WorkerSettings(group: Broker.fresh("g"), topics: [topic], instance: "one"))
    defer { worker.close() }
    try assign(worker)
    func commit(_ values: [UInt8]) throws {
      let records = values.map {
        ProducedRecord(topic: topic, record: Record(key: nil, value: [$0], timestamp: Instant(milliseconds: 1)))
      }
      try worker.commit(records, offsets: [:], membership: worker.membership())
    }
    try commit([1, 2])
    let end = try #require(try log.bounds(of: topic)[0]?.end)
    #expect(end > 2, "the transaction left no mark")
    let reader = try log.reader()
    defer { reader.close() }
    #expect(try reader.read(partition, from: 0, max: 10).map(\.record.value) == [[1], [2]])
    #expect(try reader.read(partition, from: 2, max: 10).isEmpty)
    #expect(try !reader.wait(partition, beyond: 2, milliseconds: 300))
    #expect(try reader.wait(partition, beyond: 1, milliseconds: 0))
    #expect(try reader.read(partition, from: 1, max: 10).map(\.record.value) == [[2]])
    try commit([3, 4])
    #expect(try reader.wait(partition, beyond: 2, milliseconds: 20_000))
    #expect(try reader.read(partition, from: 2, max: 10).first?.record.value == [3])
  }

  /// A broker that lost an answer of ours, or whose successor did, can take us for a second process of our name. Only one
  /// that has taken our transactional id is one; without it we come back.
  @Test func aMemberThatIsFencedByNobodyComesBack() throws {
    let log = try Broker.log()
    let topic = try Broker.topic("fenced", on: log)
    let settings = WorkerSettings(group: Broker.fresh("g"), topics: [topic], instance: "one", isStatic: true)
    try publish(1, to: topic, partitions: 1, on: log)
    let worker = try log.worker(settings)
    defer { worker.close() }
    try assign(worker)
    let stranger = try KafkaConsumer(settings: Broker.settings(), group: settings.group, instance: settings.instance)
    defer { stranger.close(milliseconds: 5_000) }
    try stranger.subscribe([topic])
    let failure = try failure(of: worker) { _ = try stranger.poll(records: 1, milliseconds: 100) }
    #expect(failure?.kind == .unavailable, "\(failure.map { "\($0)" } ?? "it went on")")
    // The same of a worker: it has the transactional id.
    let second = try log.worker(settings)
    defer { second.close() }
    try assign(second)
    let third = try log.worker(settings)
    defer { third.close() }
    let final = try self.failure(of: second) { _ = try third.poll(max: 1, waitMilliseconds: 100) }
    #expect(final?.kind == .fenced, "\(final.map { "\($0)" } ?? "it went on")")
  }

  private func failure(of worker: any LogWorker, while body: () throws -> Void) throws -> LogFailure? {
    for _ in 0..<300 {
      try body()
      do throws(LogFailure) { _ = try worker.poll(max: 1, waitMilliseconds: 100) } catch { return error }
    }
    return nil
  }

  private func assign(_ worker: any LogWorker) throws {
    for _ in 0..<60 {
      if case .assigned = try worker.poll(max: 1, waitMilliseconds: 500) { return }
    }
    Issue.record("no assignment came")
  }
}
