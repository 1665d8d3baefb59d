import PurchasesAuditing
import PurchasesContracts
import PurchasesCore

/// A log in memory whose offsets have gaps, as a broker's have where transactions end.
final class MemoryLog: AuditedLog {
  let topics: TopicSettings
  var records: [TopicPartition: [StoredRecord]] = [:]
  var committed: [TopicPartition: Int64] = [:]
  var isComplete = true
  private var next: [TopicPartition: Int64] = [:]

  init(_ topics: TopicSettings) {
    self.topics = topics
    for topic in Topic.allCases {
      for number in 0..<topics.partitions { records[TopicPartition(topics.name(topic), number)] = [] }
    }
  }

  func copy() -> MemoryLog {
    let copy = MemoryLog(topics)
    copy.records = records
    copy.committed = committed
    copy.next = next
    return copy
  }

  @discardableResult
  func append(_ record: Record, to topic: Topic) -> Coordinates {
    let number = Partitioner.partition(forKey: record.key ?? [], of: topics.partitions)
    let partition = TopicPartition(topics.name(topic), number)
    let offset = next[partition] ?? 0
    let coordinates = Coordinates(topic: partition.topic, partition: number, offset: offset)
    records[partition]?.append(StoredRecord(coordinates: coordinates, record: record))
    next[partition] = offset + (offset % 7 == 3 ? 2 : 1)
    return coordinates
  }

  func end(_ partition: TopicPartition) -> Int64 { next[partition] ?? 0 }

  func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    var bounds: [Int32: OffsetBounds] = [:]
    for partition in records.keys where partition.topic == topic {
      bounds[partition.partition] = OffsetBounds(start: 0, end: end(partition))
    }
    return bounds
  }

  func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord] {
    Array((records[partition] ?? []).drop { $0.coordinates.offset < offset }.prefix(max))
  }

  func workedOff(_ partition: TopicPartition) throws(LogFailure) -> Int64? { committed[partition] }
}

/// What went through a small pipeline: payments, verdicts, owners, permits, a parked record, one in quarantine.
struct SmallPipeline {
  let log: MemoryLog
  private var clock = Instant(milliseconds: 1_800_000_000_000)

  init(_ topics: TopicSettings, payments: Int, stepMilliseconds: Int64 = 700) {
    log = MemoryLog(topics)
    for number in 0..<payments {
      clock = clock.advanced(byMilliseconds: stepMilliseconds)
      pay(number)
    }
    for (partition, _) in log.records { log.committed[partition] = log.end(partition) }
  }

  private func pay(_ number: Int) {
    let subject = "Sandbox/\(1000 + number)"
    let received = emit(.received, "Sandbox/\(1000 + number)", .paymentPurchased, subject, [], value: number)
    if number % 9 == 4 {
      var poison = record("x", .paymentPurchased, nil, [], value: number)
      poison.headers += [
        Header("purchases-quarantine-reason", "no JSON"), Header("purchases-quarantine-stage", "verification"),
        Header("purchases-quarantine-topic", received.topic),
        Header("purchases-quarantine-partition", String(received.partition)),
        Header("purchases-quarantine-offset", String(received.offset)), Header("purchases-quarantine-alarm", "none"),
        Header("purchases-quarantine-index", "0"), Header("purchases-quarantine-count", "1"),
      ]
      log.append(poison, to: .quarantine)
      return
    }
    var source = received
    if number % 5 == 2 {
      source = emit(.parked, subject, .paymentPurchased, subject, [(received, 0, 1)], value: number)
    }
    let verified = emit(.verified, subject, .purchaseVerified, subject, [(source, 0, 1)], value: number)
    let account = "Sandbox/account-\(number % 4)"
    let owned = emit(.owned, account, .purchaseOwned, nil, [(verified, 0, 1)], value: number)
    emit(.entitlements, account, .entitlementGranted, nil, [(owned, 0, 3)], value: number)
    emit(.entitlements, account, .paymentFinishable, subject, [(owned, 2, 3)], value: number)
    if number % 3 == 0 {
      let finished = emit(.received, account, .paymentFinished, subject, [], value: number)
      emit(.verified, account, .factNoted, nil, [(finished, 0, 1)], value: number)
    }
  }

  @discardableResult
  private func emit(
    _ topic: Topic, _ key: String, _ type: EventType, _ subject: String?, _ origin: [(Coordinates, Int, Int)],
    value: Int
  ) -> Coordinates {
    log.append(record(key, type, subject, origin, value: value), to: topic)
  }

  private func record(
    _ key: String, _ type: EventType, _ subject: String?, _ origin: [(Coordinates, Int, Int)], value: Int
  ) -> Record {
    let envelope = Envelope(
      id: "\(type.rawValue)-\(value)", source: "/test", type: type, subject: subject, time: clock,
      origin: origin.first.map { Envelope.Origin(coordinates: $0.0, index: $0.1, count: $0.2) })
    return Record(
      key: Array(key.utf8), value: Array("{\"n\":\(value)}".utf8), headers: envelope.headers, timestamp: clock)
  }
}
