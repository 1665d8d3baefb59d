import Foundation
import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Synchronization
import Testing

/// A broker that stands still for a while, as on a host that swaps or a virtual machine that is moved: its connections stay
/// open, nobody answers, and then it goes on as if nothing had been.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaStallTests {
  // Milliseconds. Each is longer than the one before: a stall that outlasts a record of the door outlasts the stage's
  // requests, its transaction and its session. Well below the six seconds after which a lone broker's controller takes it
  // for dead, see the crash test.
  private static let request: Int64 = 1_000
  private static let transaction: Int64 = 1_500
  private static let record: Int64 = 2_500

  /// Alone, the broker is waited for. Of three, the others take over from it, and it comes back believing that it still
  /// leads.
  @Test(arguments: [1, 3])
  func aStalledBrokerLosesAndDuplicatesNothing(brokers: Int) throws {
    let cluster = try OwnBroker(brokers: brokers)
    defer {
      // A process that stands still would not hear that it is to end.
      for broker in 1...brokers { try? cluster.signal(SIGCONT, broker: broker) }
      cluster.stop()
    }
    let replication = Int16(brokers)
    let partitions: Int32 = 3
    let log = try Broker.log(
      ["socket.timeout.ms": String(Self.request), "message.timeout.ms": String(Self.record)], servers: cluster.servers)
    let input = try Broker.topic("in", partitions: partitions, replication: replication, on: log)
    let output = try Broker.topic("out", partitions: partitions, replication: replication, on: log)
    let accepted = Mutex<[[UInt8]]>([])
    let givenUp = Atomic<Int>(0)
    let wholeBatches = Atomic<Int>(0)
    let stalls = Atomic<Int>(0)
    let commits = Atomic<Int>(0)
    let published = Atomic<Bool>(false)
    let copied = Atomic<Bool>(false)
    let kinds = Mutex<[LogFailure.Kind]>([])
    let deadline = Date(timeIntervalSinceNow: 200)

    try Conformance.atOnce(3) { index in
      switch index {
      case 0:
        let copier = try Copier(
          log, group: "g", instance: "one", from: input, to: output, sessionTimeoutMilliseconds: Self.transaction,
          transactionTimeoutMilliseconds: Self.transaction)
        while !copied.load(ordering: .acquiring), Date() < deadline {
          try copier.step(max: 200)
          commits.store(copier.commits, ordering: .releasing)
          guard published.load(ordering: .acquiring) else { continue }
          let ends = try? log.bounds(of: input).mapValues(\.end)
          if let ends, let done = try? log.committed(group: "g", topic: input), done == ends.filter({ $0.value > 0 }) {
            copied.store(true, ordering: .releasing)
          }
        }
        kinds.withLock { $0 = copier.failures }
        copier.close()
      case 1:
        // The door never tries again, so that nothing but the log itself could make a record stand twice.
        let producer = try log.producer()
        let door = Door(producer: producer, topic: input, partitions: partitions)
        var batch = 0
        while stalls.load(ordering: .acquiring) < 3 || batch < 60, Date() < deadline {
          let outcome = door.publish(batch: batch)
          batch += 1
          accepted.withLock { $0 += outcome.accepted }
          if outcome.givenUp == 0 { wholeBatches.add(1, ordering: .acquiringAndReleasing) }
          givenUp.add(outcome.givenUp, ordering: .acquiringAndReleasing)
        }
        published.store(true, ordering: .releasing)
        _ = producer.close(withinMilliseconds: 1_000)
      default:
        while stalls.load(ordering: .acquiring) < 3, Date() < deadline {
          // While both go on there is work in hand; once a record was given up, the stall was long enough.
          let worked = commits.load(ordering: .acquiring) + 5
          while commits.load(ordering: .acquiring) < worked, Date() < deadline { usleep(1_000) }
          let target = accepted.withLock { $0.count } + 300
          while accepted.withLock({ $0.count }) < target, Date() < deadline { usleep(1_000) }
          let before = givenUp.load(ordering: .acquiring)
          let broker = stalls.load(ordering: .acquiring) % brokers + 1
          try cluster.signal(SIGSTOP, broker: broker)
          while givenUp.load(ordering: .acquiring) == before, Date() < deadline { usleep(1_000) }
          if brokers > 1 {
            // Every partition has another leader once whole batches are taken again.
            let whole = wholeBatches.load(ordering: .acquiring) + 3
            while wholeBatches.load(ordering: .acquiring) < whole, Date() < deadline { usleep(1_000) }
          }
          try cluster.signal(SIGCONT, broker: broker)
          stalls.add(1, ordering: .acquiringAndReleasing)
        }
      }
    }
    let everything = copied.load(ordering: .acquiring)
    let met = kinds.withLock { $0.map(\.rawValue) }
    print(
      "KafkaStallTests, \(brokers) brokers: \(givenUp.load(ordering: .acquiring)) records given up, the copier met \(met)"
    )
    #expect(!met.isEmpty, "no stall hit the stage at work")
    #expect(everything, "not everything was copied in time; failures met: \(met)")
    let before = try values(of: input, in: log)
    let after = try values(of: output, in: log)
    let stored = before.values.flatMap { $0 }
    #expect(accepted.withLock { $0 }.allSatisfy(Set(stored).contains), "an accepted record is not there")
    #expect(Set(stored).count == stored.count, "a record of the door stands twice")
    #expect(before == after, "a record was copied twice, not at all, or out of order; failures met: \(met)")
  }
}
