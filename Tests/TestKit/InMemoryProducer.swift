import Dispatch
import PurchasesContracts
import Synchronization

/// A log's producing end in memory, with the faults that a real one has. Reports come from another thread, as a log's do.
public final class InMemoryProducer: LogProducer {
  public enum Mode: Sendable {
    case accepting
    /// Each record fails for this reason and is not kept.
    case failing(LogFailure)
    /// Records are taken and nothing is reported until the mode changes.
    case holding
  }

  private struct State {
    var mode = Mode.accepting
    var records: [ProducedRecord] = []
    var held: [([ProducedRecord], @Sendable ([Result<Coordinates, LogFailure>]) -> Void)] = []
  }

  private let state = Mutex(State())
  private let reports = DispatchQueue(label: "in-memory producer")
  private let arrivals = DispatchSemaphore(value: 0)

  public init() {}

  /// What became durable, in order.
  public var records: [ProducedRecord] { state.withLock { $0.records } }

  /// Changes the mode; what was held is then treated by the new one.
  public func set(_ mode: Mode) {
    let held = state.withLock { state in
      state.mode = mode
      if case .holding = mode {
        return [] as [([ProducedRecord], @Sendable ([Result<Coordinates, LogFailure>]) -> Void)]
      }
      defer { state.held = [] }
      return state.held
    }
    for (records, done) in held { publish(records, done: done) }
  }

  /// Waits until a batch has been handed over.
  public func awaitBatch() {
    arrivals.wait()
  }

  public func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void
  ) {
    let results: [Result<Coordinates, LogFailure>]? = state.withLock { state in
      switch state.mode {
      case .accepting:
        let first = state.records.count
        state.records += records
        return records.enumerated().map {
          .success(Coordinates(topic: $1.topic, partition: $1.partition ?? 0, offset: Int64(first + $0)))
        }
      case .failing(let failure): return records.map { _ in .failure(failure) }
      case .holding:
        state.held.append((records, done))
        return nil
      }
    }
    arrivals.signal()
    if let results { reports.async { done(results) } }
  }

  public func close(withinMilliseconds: Int64) -> Int {
    let open = state.withLock { state in
      defer { state.held = [] }
      return state.held.reduce(0) { $0 + $1.0.count }
    }
    reports.sync {}
    return open
  }
}
