import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Synchronization
import Testing

/// A request that ends a transaction reaches the broker late: its connection broke, the client asked again on another one
/// and went on, and in the middle of the next transaction the broker works off the first. Within one epoch of the
/// producer it can't tell the two apart (KIP-890; librdkafka 2.8 has no defence of its own).
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaLateRequestTests {
  enum End: CaseIterable { case commit, abort }

  /// A broker behind a relay, a topic with fifty records, one for their copies, and a worker in the midst of its work.
  private final class Place {
    let relay: Relay
    private let cluster: OwnBroker
    let log: any EventLog
    let input: String
    let output: String
    let settings: WorkerSettings
    var worker: any LogWorker

    init(isStatic: Bool = false) throws {
      let folder = OwnBroker.freshFolder()
      relay = Relay { OwnBroker.ports(in: folder).first }
      cluster = try OwnBroker(in: folder, advertised: [relay.port])
      let log = try Broker.log(servers: "127.0.0.1:\(relay.port)")
      self.log = log
      input = try Broker.topic("in", on: log)
      output = try Broker.topic("out", on: log)
      let producer = try log.producer()
      #expect(Door(producer: producer, topic: input, partitions: 1).publish(batch: 0).givenUp == 0)
      #expect(producer.close(withinMilliseconds: 1_000) == 0)
      settings = WorkerSettings(
        group: "g", topics: [input], instance: "one", isStatic: isStatic, sessionTimeoutMilliseconds: 6_000,
        transactionTimeoutMilliseconds: 6_000)
      worker = try log.worker(settings)
      let producers = relay.count(of: Relay.Request.initProducerId)
      for _ in 0..<4 { try copy(batch(max: 5)) }
      #expect(relay.count(of: Relay.Request.initProducerId) == producers, "a sound producer was replaced")
    }

    deinit {
      worker.close()
      cluster.stop()
      relay.close()
    }

    struct Batch {
      let records: [StoredRecord]
      let membership: Membership
    }

    func batch(max: Int = Door.batch) throws -> Batch {
      while true {
        switch try worker.poll(max: max, waitMilliseconds: 1_000) {
        case .assigned(let partitions):
          let committed = try worker.committed(partitions)
          try worker.start(committed.mapValues { $0 ?? 0 })
        case .revoked(let partitions, _): try worker.release(partitions)
        case .records(let records, let membership): return Batch(records: records, membership: membership)
        case .idle: break
        }
      }
    }

    func copy(_ batch: Batch) throws {
      let last = try #require(batch.records.last).coordinates
      try worker.commit(
        batch.records.map { ProducedRecord(topic: output, partition: last.partition, record: $0.record) },
        offsets: [last.topicPartition: last.offset + 1], membership: batch.membership)
    }

    /// What another process under the same name would do after this one's end.
    func succeed() throws {
      worker.close()
      relay.watch { _, _ in .pass }
      relay.heal()
      worker = try log.worker(settings)
    }

    func copyTheRest() throws {
      while try log.committed(group: "g", topic: input) != log.bounds(of: input).mapValues(\.end) { try copy(batch()) }
    }

    func expectAllCopiedOnce() throws {
      let copied = try values(of: output, in: log)
      #expect(try copied == values(of: input, in: log), "records were lost or copied twice")
    }
  }

  @Test(arguments: End.allCases)
  func aLateEndOfOneTransactionEndsNoOther(end: End) throws {
    let place = try Place()
    let late = LateEnd(on: place.relay, thenCut: end == .commit)
    switch end {
    case .commit:
      try place.copy(place.batch(max: 10))
      // The process dies in the middle of its second transaction, and a successor does it again.
      let second = try place.batch(max: 10)
      #expect(throws: LogFailure.self) { try place.copy(second) }
      try place.succeed()
    case .abort:
      // The broker refuses it, so that the transaction is aborted.
      let tooLarge = Record(key: nil, value: [UInt8](repeating: 0, count: 2 << 20), timestamp: Instant(milliseconds: 1))
      let membership = try place.worker.membership()
      #expect(throws: LogFailure.self) {
        try place.worker.commit(
          [ProducedRecord(topic: place.output, record: tooLarge)], offsets: [:], membership: membership)
      }
    }
    try place.copyTheRest()
    #expect(late.wasAnswered, "nothing came late")
    try place.expectAllCopiedOnce()
  }

  /// A process is cut off in the middle of a transaction for longer than its time, and a successor under its name has begun.
  /// What it is told then, a coordinator that moved would tell as well: it drops its batch and rejoins, and ends nobody before
  /// that. (One that stood still itself ends: the torture's zombies do.)
  @Test func whoWasCutOffForLongEndsNobodyByItself() throws {
    let place = try Place(isStatic: true)
    let batch = try place.batch(max: 10)
    let still = Gate()
    let first = Atomic<Bool>(true)
    place.relay.watch { request, _ in
      if request == Relay.Request.addOffsetsToTransaction, first.exchange(false, ordering: .acquiringAndReleasing) {
        still.pass()
      }
      return .pass
    }
    nonisolated(unsafe) let old = place
    let outcome = onThreads(1) { _ -> LogFailure.Kind? in
      do { try old.copy(batch) } catch { return (error as? LogFailure)?.kind }
      return nil
    }
    still.awaitArrivals(1)
    let successor = try place.log.worker(place.settings)
    defer { successor.close() }
    var isAssigned = false
    while !isAssigned { if case .assigned = try successor.poll(max: 1, waitMilliseconds: 500) { isAssigned = true } }
    let kinds = outcome.wait()
    still.open()
    #expect(kinds == [.aborted])
    // The successor is still itself.
    let record = Record(key: nil, value: [1], timestamp: Instant(milliseconds: 1))
    try successor.commit(
      [ProducedRecord(topic: place.output, record: record)], offsets: [:], membership: successor.membership())
  }

  /// No broker can be reached any more. Whoever waits hears of it within the transaction's time, and whether it was
  /// committed is for the successor to find out.
  @Test(arguments: [true, false])
  func aCommitThatIsNeverAnsweredIsIndefinite(reaches: Bool) throws {
    let place = try Place()
    let batch = try place.batch()
    place.relay.watch { [relay = place.relay] request, _ in
      guard request == Relay.Request.endTransaction else { return .pass }
      if !reaches { relay.cut() }
      return reaches ? .passAndCut : .pass
    }
    do {
      try place.copy(batch)
      Issue.record("it was answered")
    } catch let failure as LogFailure {
      #expect(failure.kind == .indefinite)
    }
    try place.succeed()
    try place.copyTheRest()
    try place.expectAllCopiedOnce()
  }

  /// Keeps the first end of a transaction back and breaks its connection; hands it over when the next transaction has
  /// its records and asks for its offsets.
  private final class LateEnd: Sendable {
    private let state = Mutex<(kept: Relay.Connection?, answer: [UInt8]?)>((nil, nil))
    var wasAnswered: Bool { state.withLock { $0.answer != nil } }

    init(on relay: Relay, thenCut: Bool) {
      relay.watch { [self] request, connection in
        switch request {
        case Relay.Request.endTransaction:
          return state.withLock { state in
            guard state.kept == nil else { return .pass }
            state.kept = connection
            return .keep
          }
        case Relay.Request.addOffsetsToTransaction:
          guard let late = state.withLock({ $0.answer == nil ? $0.kept : nil }) else { return .pass }
          let answer = late.deliver()
          state.withLock { $0.answer = answer }
          if thenCut { relay.cut() }
          return .pass
        default: return .pass
        }
      }
    }
  }
}
