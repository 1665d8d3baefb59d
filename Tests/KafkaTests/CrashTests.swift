import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesKafkaLog
import PurchasesTestKit
import Synchronization
import Testing

/// Brokers that are killed in mid-work and come back, in a cluster of their own: the others' goes on.
///
/// Three brokers and three copies of everything. With one copy Kafka promises nothing here: after a kill -9 its controller
/// elects the only replica uncleanly, and a coordinator that ends a transaction meanwhile finds no leader to write the
/// marker to and counts it as ended. The records then stay open, hold positions back without end, and become visible with
/// the next commit.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaCrashTests {
  @Test func aKilledBrokerLosesNothingThatWasAccepted() throws {
    let cluster = try OwnBroker(brokers: 3)
    defer { cluster.stop() }
    let partitions: Int32 = 3
    let log = try Broker.log(servers: cluster.servers)
    let input = try Broker.topic("in", partitions: partitions, replication: 3, on: log)
    let output = try Broker.topic("out", partitions: partitions, replication: 3, on: log)
    let accepted = Mutex<[[UInt8]]>([])
    let ready = Atomic<Bool>(false)
    let copied = Atomic<Bool>(false)
    let published = Atomic<Bool>(false)
    let kinds = Mutex<Set<LogFailure.Kind>>([])
    let deadline = Date(timeIntervalSinceNow: 400)

    try Conformance.atOnce(3) { index in
      switch index {
      case 0:
        // The stage. The broker is away for longer than its transactions may take: they are aborted behind its back, and
        // it must not take that for another process under its name.
        let copier = try Copier(
          log, group: "g", instance: "one", from: input, to: output, transactionTimeoutMilliseconds: 2_000)
        ready.store(true, ordering: .releasing)
        while !copied.load(ordering: .acquiring), Date() < deadline {
          try copier.step()
          guard published.load(ordering: .acquiring) else { continue }
          let ends = try? log.bounds(of: input).mapValues(\.end)
          if let ends, let done = try? log.committed(group: "g", topic: input), done == ends.filter({ $0.value > 0 }) {
            copied.store(true, ordering: .releasing)
          }
        }
        kinds.withLock { $0 = Set(copier.failures) }
        copier.close()
      case 1:
        // The door: counts what was accepted, and goes on after what was not.
        while !ready.load(ordering: .acquiring), Date() < deadline { usleep(1_000) }
        let producer = try log.producer()
        let door = Door(producer: producer, topic: input, partitions: partitions)
        for batch in 0..<60 {
          let outcome = door.publish(batch: batch)
          accepted.withLock { $0 += outcome.accepted }
        }
        published.store(true, ordering: .releasing)
        _ = producer.close(withinMilliseconds: 1_000)
      default:
        // The power cut: every broker once, each time once some work has been done.
        for (broker, target) in [("1", 300), ("2", 1_200), ("3", 2_100)] {
          while accepted.withLock({ $0.count }) < target, Date() < deadline { usleep(1_000) }
          try run(OwnBroker.script, "kill9", cluster.folder, broker)
          try run(OwnBroker.script, "resume", cluster.folder, broker)
        }
      }
    }
    let everything = copied.load(ordering: .acquiring)
    #expect(everything, "not everything was copied in time")
    let before = try values(of: input, in: log)
    let after = try values(of: output, in: log)
    let stored = Set(before.values.joined())
    #expect(accepted.withLock { $0 }.allSatisfy { stored.contains($0) }, "an accepted record is not there")
    #expect(
      before == after, "a record was copied twice, not at all, or out of order; failures met: \(kinds.withLock { $0 })")
  }
}
