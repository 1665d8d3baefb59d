import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// A broker that is gone for good, and partitions that it led.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaLeaderTests {
  /// Who has heard from a leader asks it again, and has to find out that there is a new one: all within one question.
  @Test func aQuestionFindsThePartitionsNewLeader() throws {
    let cluster = try OwnBroker(brokers: 3)
    defer { cluster.stop() }
    let log = try Broker.log(servers: cluster.servers)
    defer { log.close() }
    // One of them is led by each broker.
    let topic = try Broker.topic("in", partitions: 3, replication: 3, on: log)
    let producer = try log.producer()
    #expect(Door(producer: producer, topic: topic, partitions: 3).publish(batch: 0).givenUp == 0)
    #expect(producer.close(withinMilliseconds: 1_000) == 0)
    let bounds = try log.bounds(of: topic)
    let first = try (0..<3).map { try log.offset(of: TopicPartition(topic, $0), at: Instant(milliseconds: 0)) }
    try cluster.signal(SIGKILL, broker: 1)
    #expect(try log.bounds(of: topic) == bounds)
    #expect(try (0..<3).map { try log.offset(of: TopicPartition(topic, $0), at: Instant(milliseconds: 0)) } == first)
  }

  /// What was asked before is worked off first: whoever asks anew all the time never gets an answer.
  @Test func aSlowClusterIsWaitedFor() throws {
    let folder = OwnBroker.freshFolder()
    let relay = Relay { OwnBroker.ports(in: folder).first }
    defer { relay.close() }
    let cluster = try OwnBroker(in: folder, advertised: [relay.port])
    defer { cluster.stop() }
    let log = try Broker.log(servers: "127.0.0.1:\(relay.port)")
    defer { log.close() }
    let topic = try Broker.topic("in", partitions: 3, on: log)
    // One after the other, as a broker with a full queue: three questions take three seconds.
    relay.watch { request, _ in
      if request == Relay.Request.listOffsets { usleep(1_000_000) }
      return .pass
    }
    #expect(
      try log.bounds(of: topic) == [0: .init(start: 0, end: 0), 1: .init(start: 0, end: 0), 2: .init(start: 0, end: 0)])
  }
}
