import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// A log whose workers' records go to topics of another prefix, so that every run finds the inputs as they were; it times
/// the run and ends it when everything has been worked off.
final class RedirectedLog: EventLog {
  private let real: any EventLog
  private let prefix: String
  private let scratch: String
  private let outputs: Set<String>
  let course: Course

  /// - Parameters:
  ///   - prefix: of the topics as the stage names them.
  ///   - scratch: put in its place on the way out.
  ///   - outputs: the topics that the stage only writes to. It asks them how far it had come, and each run is a new one.
  init(_ real: any EventLog, prefix: String, scratch: String, outputs: Set<String>, course: Course) {
    self.real = real
    self.outputs = outputs
    self.prefix = prefix
    self.scratch = scratch
    self.course = course
  }

  func worker(_ settings: WorkerSettings) throws(LogFailure) -> any LogWorker {
    RedirectedWorker(try real.worker(settings), self)
  }

  fileprivate func redirected(_ topic: String) -> String { scratch + topic.dropFirst(prefix.count) }

  func ensure(_ topics: [TopicSpec]) throws(LogFailure) { try real.ensure(topics) }
  func partitionCount(of topic: String) throws(LogFailure) -> Int32 { try real.partitionCount(of: topic) }
  func producer() throws(LogFailure) -> any LogProducer { try real.producer() }
  func reader() throws(LogFailure) -> any LogReader { try real.reader() }
  func committed(group: String, topic: String) throws(LogFailure) -> [Int32: Int64] {
    try real.committed(group: group, topic: topic)
  }
  func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    outputs.contains(topic) ? [:] : try real.bounds(of: topic)
  }
  func offset(of partition: TopicPartition, at instant: Instant) throws(LogFailure) -> Int64? {
    try real.offset(of: partition, at: instant)
  }
  func probe() throws(LogFailure) { try real.probe() }
  func close() { real.close() }
}

/// The course of one run. Used by the stage's thread; read when that has ended.
///
/// `@unchecked Sendable` for that reason.
final class Course: @unchecked Sendable {
  let stop = StopSignal()
  private let expected: Int
  private(set) var records = 0
  private(set) var commits = 0
  private var produced = 0
  private var began: (time: Double, cpu: Double) = (0, 0)
  private var ended: (time: Double, cpu: Double) = (0, 0)
  private var watch = MemoryWatch()

  init(expected: Int) { self.expected = expected }

  /// The partitions were handed over: from here on records can come.
  func begin() { began = (Gauge.now, Gauge.cpu) }

  func took(_ count: Int) { records += count }

  func committed(_ count: Int) {
    ended = (Gauge.now, Gauge.cpu)
    commits += 1
    produced += count
    watch.look(isWarm: records * 5 >= expected)
  }

  var sample: Sample {
    Sample(
      count: records, seconds: ended.time - began.time, cpu: ended.cpu - began.cpu, memory: watch.memory)
  }
}

private final class RedirectedWorker: LogWorker {
  private let real: any LogWorker
  private let log: RedirectedLog
  private var started: Set<TopicPartition> = []
  private var names: [String: String] = [:]
  /// Records of the commit under way.
  private var begun: Int?

  init(_ real: any LogWorker, _ log: RedirectedLog) {
    self.real = real
    self.log = log
  }

  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    let polled = try real.poll(max: max, waitMilliseconds: waitMilliseconds)
    switch polled {
    case .records(let records, _): log.course.took(records.count)
    case .idle(let atEnd): if !started.isEmpty, atEnd == started { log.course.stop.set() }
    default: break
    }
    return polled
  }

  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) {
    started.formUnion(offsets.keys)
    log.course.begin()
    try real.start(offsets)
  }

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    try beginCommit(records, offsets: offsets, membership: membership)
    try finishCommit()
  }

  func finishCommit() throws(LogFailure) {
    try real.finishCommit()
    if let begun { log.course.committed(begun) }
    begun = nil
  }

  func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    var redirected = records
    for index in redirected.indices {
      let topic = redirected[index].topic
      let name = names[topic] ?? log.redirected(topic)
      names[topic] = name
      redirected[index].topic = name
    }
    try real.beginCommit(redirected, offsets: offsets, membership: membership)
    begun = records.count
  }

  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    try real.committed(partitions)
  }
  func pause(_ partitions: [TopicPartition]) throws(LogFailure) { try real.pause(partitions) }
  func release(_ partitions: [TopicPartition]) throws(LogFailure) { try real.release(partitions) }
  func membership() throws(LogFailure) -> Membership { try real.membership() }
  func close() { real.close() }
}
