import PurchasesContracts
import PurchasesKafkaLog

/// A stage at its smallest: copies a topic to another, each batch in one transaction with its position, and recovers from
/// everything but the loss of its name.
final class Copier {
  private let worker: any LogWorker
  private let output: String
  private var assigned: Set<TopicPartition> = []
  private var mustRecover = false
  private(set) var commits = 0
  private(set) var failures: [LogFailure.Kind] = []

  init(
    _ log: any EventLog, group: String, instance: String, from input: String, to output: String,
    sessionTimeoutMilliseconds: Int64 = WorkerSettings.defaultSessionTimeout,
    transactionTimeoutMilliseconds: Int64 = WorkerSettings.defaultTransactionTimeout
  ) throws {
    self.output = output
    worker = try log.worker(
      WorkerSettings(
        group: group, topics: [input], instance: instance, sessionTimeoutMilliseconds: sessionTimeoutMilliseconds,
        transactionTimeoutMilliseconds: transactionTimeoutMilliseconds))
  }

  func step(max: Int = 40) throws {
    do throws(LogFailure) {
      if mustRecover { try recover(Array(assigned)) }
      switch try worker.poll(max: max, waitMilliseconds: 50) {
      case .assigned(let partitions):
        assigned.formUnion(partitions)
        try recover(partitions)
      case .revoked(let partitions, _):
        assigned.subtract(partitions)
        try worker.release(partitions)
      case .records(let records, let membership):
        var offsets: [TopicPartition: Int64] = [:]
        for record in records { offsets[record.coordinates.topicPartition] = record.coordinates.offset + 1 }
        let copies = records.map {
          ProducedRecord(topic: output, partition: $0.coordinates.partition, record: $0.record)
        }
        try worker.commit(copies, offsets: offsets, membership: membership)
        commits += 1
      case .idle: break
      }
    } catch {
      failures.append(error.kind)
      guard [.stale, .aborted, .indefinite, .unavailable].contains(error.kind) else { throw error }
      mustRecover = true
    }
  }

  private func recover(_ partitions: [TopicPartition]) throws(LogFailure) {
    mustRecover = true
    let committed = try worker.committed(partitions)
    try worker.start(committed.mapValues { $0 ?? 0 })
    mustRecover = false
  }

  func close() { worker.close() }
}

/// All committed values of a topic, by partition, in order.
func values(of topic: String, in log: any EventLog) throws -> [Int32: [[UInt8]]] {
  let reader = try log.reader()
  defer { reader.close() }
  var found: [Int32: [[UInt8]]] = [:]
  for (partition, bounds) in try log.bounds(of: topic) {
    var next = bounds.start
    while true {
      let records = try reader.read(TopicPartition(topic, partition), from: next, max: 1_000)
      guard let last = records.last else { break }
      found[partition, default: []] += records.compactMap(\.record.value)
      next = last.coordinates.offset + 1
    }
  }
  return found
}
