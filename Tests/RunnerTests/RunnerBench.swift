import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesRunner
import PurchasesSQLiteStore
import PurchasesTestKit
import Testing

/// A log and a store in a folder of their own, and one stage run on them.
final class RunnerBench {
  let folder: URL
  let topics = TopicSettings(partitions: 3)
  let clock = ManualClock()
  var log: any EventLog
  var store: any Store
  let metrics = Metrics()

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("purchases-runner-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    log = try EmbeddedLog(path: folder.appendingPathComponent("log").path)
    try log.ensure(topics.specs)
    store = SQLiteStore(path: folder.appendingPathComponent("store").path)
    try store.migrate()
  }

  deinit {
    log.close()
    store.close()
    try? FileManager.default.removeItem(at: folder)
  }

  func publish(_ topic: Topic, _ records: [(key: String, value: String)]) throws {
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let produced = records.enumerated().map { index, record in
      let envelope = Envelope(
        id: "\(record.key)-\(index)-\(record.value)", source: "/tests",
        type: topic == .received ? .paymentAdded : .factNoted)
      return ProducedRecord(
        topic: topics.name(topic),
        record: Record(
          key: Array(record.key.utf8), value: Array(record.value.utf8), headers: envelope.headers,
          timestamp: clock.now()))
    }
    try publish(produced)
  }

  func publish(_ produced: [ProducedRecord]) throws {
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let done = StopSignal()
    let failures = Box<[LogFailure]>([])
    producer.publish(produced) { results in
      for case .failure(let failure) in results { failures.value.append(failure) }
      done.set()
    }
    done.wait()
    if let failure = failures.value.first { throw failure }
  }

  func settings(group: String = "tests") -> RunnerSettings {
    RunnerSettings(topics: topics, group: group, instance: "\(group)-\(UUID().uuidString)")
  }

  /// Runs a stage until its group is idle in these topics, or it stops of itself.
  func run(
    _ stage: any Stage, on log: (any EventLog)? = nil, settings: RunnerSettings? = nil, idleIn inputs: [Topic]? = nil
  ) throws {
    let settings = settings ?? self.settings()
    let log = log ?? self.log
    let stop = StopSignal()
    let runner = StageRunner(
      stage: stage, log: log, store: stage.hasState ? store : nil, settings: settings, clock: clock,
      logger: Logger(clock: clock, minimum: .error, write: { _ in }), metrics: metrics)
    let handed = Box(runner)
    let worker = Worker<RunnerFailure?>(name: "stage") {
      do throws(RunnerFailure) {
        try handed.value.run(until: stop)
        return nil
      } catch { return error }
    }
    let progress = GroupProgress(log: self.log, topics: topics)
    defer { progress.close() }
    // A stage that never gets idle is a failure of the test, not of the machine: a minute is generous for any.
    let watch = Stopwatch()
    while !worker.isDone {
      if try (inputs ?? stage.inputs).allSatisfy({
        try progress.isIdle(group: settings.group, topic: $0, now: clock.now())
      }) {
        break
      }
      try #require(watch.seconds < 60, "the stage does not come to an end")
      stop.wait(milliseconds: 5)
    }
    stop.set()
    if let failure = worker.wait() { throw failure }
  }

  /// Sets a group's offsets, as an operator does.
  func commit(_ offsets: [TopicPartition: Int64], group: String) throws {
    let worker = try log.worker(
      WorkerSettings(group: group, topics: Array(Set(offsets.keys.map(\.topic))), instance: "operator"))
    defer { worker.close() }
    while true {
      guard case .assigned = try worker.poll(max: 1, waitMilliseconds: 1_000) else { continue }
      return try worker.commit([], offsets: offsets, membership: worker.membership())
    }
  }

  func records(_ topic: Topic) throws -> [StoredRecord] {
    let reader = try log.reader()
    defer { reader.close() }
    return try (0..<topics.partitions).flatMap {
      try reader.read(TopicPartition(topics.name(topic), $0), from: 0, max: 1_000_000)
    }
  }

  func tally(_ key: String) throws -> Int64? {
    let reader = try store.reader()
    defer { reader.close() }
    return try reader.row(RowKey(.balance, [.text("Sandbox"), .text(key), .text("tally")]))?["amount"].integer
  }
}

/// Lends a value to another thread; the test hands it over and waits.
final class Box<T>: @unchecked Sendable {
  var value: T
  init(_ value: T) { self.value = value }
}
