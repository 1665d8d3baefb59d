import PurchasesContracts
import PurchasesCore

/// The settings of one stage's loop.
public struct RunnerSettings: Sendable {
  public var topics: TopicSettings
  /// The consumer group; a store belongs to one.
  public var group: String
  public var instance: String
  public var isStatic: Bool
  public var sessionTimeoutMilliseconds: Int64
  public var transactionTimeoutMilliseconds: Int64
  /// The groups of the stages before this one, by the topic that they work off, in the order of the way of a record.
  public var stagesBefore: [(group: String, topic: Topic)]
  /// In a replay what the clock brought is in the log already, and so is what the stage put out.
  public var isReplay = false

  /// A batch takes what is there, up to this: measured, a transaction of thousands costs little more than one of a
  /// hundred, and more than this only adds memory and latency.
  public static let maximumBatch = 4096
  /// How long a poll waits for the first record; also the longest delay of a stop.
  public static let pollMilliseconds: Int64 = 50
  /// A commit of at most so many records is waited for before the next poll. Read before, the next records would wait for that
  /// commit, and those that come meanwhile for theirs: two commits instead of one and a half, at each stage. Only where many
  /// records come at once is deciding them worth the overlap.
  static let smallBatch = 256
  /// How often work that the clock brings is looked for: four times within the second that an expiry may take.
  public static let scheduleMilliseconds: Int64 = 250
  /// Looking costs questions to the log: it gets about a tenth of the time, unless that came to longer pauses than an expiry can
  /// wait for. With what is left to settle and the tick's own way, it comes within a second.
  static let longestScheduleMilliseconds: Int64 = 400
  static func pauseAfterSchedule(of milliseconds: Int64) -> Int64 {
    min(longestScheduleMilliseconds, max(scheduleMilliseconds, 9 * milliseconds))
  }
  /// A record's timestamp is taken a little before it is in the log: what is due waits so much longer, so that a tick
  /// does not pass it.
  public static let settlingMilliseconds: Int64 = 300

  public init(topics: TopicSettings, group: String, instance: String) {
    self.topics = topics
    self.group = group
    self.instance = instance
    isStatic = false
    sessionTimeoutMilliseconds = WorkerSettings.defaultSessionTimeout
    transactionTimeoutMilliseconds = WorkerSettings.defaultTransactionTimeout
    stagesBefore = []
  }
}

/// The one loop in which every stage runs: take a batch, fetch what it needs, decide, commit; recover after whatever
/// went wrong. It blocks: run it on a thread of its own.
public final class StageRunner {
  private(set) var stage: any Stage
  private let source: StageSource?
  let log: any EventLog
  let store: (any Store)?
  /// Nil where nobody may be asked, as in a replay.
  let appStore: (any AppStore)?
  let settings: RunnerSettings
  let clock: any Clock
  let pacing: any Pacing
  let logger: Logger
  let metrics: Metrics
  public let health = StageHealth()
  let derivation: Derivation

  /// What this loop knows of a partition that it owns.
  struct Owned {
    var epoch: Int64
    /// The next offset to be worked on: the store's position, or the group's offset where there is no store.
    var next: Int64?
    /// What the log has as committed, as far as this loop knows.
    var published: Int64?
  }

  var owned: [TopicPartition: Owned] = [:]

  /// A batch whose commit to the log was begun.
  struct Unsettled {
    let next: [TopicPartition: Int64]
    let records: Int
    let quarantined: Int
    let parked: Int
    /// When the first of what the clock brought was due.
    let dueAt: Instant?
  }

  var unsettled: Unsettled?
  /// Partitions of `parked` that wait for their first record's time.
  var waiting: [TopicPartition: (offset: Int64, until: Instant)] = [:]
  /// Whether the store was found to be as new as the group's offsets on all partitions, in this session.
  var isStoreCompared = false
  private var lastSchedule: Int64
  private var schedulePause = RunnerSettings.scheduleMilliseconds
  /// Asked whenever something is due, so kept: opening a reader costs a connection.
  let progress: GroupProgress

  public init(
    stage: any Stage, source: StageSource? = nil, log: any EventLog, store: (any Store)?,
    appStore: (any AppStore)? = nil,
    settings: RunnerSettings, clock: any Clock, pacing: any Pacing = MachinePacing(), logger: Logger, metrics: Metrics
  ) {
    precondition(stage.hasState == (store != nil), "a stage with state needs a store, one without has none")
    self.stage = stage
    self.source = source
    self.log = log
    self.store = store
    self.appStore = appStore
    self.settings = settings
    self.clock = clock
    self.pacing = pacing
    lastSchedule = pacing.milliseconds()
    self.logger = logger
    self.metrics = metrics
    progress = GroupProgress(log: log, topics: settings.topics)
    derivation = Derivation(stage: stage.name, topics: settings.topics)
  }

  /// Runs until the signal is set (the batch in hand is finished) or something happens that only people can mend.
  public func run(until stop: StopSignal) throws(RunnerFailure) {
    var backOff = BackOff()
    while !stop.isSet {
      do {
        try session(until: stop) { backOff.reset() }
      } catch {
        if let failure = Self.final(error) {
          health.set(.failed(failure))
          logger.error("stage stopped", ["stage": stage.name.rawValue, "reason": failure.description])
          throw failure
        }
        let reason = String(describing: error)
        let pause = backOff.next(pacing.chance)
        health.set(.retrying(reason))
        metrics.count("purchases_retries_total", "Sessions that ended in a failure that can heal", label)
        logger.warning(
          "stage will retry", ["stage": stage.name.rawValue, "reason": reason, "pause_ms": String(pause)])
        pacing.pause(milliseconds: pause, until: stop)
      }
    }
    health.set(.stopped)
  }

