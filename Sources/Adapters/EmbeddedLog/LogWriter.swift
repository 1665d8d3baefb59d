import Glibc
import PurchasesContracts
import PurchasesSQLite
import Synchronization

/// The one thread of a log handle that writes. It takes all work that has been handed in while the last transaction was
/// being synced and puts it into one new transaction, so that a disk's sync serves everybody who waits for it. Whoever
/// handed work in hears of it only after the commit.
///
/// Other processes write too; SQLite's write lock keeps transactions apart.
final class LogWriter: Sendable {
  /// Bounds of what may wait for the writer. A producer that is faster than the disk is told so instead of filling memory.
  static let maximumQueuedRecords = 100_000
  static let maximumQueuedBytes = 64 << 20
  /// Bounds of one transaction: enough to make the sync cheap per record, little enough that the first caller does not
  /// wait long for the last one's bytes.
  static let maximumTransactionRecords = 20_000
  static let maximumTransactionBytes = 32 << 20
  /// Size of the write-ahead log at which the writer waits for the readers so that it can begin anew. It begins anew by
  /// itself whenever no reader is in the middle of a read, so this is only reached under readers that overlap for long.
  static let maximumWriteAheadBytes = 256 << 20
  /// How long it then waits, in milliseconds; writing goes on in any case.
  static let checkpointPatience = 1_000

  struct Job: Sendable {
    var owner: UInt64 = 0
    var records: Int
    var bytes: Int
    let work: @Sendable (WriteTransaction) throws -> Void
    /// Called once, after the commit or the failure, on the writer's thread.
    let finish: @Sendable (LogFailure?) -> Void
  }

  private struct Queue {
    var jobs: [Job] = []
    var records = 0
    var bytes = 0
    var isClosing = false
  }

  private let queue = Monitor(Queue())
  private let thread: WorkThread
  private let joined = Mutex(false)

  init(connection: SQLiteConnection, signal: Monitor<UInt64>) throws(LogFailure) {
    let queue = queue
    let loop = Loop(connection: connection, signal: signal)
    guard let thread = WorkThread({ loop.run { Self.take(from: queue) } }) else {
      throw LogFailure(.unavailable, "the system has no thread to give")
    }
    self.thread = thread
  }

  /// Hands a job in without waiting. Bounded work (publishes) is refused while the queue is full; work that somebody waits
  /// for is bounded by the number of those who wait.
  func submit(_ job: Job, bounded: Bool) -> LogFailure? {
    queue.update { queue in
      if queue.isClosing { return LogFailure(.unavailable, "the log is closed") }
      if bounded, !queue.jobs.isEmpty,
        queue.records + job.records > Self.maximumQueuedRecords || queue.bytes + job.bytes > Self.maximumQueuedBytes
      {
        return LogFailure(.unavailable, "the log's queue is full")
      }
      queue.jobs.append(job)
      queue.records += job.records
      queue.bytes += job.bytes
      return nil
    }
  }

  /// Runs work in a transaction and waits until it is on the disk.
  func perform<T: Sendable>(
    records: Int = 0, bytes: Int = 0, _ work: @escaping @Sendable (WriteTransaction) throws -> T
  ) throws(LogFailure) -> T {
    let outcome = Monitor<(value: T?, result: Result<Void, LogFailure>?)>((nil, nil))
    let job = Job(
      records: records, bytes: bytes,
      work: { transaction in
        let value = try work(transaction)
        outcome.read { $0.value = value }
      },
      finish: { failure in outcome.update { $0.result = failure.map { .failure($0) } ?? .success(()) } })
    if let failure = submit(job, bounded: false) { throw failure }
    let (value, result) = outcome.wait { state in state.result.map { (state.value, $0) } } ?? (nil, .success(()))
    try result.get()
    guard let value else { throw LogFailure(.unavailable, "the work was dropped") }
    return value
  }

