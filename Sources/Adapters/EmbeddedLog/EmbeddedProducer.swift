import PurchasesContracts
import Synchronization

/// Publishes through the log's writer. Records handed over together are written together, each refused on its own.
final class EmbeddedProducer: LogProducer {
  private struct Open {
    var records = 0
    var isClosed = false
  }

  private static let lastOwner = Atomic<UInt64>(0)

  private let log: EmbeddedLog
  private let owner: UInt64
  private let open = Monitor(Open())

  init(log: EmbeddedLog) {
    self.log = log
    owner = Self.lastOwner.add(1, ordering: .relaxed).newValue
  }

  func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void
  ) {
    let isClosed = open.update { open in
      if !open.isClosed { open.records += records.count }
      return open.isClosed
    }
    if isClosed {
      done(records.map { _ in .failure(LogFailure(.unavailable, "the producer is closed")) })
      return
    }
    let box = ResultBox()
    let open = open
    let finish: @Sendable (LogFailure?) -> Void = { failure in
      let outcome = failure.map { failure in records.map { _ in .failure(failure) } } ?? box.take()
      done(outcome)
      open.update { $0.records -= records.count }
    }
    let job = LogWriter.Job(
      owner: owner, records: records.count, bytes: records.reduce(0) { $0 + RecordRow.size($1.record) },
      work: { transaction in
        var placed: [Result<WriteTransaction.Placed, LogFailure>] = []
        placed.reserveCapacity(records.count)
        for record in records {
          do {
            placed.append(.success(try transaction.place(record)))
          } catch let failure as LogFailure {
            placed.append(.failure(failure))
          }
        }
        var outcome: [Result<Coordinates, LogFailure>] = []
        outcome.reserveCapacity(records.count)
        for item in placed {
          switch item {
          case .success(let record): outcome.append(.success(try transaction.append(record)))
          case .failure(let failure): outcome.append(.failure(failure))
          }
        }
        box.put(outcome)
      }, finish: finish)
    if let failure = log.writer.submit(job, bounded: true) { finish(failure) }
  }

  func close(withinMilliseconds limit: Int64) -> Int {
    open.update { $0.isClosed = true }
    let deadline = MonotonicTime.now.advanced(byMilliseconds: limit)
    if open.wait(until: deadline, { $0.records == 0 ? true : nil }) == true { return 0 }
    let left = open.read { $0.records }
    log.writer.giveUp(owner: owner)
    return left
  }
}

/// Carries the results from the work to its completion.
private final class ResultBox: Sendable {
  private let results = Mutex<[Result<Coordinates, LogFailure>]>([])
  func put(_ value: [Result<Coordinates, LogFailure>]) { results.withLock { $0 = value } }
  func take() -> [Result<Coordinates, LogFailure>] { results.withLock { $0 } }
}
