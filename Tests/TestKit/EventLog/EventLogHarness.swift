import Foundation
import PurchasesContracts
import PurchasesCore

/// What the conformance suite needs of a log: ways to open it, and names nobody else uses.
public struct EventLogHarness: Sendable {
  /// Opens another handle on the same log, as another process would.
  public let open: @Sendable () throws -> any EventLog
  /// Begins the name of every topic, group and instance of this run; unique, since a broker keeps what earlier runs left.
  public let prefix: String
  /// Session time-out of the suite's workers: as short as the log allows, since cases wait for it to pass.
  public let sessionTimeoutMilliseconds: Int64
  /// How long a case waits for something that must happen before it fails with a message that says what did not.
  public let patienceMilliseconds: Int64

  public init(
    prefix: String, sessionTimeoutMilliseconds: Int64 = 1_000, patienceMilliseconds: Int64 = 60_000,
    open: @escaping @Sendable () throws -> any EventLog
  ) {
    self.prefix = prefix
    self.sessionTimeoutMilliseconds = sessionTimeoutMilliseconds
    self.patienceMilliseconds = patienceMilliseconds
    self.open = open
  }
}

func require(
  _ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws {
  try Conformance.expect(condition, message(), file: file, line: line)
}

func requireEqual<T: Equatable>(
  _ seen: T, _ wanted: T, _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws {
  try Conformance.expectEqual(seen, wanted, what(), file: file, line: line)
}

func requireFailure(
  _ kinds: Set<LogFailure.Kind>, _ what: String, file: StaticString = #fileID, line: UInt = #line,
  _ body: () throws -> Void
) throws {
  do {
    try body()
  } catch let failure as LogFailure {
    try require(
      kinds.contains(failure.kind), "\(what): failed as \(failure), not as one of \(kinds.map(\.rawValue))", file: file,
      line: line)
    return
  }
  throw Unmet("\(what): it succeeded, and should have failed: \(kinds.map(\.rawValue))", file: file, line: line)
}

/// One case's names, handles and waits. Whatever was opened is closed at the end, also of a failed case.
final class LogCase {
  let harness: EventLogHarness
  let log: any EventLog
  private var logs: [any EventLog] = []
  private var workers: [any LogWorker] = []
  private var readers: [any LogReader] = []
  private let deadline: Date

  init(_ harness: EventLogHarness) throws {
    self.harness = harness
    log = try harness.open()
    logs.append(log)
    deadline = Date(timeIntervalSinceNow: Double(harness.patienceMilliseconds) / 1000)
  }

  func finish() {
    for worker in workers { worker.close() }
    for reader in readers { reader.close() }
    for log in logs.reversed() { log.close() }
  }

  func another() throws -> any EventLog {
    let opened = try harness.open()
    logs.append(opened)
    return opened
  }

  func name(_ part: String) -> String { harness.prefix + part }

  static let maximumBytes = 100_000

  /// Makes a topic and answers its name.
  func topic(_ part: String, partitions: Int32 = 4) throws -> String {
    let spec = TopicSpec(
      name: name(part), partitions: partitions, replication: 1, isCompacted: false, maximumBytes: Self.maximumBytes)
    try log.ensure([spec])
    return spec.name
  }

  /// Asks again until the answer is yes; the question itself has to wait a little, or poll.
  func wait(for what: String, _ question: () throws -> Bool) throws {
    while try !question() {
      if Date() > deadline { throw Unmet("waited \(harness.patienceMilliseconds) ms for \(what)") }
    }
  }

  // MARK: publishing and reading

  func publish(_ records: [ProducedRecord], on handle: (any EventLog)? = nil) throws -> [Coordinates] {
    try results(of: records, on: handle).map { try $0.get() }
  }

  func results(
    of records: [ProducedRecord], on handle: (any EventLog)? = nil
  ) throws -> [Result<Coordinates, LogFailure>] {
    let producer = try (handle ?? log).producer()
    defer { _ = producer.close(withinMilliseconds: harness.patienceMilliseconds) }
    let completion = Completion()
    producer.publish(records) { completion.complete($0) }
    return try completion.wait(until: deadline)
  }

  /// Everything a topic holds now, by partition.
  func contents(of topic: String, on handle: (any EventLog)? = nil) throws -> [Int32: [StoredRecord]] {
    let handle = handle ?? log
    let reader = try handle.reader()
    readers.append(reader)
    var contents: [Int32: [StoredRecord]] = [:]
    for (partition, bounds) in try handle.bounds(of: topic) {
      var records: [StoredRecord] = []
      var next = bounds.start
      while true {
        let read = try reader.read(TopicPartition(topic, partition), from: next, max: 500)
        guard let last = read.last else { break }
        records += read
        next = last.coordinates.offset + 1
      }
      contents[partition] = records
    }
    return contents
  }

  func values(of topic: String, on handle: (any EventLog)? = nil) throws -> [String] {
    try contents(of: topic, on: handle).values.joined().map { text($0.record.value) }.sorted()
  }

  // MARK: workers

  func worker(
    _ instance: String, group: String, topics: [String], on handle: (any EventLog)? = nil, isStatic: Bool = false,
    sessions: Int64 = 1
  ) throws -> WorkerDriver {
    let handle = handle ?? log
    let worker = try handle.worker(
      WorkerSettings(
        group: name(group), topics: topics, instance: name(instance), isStatic: isStatic,
        sessionTimeoutMilliseconds: sessions * harness.sessionTimeoutMilliseconds))
    workers.append(worker)
    return WorkerDriver(worker: worker, log: handle)
  }

  /// Polls the workers in turn until the condition holds.
  func poll(_ drivers: [WorkerDriver], until what: String, max: Int = 1_000, _ holds: () throws -> Bool) throws {
    try wait(for: what) {
      if try holds() { return true }
      for driver in drivers { try driver.step(max: max) }
      return try holds()
    }
  }
}

/// Follows a worker's events as a runner would, and remembers what it was told.
final class WorkerDriver {
  let worker: any LogWorker
  private let log: any EventLog
  private(set) var assigned: Set<TopicPartition> = []
  private(set) var records: [StoredRecord] = []
  private(set) var membership: Membership?
  private(set) var atEnd: Set<TopicPartition> = []
  private(set) var revocations = 0
  /// The offset after the last record handed out, per partition.
  private(set) var next: [TopicPartition: Int64] = [:]
  /// Whether revoked partitions are let go at once.
  var releases = true
  private(set) var unreleased: [TopicPartition] = []

  init(worker: any LogWorker, log: any EventLog) {
    self.worker = worker
    self.log = log
  }

  private static let waitMilliseconds: Int64 = 50

  func step(max: Int = 1_000) throws {
    switch try worker.poll(max: max, waitMilliseconds: Self.waitMilliseconds) {
    case .assigned(let partitions):
      assigned.formUnion(partitions)
      var offsets: [TopicPartition: Int64] = [:]
      for (partition, committed) in try worker.committed(partitions) {
        offsets[partition] = try committed ?? log.bounds(of: partition.topic)[partition.partition]?.start ?? 0
      }
      try require(Set(offsets.keys) == Set(partitions), "committed answered for \(offsets.keys), not \(partitions)")
      try worker.start(offsets)
    case .revoked(let partitions, let lost):
      revocations += 1
      assigned.subtract(partitions)
      if releases || lost { try worker.release(partitions) } else { unreleased += partitions }
    case .records(let batch, let membership):
      try require(batch.count <= max, "a batch of \(batch.count) records where at most \(max) were asked for")
      for record in batch {
        try require(
          assigned.contains(record.coordinates.topicPartition), "a record of \(record.coordinates), not assigned")
        next[record.coordinates.topicPartition] = record.coordinates.offset + 1
      }
      records += batch
      self.membership = membership
      atEnd = []
    case .idle(let atEnd):
      self.atEnd = atEnd
    }
  }

  var values: [String] { records.map { text($0.record.value) } }

  func lastMembership() throws -> Membership {
    guard let membership else { throw Unmet("the worker has handed out no records yet") }
    return membership
  }

  func forgetRecords() { records = [] }
}

func text(_ bytes: [UInt8]?) -> String { bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-" }

func record(
  _ topic: String, key: String? = nil, _ value: String, partition: Int32? = nil,
  at milliseconds: Int64 = 1_700_000_000_000
) -> ProducedRecord {
  ProducedRecord(
    topic: topic, partition: partition,
    record: Record(
      key: key.map { Array($0.utf8) }, value: Array(value.utf8), timestamp: Instant(milliseconds: milliseconds)))
}

/// Waits for a publish to be reported, and notices a second report.
final class Completion: @unchecked Sendable {
  // Sendable because every use of the state is under the condition's lock.
  private let condition = NSCondition()
  private var reports: [[Result<Coordinates, LogFailure>]] = []

  func complete(_ results: [Result<Coordinates, LogFailure>]) {
    condition.withLock {
      reports.append(results)
      condition.broadcast()
    }
  }

  func wait(until deadline: Date) throws -> [Result<Coordinates, LogFailure>] {
    try condition.withLock {
      while reports.isEmpty {
        if !condition.wait(until: deadline) { throw Unmet("no report on a publish came in time") }
      }
      try require(reports.count == 1, "a publish was reported \(reports.count) times")
      return reports[0]
    }
  }

  var count: Int { condition.withLock { reports.count } }
}
