import PurchasesContracts
import PurchasesCore
import PurchasesKafkaLog
import PurchasesPostgresStore
import PurchasesRunner
import PurchasesSQLiteStore

/// One stage worked from the beginning of its topics to their end, as a deployment runs it: the real loop, the real log,
/// the real store.
struct StageRun {
  let name: StageName
  let brokers: String
  /// A path for SQLite, or the URL of a PostgreSQL database; nil for a stage without state.
  let store: String?
  /// Prefix of the topics that take the outputs.
  let scratch: String
  let group: String
  /// The topics that it reads.
  var topics = Self.topics

  static let topics = TopicSettings(prefix: "purchases.")

  func run() throws -> Sample {
    let stage = try Day.stage(name, topics)
    let log = try KafkaLog(url: "kafka://\(brokers)")
    var expected = 0
    for topic in stage.inputs {
      for bounds in try log.bounds(of: topics.name(topic)).values { expected += Int(bounds.end - bounds.start) }
    }
    let course = Course(expected: expected)
    let outputs = Set([stage.output, .parked, .quarantine]).subtracting(stage.inputs).map { topics.name($0) }
    var settings = RunnerSettings(topics: topics, group: group, instance: group)
    // Under the load of other programs a process may stand still for longer than a deployment would bear.
    settings.sessionTimeoutMilliseconds = 30_000
    settings.transactionTimeoutMilliseconds = 30_000
    let runner = Handed(
      StageRunner(
        stage: stage,
        log: RedirectedLog(
          log, prefix: topics.prefix, scratch: scratch, outputs: Set(outputs), course: course),
        store: try opened(), settings: settings, clock: StillClock(),
        logger: Logger(clock: SystemClock(), minimum: .error), metrics: Metrics()))
    let worker = Worker<RunnerFailure?>(name: name.rawValue) {
      do throws(RunnerFailure) {
        try runner.runner.run(until: course.stop)
        return nil
      } catch {
        return error
      }
    }
    if let failure = worker.wait() { throw failure }
    log.close()
    var sample = course.sample
    sample.peak = Gauge.peak
    return sample
  }

  /// The runner belongs to its thread alone from the moment it is handed over.
  private final class Handed: @unchecked Sendable {
    let runner: StageRunner
    init(_ runner: StageRunner) { self.runner = runner }
  }

  private func opened() throws -> (any Store)? {
    guard let store else { return nil }
    let opened: any Store = store.hasPrefix("postgres:") ? PostgresStore(url: store) : SQLiteStore(path: store)
    try opened.migrate()
    return opened
  }
}
