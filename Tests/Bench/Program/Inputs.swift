import PurchasesContracts
import PurchasesCore
import PurchasesKafka
import PurchasesKafkaLog
import PurchasesRunner
import Synchronization

/// The topics that the stages are measured on: a day's received events, and what each stage made of the one before.
struct Inputs {
  let brokers: String
  let folder: String

  /// Records handed to the producer at once.
  private static let window = 500

  /// Fills the topics; answers how many events were received.
  func fill(accounts: Int) throws -> Int {
    let log = try KafkaLog(url: "kafka://\(brokers)")
    defer { log.close() }
    try log.ensure(StageRun.topics.specs)
    let day = Day(accounts: accounts)
    let count = try Self.publish(to: StageRun.topics.name(.received), log) { try day.received($0) }
    for name in [StageName.verification, .ownership, .entitlements] {
      let path = "\(folder)/filling-\(name.rawValue).db"
      let hasState = try Day.stage(name, StageRun.topics).hasState
      _ = try StageRun(
        name: name, brokers: brokers, store: hasState ? path : nil, scratch: StageRun.topics.prefix,
        group: "filling.\(name.rawValue)"
      ).run()
      File.removeDatabase(path)
    }
    return count
  }

  /// Publishes whatever `records` hands out; answers how many those were.
  @discardableResult
  static func publish(
    to topic: String, _ log: KafkaLog, _ records: ((Record) throws -> Void) throws -> Void
  ) throws -> Int {
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    var window: [ProducedRecord] = []
    var count = 0
    try records { record in
      window.append(ProducedRecord(topic: topic, record: record))
      if window.count == Self.window { try send(&window, &count, producer) }
    }
    try send(&window, &count, producer)
    return count
  }

  private static func send(_ records: inout [ProducedRecord], _ count: inout Int, _ producer: any LogProducer) throws {
    let done = StopSignal()
    let failure = Mutex<LogFailure?>(nil)
    producer.publish(records) { results in
      for case .failure(let reason) in results { failure.withLock { $0 = reason } }
      done.set()
    }
    done.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
    count += records.count
    records.removeAll(keepingCapacity: true)
  }
}

/// Topics that take what a run writes, and are gone after it: ten passes over a day would fill a small disk.
struct ScratchTopics {
  let admin: KafkaAdmin
  let prefix: String
  private static let milliseconds: Int32 = 15_000

  init(brokers: String, prefix: String) throws {
    admin = try KafkaAdmin(settings: KafkaSettings(["bootstrap.servers": brokers]))
    self.prefix = prefix
  }

  static let loop = "loop"

  private var names: [String] { Topic.allCases.map { prefix + $0.rawValue } + [prefix + Self.loop] }

  func make() throws {
    let topics = names.map {
      NewTopic(
        name: $0, partitions: StageRun.topics.partitions, replication: 1,
        settings: ["max.message.bytes": "12582912", "file.delete.delay.ms": "100"])
    }
    _ = try admin.createTopics(topics, milliseconds: Self.milliseconds)
    // The controller has them; the broker that we ask may learn it a moment later.
    let deadline = Gauge.now + 15
    while try admin.partitionCounts(of: nil, milliseconds: Self.milliseconds).filter({ names.contains($0.key) }).count
      < names.count
    {
      guard Gauge.now < deadline else { throw BenchFailure("scratch topics do not show up") }
    }
  }

  /// Those that a program made for itself under its group's name.
  func remove(of group: String) throws {
    let names = try admin.partitionCounts(of: nil, milliseconds: Self.milliseconds).keys
    let made = names.filter { $0.hasPrefix(group + "-") || $0.hasPrefix(group + ".") }
    if !made.isEmpty { _ = try admin.deleteTopics(Array(made), milliseconds: Self.milliseconds) }
  }

  func remove() throws { _ = try admin.deleteTopics(names, milliseconds: Self.milliseconds) }
}
