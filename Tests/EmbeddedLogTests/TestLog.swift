import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesTestKit
import Synchronization

/// A log file of its own for one test.
struct TestLog {
  let folder: TemporaryFolder
  let path: String
  let clock = ManualClock()

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("log.db")
  }

  func open(maximumSize: Int64? = nil) throws -> EmbeddedLog {
    try EmbeddedLog(path: path, options: EmbeddedLog.Options(clock: clock, maximumSize: maximumSize))
  }

  func spec(_ name: String, partitions: Int32 = 1) -> TopicSpec {
    TopicSpec(name: name, partitions: partitions, replication: 1, isCompacted: false, maximumBytes: 1 << 20)
  }

  func produced(_ topic: String, _ value: String, at milliseconds: Int64 = 1, bytes: Int = 0) -> ProducedRecord {
    ProducedRecord(
      topic: topic,
      record: Record(
        key: nil, value: Array(value.utf8) + [UInt8](repeating: 0x2e, count: bytes),
        timestamp: Instant(milliseconds: milliseconds)))
  }

  /// Publishes and waits for the results.
  func publish(_ records: [ProducedRecord], to log: EmbeddedLog) throws -> [Result<Coordinates, LogFailure>] {
    let producer = try log.producer()
    let box = Box()
    producer.publish(records) { box.set($0) }
    _ = producer.close(withinMilliseconds: 60_000)
    return box.results
  }

  func contents(of topic: String, in log: EmbeddedLog) throws -> [StoredRecord] {
    let reader = try log.reader()
    defer { reader.close() }
    var records: [StoredRecord] = []
    while true {
      let read = try reader.read(TopicPartition(topic, 0), from: Int64(records.count), max: 10_000)
      if read.isEmpty { return records }
      records += read
    }
  }

  func worker(_ instance: String, on log: EmbeddedLog, topics: [String] = ["t"]) throws -> any LogWorker {
    try log.worker(
      WorkerSettings(group: "g", topics: topics, instance: instance, sessionTimeoutMilliseconds: 10_000))
  }
}

/// What a completion was given, and how often.
final class Box: Sendable {
  private let state = Mutex<(results: [Result<Coordinates, LogFailure>], calls: Int)>(([], 0))
  func set(_ results: [Result<Coordinates, LogFailure>]) { state.withLock { $0 = (results, $0.calls + 1) } }
  var results: [Result<Coordinates, LogFailure>] { state.withLock { $0.results } }
  var calls: Int { state.withLock { $0.calls } }
}

func kind(_ body: () throws -> Void) -> LogFailure.Kind? {
  do {
    try body()
    return nil
  } catch {
    return (error as? LogFailure)?.kind
  }
}
