import PurchasesContracts
import PurchasesKafka
import PurchasesKafkaLog
import Synchronization
import Testing

/// The connection by itself, on a real broker.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaConnectionTests {
  let admin: KafkaAdmin

  init() throws {
    admin = try KafkaAdmin(settings: Broker.settings())
  }

  func topic(_ part: String, partitions: Int32 = 1, settings: [String: String] = [:]) throws -> String {
    let name = Broker.fresh(part)
    try admin.createTopics(
      [NewTopic(name: name, partitions: partitions, settings: settings)], milliseconds: Broker.askMilliseconds)
    return name
  }

  /// Sends and waits for all reports.
  func send(_ records: [OutgoingRecord]) throws -> [Result<Delivery, KafkaError>] {
    let producer = try KafkaProducer(settings: Broker.settings())
    let results = Mutex<[Int: Result<Delivery, KafkaError>]>([:])
    for (index, record) in records.enumerated() {
      try producer.send(record, whenFull: .wait) { result in results.withLock { $0[index] = result } }
    }
    try producer.flush(milliseconds: Broker.askMilliseconds)
    producer.close(milliseconds: 0)
    return results.withLock { found in records.indices.compactMap { found[$0] } }
  }

  /// All committed records of a partition.
  func read(_ partition: KafkaPartition, from start: Int64 = 0) throws -> [FetchedRecord] {
    let reader = try KafkaReader(settings: Broker.settings())
    defer { reader.close() }
    let end = try admin.bounds([partition], milliseconds: Broker.askMilliseconds)[partition]?.end ?? 0
    try reader.start(partition, at: start)
    var records: [FetchedRecord] = []
    var misses = 0
    while misses < 40 {
      let polled = try reader.poll(partition, records: 1_000, milliseconds: 500)
      records += polled.records
      if polled.records.isEmpty, polled.event == nil { misses += 1 }
      switch polled.event {
      case .endOfPartition(let offset)? where offset >= end: return records
      case .failed(let error)? where error.severity != .retriable: throw error
      default: break
      }
    }
    Issue.record("the end of \(partition) never came")
    return records
  }

  @Test func nullAndEmptyStayApart() throws {
    let topic = try topic("null")
    let records = [
      OutgoingRecord(topic: topic, key: nil, value: nil, timestamp: 5),
      OutgoingRecord(
        topic: topic, key: [], value: [],
        headers: [KafkaHeader("a", nil), KafkaHeader("a", []), KafkaHeader("ü", [0])],
        timestamp: 1_700_000_000_123),
      OutgoingRecord(topic: topic, key: [0], value: [0, 255], headers: [KafkaHeader("", [1])], timestamp: 1),
    ]
    let places = try send(records).map { try $0.get() }
    #expect(places.map(\.offset) == [0, 1, 2])
    let found = try read(KafkaPartition(topic, 0))
    #expect(found.map(\.key) == records.map(\.key))
    #expect(found.map(\.value) == records.map(\.value))
    #expect(found.map(\.headers) == records.map(\.headers))
    #expect(found.map(\.timestamp) == records.map(\.timestamp))
  }

  @Test func keysLandWhereTheJavaClientPutsThem() throws {
    let count: Int32 = 7
    let topic = try topic("keys", partitions: count)
    let places = try send(
      KafkaPartitionerTests.javaHashes.map { OutgoingRecord(topic: topic, key: Array($0.0.utf8), value: [1]) })
    for (place, (_, hash)) in zip(places, KafkaPartitionerTests.javaHashes) {
      #expect(try place.get().partition.partition == (hash & 0x7fff_ffff) % count)
    }
    // Keyless records all go one way, so that their order holds too.
    let keyless = try send((0..<20).map { _ in OutgoingRecord(topic: topic, key: nil, value: [1]) })
    #expect(Set(try keyless.map { try $0.get().partition }).count == 1)
  }

  @Test func aRecordThatIsTooLargeIsReportedAndTheOthersAreStored() throws {
    let topic = try topic("large", settings: ["max.message.bytes": "20000"])
    let results =
      try send([
        OutgoingRecord(topic: topic, key: nil, value: [1])
      ]) + send([OutgoingRecord(topic: topic, key: nil, value: [UInt8](repeating: 7, count: 50_000))])
    #expect(throws: Never.self) { try results[0].get() }
    guard case .failure(let error) = results[1] else {
      Issue.record("too large, and stored")
      return
    }
    #expect(error.code == .recordTooLarge)
    #expect(try read(KafkaPartition(topic, 0)).count == 1)
  }

  @Test func aFullQueueIsToldAndNothingIsLost() throws {
    // Nobody listens there, so nothing leaves the queue.
    let producer = try KafkaProducer(
      settings: KafkaSettings(["bootstrap.servers": "127.0.0.1:1", "queue.buffering.max.messages": "3"]))
    let reports = Mutex<[Result<Delivery, KafkaError>]>([])
    let record = OutgoingRecord(topic: "t", partition: 0, key: nil, value: [1])
    for _ in 0..<3 { try producer.send(record) { result in reports.withLock { $0.append(result) } } }
    do {
      try producer.send(record) { result in reports.withLock { $0.append(result) } }
      Issue.record("a fourth record fitted")
    } catch {
      #expect(error.code == .queueFull)
      #expect(error.severity == .retriable)
    }
    #expect(producer.close(milliseconds: 0) == 3)
    let given = reports.withLock { $0 }
    #expect(given.count == 3)
    #expect(given.allSatisfy { if case .failure = $0 { true } else { false } })
    #expect(throws: KafkaError.self) { try producer.send(record) }
  }

  @Test func abortedTransactionsAreNeverVisible() throws {
    let topic = try topic("aborted")
    let partition = KafkaPartition(topic, 0)
    let producer = try KafkaProducer(settings: Broker.settings(), transactionalId: Broker.fresh("tx"))
    try producer.initTransactions(milliseconds: Broker.askMilliseconds)
    for round in 0..<6 {
      try producer.beginTransaction()
      for _ in 0..<50 { try producer.send(OutgoingRecord(topic: topic, key: nil, value: [UInt8(round)])) }
      try producer.flush(milliseconds: Broker.askMilliseconds)
      if round % 2 == 0 {
        try producer.abortTransaction(milliseconds: -1)
      } else {
        try producer.commitTransaction(milliseconds: -1)
      }
    }
    // An open one holds back nothing but itself and what follows.
    try producer.beginTransaction()
    try producer.send(OutgoingRecord(topic: topic, key: nil, value: [99]))
    try producer.flush(milliseconds: Broker.askMilliseconds)
    let written = try admin.uncommittedEnds([partition], milliseconds: Broker.askMilliseconds)[partition] ?? 0
    let bounds = try #require(try admin.bounds([partition], milliseconds: Broker.askMilliseconds)[partition])
    #expect(bounds.end < written)
    let values = try read(partition).map { $0.value?.first }
    #expect(values == [1, 3, 5].flatMap { [UInt8?](repeating: $0, count: 50) })
    try producer.abortTransaction(milliseconds: -1)
    #expect(try read(partition).count == 150)
    producer.close(milliseconds: 0)
  }

  @Test func aSecondProducerOfTheSameIdFencesTheFirst() throws {
    let topic = try topic("fence")
    let id = Broker.fresh("tx")
    let first = try KafkaProducer(settings: Broker.settings(), transactionalId: id)
    try first.initTransactions(milliseconds: Broker.askMilliseconds)
    try first.beginTransaction()
    try first.send(OutgoingRecord(topic: topic, key: nil, value: [1]))
    try first.flush(milliseconds: Broker.askMilliseconds)
    let second = try KafkaProducer(settings: Broker.settings(), transactionalId: id)
    try second.initTransactions(milliseconds: Broker.askMilliseconds)
    do {
      try first.commitTransaction(milliseconds: -1)
      Issue.record("a fenced producer committed")
    } catch {
      #expect(error.severity == .fatal)
      #expect([.fenced, .invalidProducerEpoch, .producerFenced].contains(error.code), "\(error)")
    }
    try second.beginTransaction()
    try second.send(OutgoingRecord(topic: topic, key: nil, value: [2]))
    try second.commitTransaction(milliseconds: -1)
    first.close(milliseconds: 0)
    second.close(milliseconds: 0)
    #expect(try read(KafkaPartition(topic, 0)).map(\.value) == [[2]])
  }

  @Test func aMemberOfAnEarlierGenerationCommitsNothing() throws {
    let topic = try topic("zombie", partitions: 2)
    let group = Broker.fresh("g")
    let consumer = try KafkaConsumer(settings: Broker.settings(), group: group)
    try consumer.subscribe([topic])
    try poll(consumer, until: { !$0.isEmpty })
    let old = consumer.membership
    #expect(old.isJoined)
    let other = try KafkaConsumer(settings: Broker.settings(), group: group)
    try other.subscribe([topic])
    // A rebalance raises the generation; both have to answer it.
    var share = 0
    for _ in 0..<200 where share != 1 {
      _ = try step(other)
      if let now = try step(consumer) { share = now.count }
    }
    #expect(consumer.membership.generation > old.generation)
    let producer = try KafkaProducer(settings: Broker.settings(), transactionalId: Broker.fresh("tx"))
    try producer.initTransactions(milliseconds: Broker.askMilliseconds)
    let partition = KafkaPartition(topic, 0)
    for membership in [
      old, GroupMembership(group: group, generation: old.generation, member: "nobody", instance: nil),
    ] {
      try producer.beginTransaction()
      try producer.send(OutgoingRecord(topic: topic, partition: 0, key: nil, value: [1]))
      try producer.flush(milliseconds: Broker.askMilliseconds)
      do {
        try producer.sendOffsets([partition: 1], membership: membership, milliseconds: Broker.askMilliseconds)
        Issue.record("\(membership) committed")
      } catch {
        #expect(error.severity == .abortable)
        #expect([.illegalGeneration, .unknownMember].contains(error.code), "\(error)")
      }
      try producer.abortTransaction(milliseconds: -1)
    }
    let outside = try KafkaGroup(settings: Broker.settings(), group: group)
    #expect(try outside.committed([partition], milliseconds: Broker.askMilliseconds).compactMapValues { $0 } == [:])
    #expect(try read(partition).isEmpty)
    consumer.close(milliseconds: 5_000)
    other.close(milliseconds: 5_000)
    producer.close(milliseconds: 0)
  }

  @Test func aStaticMemberThatLeavesForGoodHandsOverAtOnce() throws {
    let topic = try topic("leave", partitions: 2)
    let group = Broker.fresh("g")
    // Far longer than this test waits: only leaving can move the partitions.
    let slow = ["session.timeout.ms": "300000", "max.poll.interval.ms": "300000"]
    let first = try KafkaConsumer(settings: Broker.settings(slow), group: group, instance: "one")
    try first.subscribe([topic])
    try poll(first, until: { $0.count == 2 })
    first.close(leaving: true, milliseconds: 10_000)
    let second = try KafkaConsumer(settings: Broker.settings(slow), group: group, instance: "two")
    try second.subscribe([topic])
    try poll(second, until: { $0.count == 2 })
    second.close(milliseconds: 10_000)
  }

  /// With many partitions that a little comes into, one is always at its end: were that the end of each batch, batches would
  /// be of a few records, and a stage that has fallen behind would stay behind.
  @Test func theEndOfAPartitionDoesNotEndABatch() throws {
    let topic = try topic("ends", partitions: 8)
    let consumer = try KafkaConsumer(
      settings: Broker.settings(["fetch.wait.max.ms": "5"]), group: Broker.fresh("g"))
    try consumer.subscribe([topic])
    try poll(consumer, until: { $0.count == 8 })
    let producer = try KafkaProducer(settings: Broker.settings())
    var mostEnds = 0
    for _ in 0..<200 where mostEnds < 4 {
      // Written one after the other, and fetched meanwhile: records and ends of partitions lie between each other.
      for partition in Int32(0)..<8 {
        try producer.send(OutgoingRecord(topic: topic, partition: partition, key: nil, value: [1]))
        try producer.flush(milliseconds: Broker.askMilliseconds)
      }
      let polled = try consumer.poll(records: 1_000, milliseconds: 1_000)
      #expect(polled.event == nil)
      if !polled.records.isEmpty { mostEnds = max(mostEnds, polled.ends.count) }
    }
    #expect(mostEnds >= 4)
    consumer.close(milliseconds: 5_000)
    producer.close(milliseconds: 0)
  }

  /// One poll of a member that takes what it is given from the start. Nil: the assignment did not change.
  @discardableResult
  func step(_ consumer: KafkaConsumer) throws -> [KafkaPartition]? {
    switch try consumer.poll(records: 100, milliseconds: 100).event {
    case .assigned(let partitions)?:
      try consumer.assign(Dictionary(partitions.map { ($0, Int64(0)) }, uniquingKeysWith: { a, _ in a }))
      return partitions
    case .revoked(let partitions, _)?:
      try consumer.release(partitions)
      return []
    case .failed(let error, _)? where error.severity == .fatal: throw error
    default: return nil
    }
  }

  func poll(_ consumer: KafkaConsumer, until done: ([KafkaPartition]) -> Bool) throws {
    for _ in 0..<300 {
      if let now = try step(consumer), done(now) { return }
    }
    Issue.record("the wanted assignment never came")
  }
}
