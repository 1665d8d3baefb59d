import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesKafka
import Synchronization

/// The log on Apache Kafka. Safe to share between threads; its methods block.
public final class KafkaLog: EventLog {
  /// Takes what librdkafka says: a level as in syslog (0 emergency to 7 debug) and a line. Called on its threads.
  public typealias Sink = @Sendable (_ level: Int, _ line: String) -> Void

  let sink: KafkaLogSink
  private let given: KafkaSettings
  private let admin: KafkaAdmin
  /// The smallest record limit among the topics we know: a batch may not be larger than what its topic takes.
  private let smallestLimit = Mutex<Int>(NewTopic.batchBytes)
  private let counts = Mutex<[String: (count: Int32, at: Int64)]>([:])
  private let groups = Mutex<[String: KafkaGroup]>([:])
  private let idleReaders = Mutex<[KafkaReader]>([])
  private let silent = Mutex<[KafkaPartition: (range: Range<Int64>, at: Int64)]>([:])

  /// Longest wait for an answer of the cluster to one question.
  static let askMilliseconds: Int32 = 15_000
  /// A health check that takes longer is a failed one.
  private static let probeMilliseconds: Int32 = 3_000
  /// A commit shows within some tens of milliseconds. A transaction that is open for longer is under way, or its producer
  /// died; its records are not committed.
  private static let settleMilliseconds: Int64 = 1_000
  private static let settleMicroseconds: UInt32 = 5_000
  /// How long it is believed what a topic looks like: it changes once in years.
  private static let beliefMilliseconds: Int64 = 10_000
  /// Connections that wait for the next reader.
  private static let mostIdleReaders = 4
  // How often a question is asked again while the cluster is still making up its mind.
  private static let againMicroseconds: UInt32 = 20_000

  /// Connects, so that an unreachable cluster, a wrong password or certificate, and a wrong setting are told here.
  public init(_ settings: KafkaLogSettings, log: @escaping Sink = { _, _ in }) throws(LogFailure) {
    given = settings.client
    let sink: KafkaLogSink = { line in log(line.level, "\(line.facility): \(line.message)") }
    self.sink = sink
    do throws(KafkaError) {
      admin = try KafkaAdmin(settings: settings.client, log: sink)
      try admin.connect(milliseconds: KafkaLog.askMilliseconds)
    } catch {
      throw LogFailure(error)
    }
  }

  var settings: KafkaSettings {
    given.withDefaults(["batch.size": String(smallestLimit.withLock { $0 })])
  }

  public convenience init(
    url: String, settings: [String: String] = [:], log: @escaping Sink = { _, _ in }
  ) throws(LogFailure) {
    try self.init(KafkaLogSettings(url: url, settings: settings), log: log)
  }

  /// Asks again while the answer is "not yet": right after a topic was made, or while a partition changes its leader.
  private func patiently<T>(
    missing: Bool = false, _ ask: () throws(KafkaError) -> T
  ) throws(LogFailure) -> T {
    let deadline = KafkaClock.milliseconds() + Int64(KafkaLog.askMilliseconds)
    while true {
      do throws(KafkaError) {
        return try ask()
      } catch {
        let notYet = error.severity == .retriable || (missing && error.code == .unknownTopicOrPartition)
        guard notYet, KafkaClock.milliseconds() < deadline else { throw LogFailure(error) }
        usleep(KafkaLog.againMicroseconds)
      }
    }
  }

  public func ensure(_ topics: [TopicSpec]) throws(LogFailure) {
    let limit = topics.map(\.maximumBytes).min() ?? .max
    smallestLimit.withLock { $0 = max(1, min($0, limit)) }
    var counts = try partitionCounts(topics.map(\.name))
    let missing = topics.filter { counts[$0.name] == nil }
    if !missing.isEmpty {
      let new = missing.map { NewTopic($0) }
      try patiently { () throws(KafkaError) in
        _ = try admin.createTopics(new, milliseconds: KafkaLog.askMilliseconds)
      }
      // The controller has them; the broker that we ask may learn it a moment later.
      let deadline = KafkaClock.milliseconds() + Int64(KafkaLog.askMilliseconds)
      counts = try partitionCounts(topics.map(\.name))
      while let topic = topics.first(where: { counts[$0.name] == nil }) {
        guard KafkaClock.milliseconds() < deadline else {
          throw LogFailure(.unavailable, "topic \(topic.name) was created and does not show up")
        }
        usleep(KafkaLog.againMicroseconds)
        counts = try partitionCounts(topics.map(\.name))
      }
    }
    for topic in topics {
      guard let count = counts[topic.name], count != topic.partitions else { continue }
      throw LogFailure(
        .refused,
        "topic \(topic.name) has \(count) partitions, and \(topic.partitions) are configured: keys would change their place"
      )
    }
  }

  private func partitionCounts(_ topics: [String]) throws(LogFailure) -> [String: Int32] {
    try patiently { () throws(KafkaError) in
      try admin.partitionCounts(of: topics, milliseconds: KafkaLog.askMilliseconds)
    }
  }

  public func partitionCount(of topic: String) throws(LogFailure) -> Int32 {
    let now = KafkaClock.milliseconds()
    if let known = counts.withLock({ $0[topic] }), now - known.at < KafkaLog.beliefMilliseconds { return known.count }
    guard let count = try partitionCounts([topic])[topic] else {
      counts.withLock { $0[topic] = nil }
      throw LogFailure(.refused, "topic \(topic) does not exist")
    }
    counts.withLock { $0[topic] = (count, now) }
    return count
  }

