import PurchasesContracts
import PurchasesCore

/// One process's handle on the simulated brokers.
final class SimulatedLog: EventLog {
  private let broker: SimulatedBroker
  private let link: SimulatedLink

  init(_ broker: SimulatedBroker, _ link: SimulatedLink) {
    self.broker = broker
    self.link = link
  }

  func ensure(_ topics: [TopicSpec]) throws(LogFailure) {
    try link.log(.bounds) { () throws(LogFailure) in try broker.ensure(topics) }
  }

  func partitionCount(of topic: String) throws(LogFailure) -> Int32 {
    try link.log(.bounds) { () throws(LogFailure) in Int32(try broker.topic(topic).partitions.count) }
  }

  func producer() throws(LogFailure) -> any LogProducer { SimulatedProducer(broker, link) }

  func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    try link.log(.join) { () throws(LogFailure) in
      try broker.checkReachable()
      return try SimulatedWorker(broker, link, settings)
    }
  }

  func reader() throws(LogFailure) -> any LogReader { SimulatedReader(broker, link) }

  func committed(group name: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    try link.log(.offsets) { () throws(LogFailure) in
      try broker.checkReachable()
      let group = broker.group(name)
      let places = try broker.topic(topic).partitions.indices.map { TopicPartition(topic, Int32($0)) }
      guard link.wait(SimulatedWorker.patience, { [broker] in !broker.isOut && !group.isUnstable(places) }) else {
        throw LogFailure(.unavailable, "the offsets of \(name) are not stable")
      }
      var offsets: [Int32: Int64] = [:]
      for (place, offset) in group.offsets where place.topic == topic { offsets[place.partition] = offset }
      return offsets
    }
  }

  func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    try link.log(.bounds) { () throws(LogFailure) in
      try broker.checkReachable()
      var bounds: [Int32: OffsetBounds] = [:]
      for (index, partition) in try broker.topic(topic).partitions.enumerated() {
        bounds[Int32(index)] = OffsetBounds(start: 0, end: Int64(partition.stable))
      }
      return bounds
    }
  }

  func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    try link.log(.bounds) { () throws(LogFailure) in
      try broker.read(partition, from: 0, max: .max).first { $0.record.timestamp >= instant }?.coordinates.offset
    }
  }

  func probe() throws(LogFailure) { try link.log(.bounds) { () throws(LogFailure) in try broker.checkReachable() } }
  func close() {}
}

final class SimulatedProducer: LogProducer {
  private let broker: SimulatedBroker
  nonisolated(unsafe) private var isClosed = false
  private let link: SimulatedLink

  init(_ broker: SimulatedBroker, _ link: SimulatedLink) {
    self.broker = broker
    self.link = link
  }

  func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void
  ) {
    var results: [Result<Coordinates, LogFailure>] = []
    do throws(LogFailure) {
      try link.log(.bounds) { () throws(LogFailure) in
        guard !isClosed else { throw LogFailure(.unavailable, "the producer is closed") }
        try broker.checkReachable()
        for produced in records {
          do throws(LogFailure) {
            let place = try broker.place(produced)
            let offset = broker.append(produced.record, to: place, of: nil)
            results.append(
              .success(Coordinates(topic: place.topic, partition: place.partition, offset: offset)))
          } catch {
            results.append(.failure(error))
          }
        }
      }
    } catch {
      results = records.map { _ in .failure(error) }
    }
    done(results)
  }

  func close(withinMilliseconds: Int64) -> Int {
    isClosed = true
    return 0
  }
}

final class SimulatedReader: LogReader {
  private let broker: SimulatedBroker
  private let link: SimulatedLink

  init(_ broker: SimulatedBroker, _ link: SimulatedLink) {
    self.broker = broker
    self.link = link
  }

  func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord] {
    try link.log(.read) { () throws(LogFailure) in
      try broker.checkReachable()
      return try broker.read(partition, from: offset, max: max)
    }
  }

  func wait(_ partition: TopicPartition, beyond offset: Int64, milliseconds: Int64) throws(LogFailure) -> Bool {
    try link.log(.read) { () throws(LogFailure) in
      let partition = try broker.partition(partition)
      return link.wait(milliseconds) { partition.stable > offset }
    }
  }

  func close() {}
}