  /// Takes an owner's jobs back out of the queue and fails them; those the writer has begun go on.
  func giveUp(owner: UInt64) {
    let dropped = queue.update { queue in
      let dropped = queue.jobs.filter { $0.owner == owner }
      queue.jobs.removeAll { $0.owner == owner }
      for job in dropped {
        queue.records -= job.records
        queue.bytes -= job.bytes
      }
      return dropped
    }
    for job in dropped { job.finish(LogFailure(.unavailable, "the producer was closed before the record was written")) }
  }

  /// Finishes what has been handed in and ends the thread.
  func close() {
    queue.update { $0.isClosing = true }
    let first = joined.withLock { joined in
      defer { joined = true }
      return !joined
    }
    guard first else { return }
    // Called from a completion, the thread can't wait for itself; it ends once the completion has returned.
    if thread.isCurrent { thread.detach() } else { thread.join() }
  }

  private static func take(from queue: Monitor<Queue>) -> [Job]? {
    queue.wait { queue -> [Job]?? in
      if queue.jobs.isEmpty { return queue.isClosing ? .some(nil) : nil }
      var count = 0
      var records = 0
      var bytes = 0
      for job in queue.jobs {
        if count > 0, records + job.records > maximumTransactionRecords || bytes + job.bytes > maximumTransactionBytes {
          break
        }
        count += 1
        records += job.records
        bytes += job.bytes
      }
      let taken = Array(queue.jobs.prefix(count))
      queue.jobs.removeFirst(count)
      queue.records -= records
      queue.bytes -= bytes
      return taken
    } ?? nil
  }
}

extension LogWriter {
  /// What runs on the thread.
  ///
  /// `@unchecked Sendable`: made on one thread, handed to the writer's, and used only there.
  private final class Loop: @unchecked Sendable {
    private let transaction: WriteTransaction
    private let signal: Monitor<UInt64>

    init(connection: SQLiteConnection, signal: Monitor<UInt64>) {
      transaction = WriteTransaction(connection: connection)
      self.signal = signal
    }

    func run(_ take: () -> [Job]?) {
      while let jobs = take() { run(jobs) }
      transaction.connection.close()
    }

    private func run(_ jobs: [Job]) {
      var failures = [LogFailure?](repeating: nil, count: jobs.count)
      var committing = false
      do {
        try transaction.connection.requireInPlace()
        try transaction.connection.transaction(.immediate) {
          transaction.begin()
          for (index, job) in jobs.enumerated() {
            let before = transaction.writes
            do {
              try job.work(transaction)
            } catch let failure as LogFailure {
              precondition(transaction.writes == before, "work refused itself after it had written")
              failures[index] = failure
            }
          }
          try transaction.finish()
          committing = true
        }
        // Gone in the middle of it: what was written then, nobody will find, and nobody may be told that it is there.
        try transaction.connection.requireInPlace()
      } catch {
        transaction.rolledBack()
        let failure =
          (error as? SQLiteError).map { LogFailure($0, committing: committing) } ?? LogFailure(sorting: error)
        // One piece of work may be what the others failed by (a record that the disk has no room for); each gets its own
        // try, unless it can't be told what became of them.
        if jobs.count > 1, failure.kind != .indefinite, failure.kind != .corrupt {
          for job in jobs { run([job]) }
          return
        }
        for job in jobs { job.finish(failure) }
        return
      }
      if transaction.writes > 0 { signal.update { $0 &+= 1 } }
      for (index, job) in jobs.enumerated() { job.finish(failures[index]) }
      boundWriteAheadLog()
    }

    private func boundWriteAheadLog() {
      let connection = transaction.connection
      var status = stat()
      guard stat(connection.path + "-wal", &status) == 0, status.st_size > LogWriter.maximumWriteAheadBytes else {
        return
      }
      // Not being able to is no failure of any work: the next transaction tries again.
      try? connection.execute("PRAGMA busy_timeout=\(LogWriter.checkpointPatience)")
      _ = try? connection.checkpoint(.truncate)
      try? connection.execute("PRAGMA busy_timeout=\(EmbeddedLog.busyTimeout)")
    }
  }
}