  private func partitions(of topic: String) throws(LogFailure) -> [KafkaPartition] {
    (0..<(try partitionCount(of: topic))).map { KafkaPartition(topic, $0) }
  }

  public func producer() throws(LogFailure) -> any LogProducer {
    try KafkaLogProducer(settings: settings, sink: sink)
  }

  public func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    for topic in settings.topics { _ = try partitionCount(of: topic) }
    return try KafkaWorker(self, settings)
  }

  public func reader() throws(LogFailure) -> any LogReader {
    try KafkaLogReader(self)
  }

  public func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    let partitions = try partitions(of: topic)
    let known = try self.group(group)
    let found = try patiently { () throws(KafkaError) in
      try known.committed(partitions, milliseconds: KafkaLog.askMilliseconds)
    }
    var offsets: [Int32: Int64] = [:]
    for (partition, offset) in found { offsets[partition.partition] = offset }
    return offsets
  }

  /// A stage asks for the groups before it again and again, so their connections are kept.
  private func group(_ name: String) throws(LogFailure) -> KafkaGroup {
    if let known = groups.withLock({ $0[name] }) { return known }
    do throws(KafkaError) {
      let made = try KafkaGroup(settings: settings, group: name, log: sink)
      return groups.withLock { groups in
        if let known = groups[name] { return known }
        groups[name] = made
        return made
      }
    } catch {
      throw LogFailure(error)
    }
  }

  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    let partitions = try partitions(of: topic)
    let found = try settled(partitions)
    return Dictionary(
      found.map { ($0.key.partition, OffsetBounds(start: $0.value.start, end: $0.value.end)) },
      uniquingKeysWith: { a, _ in a })
  }

  /// A commit is told to its producer a moment before its records show. What was committed before this call is to be
  /// within the answer, so an end with records behind it is asked for again, for as long as a commit takes to show.
  private func settled(_ partitions: [KafkaPartition]) throws(LogFailure) -> [KafkaPartition: PartitionBounds] {
    var found = try bounds(partitions)
    let written = found.mapValues(\.written)
    let deadline = KafkaClock.milliseconds() + KafkaLog.settleMilliseconds
    while found.contains(where: { $0.value.end < written[$0.key] ?? 0 }), KafkaClock.milliseconds() < deadline {
      usleep(KafkaLog.settleMicroseconds)
      found = try bounds(partitions)
    }
    return found
  }

  func bounds(_ partitions: [KafkaPartition]) throws(LogFailure) -> [KafkaPartition: PartitionBounds] {
    try patiently(missing: true) { () throws(KafkaError) in
      try admin.bounds(partitions, milliseconds: KafkaLog.askMilliseconds)
    }
  }

  public func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    let count = try partitionCount(of: partition.topic)
    guard (0..<count).contains(partition.partition) else {
      throw LogFailure(.refused, "topic \(partition.topic) has \(count) partitions, not \(partition.partition)")
    }
    // Below zero the protocol has other meanings, and no record stands there.
    let wanted = [KafkaPartition(partition): max(0, instant.milliseconds)]
    return try patiently { () throws(KafkaError) in
      try admin.offsets(forTimes: wanted, milliseconds: KafkaLog.askMilliseconds)
    }[KafkaPartition(partition)] ?? nil
  }

  public func probe() throws(LogFailure) {
    do throws(KafkaError) {
      try admin.connect(milliseconds: KafkaLog.probeMilliseconds)
    } catch {
      throw LogFailure(error)
    }
  }

  /// What was handed out has its own `close`; the log's own connection goes with the last reference.
  public func close() {
    idleReaders.withLock { $0 = [] }
    groups.withLock { $0 = [:] }
  }

  /// A connection for a reader: making one costs more than a short read.
  func takeReader() throws(LogFailure) -> KafkaReader {
    if let idle = idleReaders.withLock({ $0.popLast() }) { return idle }
    do throws(KafkaError) {
      return try KafkaReader(settings: settings.withDefaults(KafkaLogReader.defaults), log: sink)
    } catch {
      throw LogFailure(error)
    }
  }

  func giveBack(_ reader: KafkaReader) {
    reader.close()
    idleReaders.withLock { if $0.count < KafkaLog.mostIdleReaders { $0.append(reader) } }
  }

  /// Offsets known to hold no record that a reader may see: marks of transactions, and what was aborted. They never will,
  /// unless the topic is made anew: so it is believed for a while only.
  func isSilent(_ partition: KafkaPartition, _ range: Range<Int64>) -> Bool {
    guard let known = silent.withLock({ $0[partition] }) else { return false }
    return known.range.lowerBound <= range.lowerBound && known.range.upperBound >= range.upperBound
      && KafkaClock.milliseconds() - known.at < KafkaLog.beliefMilliseconds
  }

  func noteSilence(_ partition: KafkaPartition, _ range: Range<Int64>) {
    let now = KafkaClock.milliseconds()
    silent.withLock { $0[partition] = (range, now) }
  }
}

enum KafkaClock {
  /// The clock that never jumps, for deadlines only.
  static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}