  var label: KeyValuePairs<String, String> { ["stage": stage.name.rawValue] }

  /// One membership of the group, from joining to leaving.
  private func session(until stop: StopSignal, onProgress: () -> Void) throws {
    owned = [:]
    waiting = [:]
    unsettled = nil
    isStoreCompared = false
    let books = try store?.stage(stage.name.rawValue, group: settings.group)
    defer { books?.close() }
    let worker = try opened()
    defer { worker.close() }
    defer { progress.close() }
    health.set(.working)
    while !stop.isSet {
      health.turn()
      if let next = source?.take() {
        precondition(next.name == stage.name, "a stage is replaced by one of its name")
        stage = next
      }
      do {
        if let batch = unsettled, batch.records <= RunnerSettings.smallBatch { try settle(worker) }
        switch try worker.poll(max: RunnerSettings.maximumBatch, waitMilliseconds: RunnerSettings.pollMilliseconds) {
        case .assigned(let partitions):
          logger.info("assigned", ["stage": stage.name.rawValue, "partitions": Self.list(partitions)])
          // Known from here on: where their first recovery is dropped with a batch, the next one is theirs, too.
          for partition in partitions { owned[partition] = Owned(epoch: 0, next: nil, published: nil) }
          // Also where the last batch failed these are ours now: they are told where to begin, and then it is dropped.
          let settled = Result { try settle(worker) }
          try recover(partitions, worker, books)
          health.recovered()
          try settled.get()
        case .revoked(let partitions, let lost):
          // Lost is what nobody asked us to give: brokers out of reach, or a stage that stood still.
          logger.log(
            lost ? .warning : .info, lost ? "partitions lost" : "revoked",
            ["stage": stage.name.rawValue, "partitions": Self.list(partitions)])
          // The batch in hand is finished first. The group waits for our answer, whatever comes of it.
          let settled = Result { try settle(worker) }
          for partition in partitions {
            owned[partition] = nil
            waiting[partition] = nil
          }
          try worker.release(partitions)
          try settled.get()
        case .records(let records, let membership):
          CrashPoint.polled.reach()
          try work(records, membership, worker, books)
          onProgress()
        case .idle:
          try settle(worker)
          onProgress()
        }
        try wake(worker)
        let begin = pacing.milliseconds()
        if !settings.isReplay, begin - lastSchedule >= schedulePause {
          try schedule(worker, books)
          lastSchedule = pacing.milliseconds()
          schedulePause = RunnerSettings.pauseAfterSchedule(of: lastSchedule - begin)
        }
      } catch let failure as LogFailure where failure.kind.dropsBatch {
        // The batch is dropped: what the store holds of it is published by whoever recovers the partition.
        logger.warning("batch dropped", ["stage": stage.name.rawValue, "reason": failure.description])
        metrics.count("purchases_batches_dropped_total", "Batches whose commit did not go through", label)
        try recoverAll(worker, books)
      } catch let failure as StoreFailure where failure.kind == .fenced {
        logger.warning("fenced by the store", ["stage": stage.name.rawValue, "reason": failure.description])
        metrics.count("purchases_fenced_total", "Batches that the store refused by epoch or position", label)
        try recoverAll(worker, books)
      }
    }
    try settle(worker)
  }

  private func recoverAll(_ worker: any LogWorker, _ books: (any StageStore)?) throws {
    // What is under way ends first; what became of it is asked of the log.
    do throws(LogFailure) { try settle(worker) } catch {
      logger.warning("batch dropped", ["stage": stage.name.rawValue, "reason": error.description])
    }
    try recover(owned.keys.sorted(), worker, books)
  }

  private func opened() throws -> any LogWorker {
    try log.worker(
      WorkerSettings(
        group: settings.group, topics: stage.inputs.map { settings.topics.name($0) }, instance: settings.instance,
        isStatic: settings.isStatic, sessionTimeoutMilliseconds: settings.sessionTimeoutMilliseconds,
        transactionTimeoutMilliseconds: settings.transactionTimeoutMilliseconds, isPatient: stage.isPatient))
  }

  /// What no retry will mend, as the failure that ends the loop.
  private static func final(_ error: any Error) -> RunnerFailure? {
    if let failure = error as? LogFailure {
      switch failure.kind {
      case .fenced: return .fenced(failure.reason)
      case .lost: return .lost(failure.reason)
      case .refused, .corrupt: return .refused(failure.reason)
      case .stale, .aborted, .indefinite, .unavailable: return nil
      }
    }
    if let failure = error as? StoreFailure {
      switch failure.kind {
      case .refused, .corrupt: return .refused(failure.reason)
      case .fenced, .conflict, .unavailable: return nil
      }
    }
    return error as? RunnerFailure
  }

  static func list(_ partitions: [TopicPartition]) -> String {
    partitions.sorted().map(\.description).joined(separator: " ")
  }

  /// Reads on where a parked record's time has come.
  private func wake(_ worker: any LogWorker) throws {
    guard !waiting.isEmpty else { return }
    let now = clock.now()
    for (partition, place) in waiting.sorted(by: { $0.key < $1.key }) where place.until <= now {
      waiting[partition] = nil
      try worker.start([partition: place.offset])
    }
  }
}
