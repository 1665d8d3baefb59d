import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesRunner
import Synchronization

/// Puts payment-queue events from NDJSON lines on the log: what `purchases publish` does.
public struct Publication: Sendable {
  public struct Refusal: Sendable, Hashable {
    public let line: Int
    public let field: String
    public let reason: String
  }

  public struct Outcome: Sendable {
    public var accepted = 0
    /// Lines that say the same as another line of this input: the same report, and so the same id.
    public var duplicates: [(line: Int, sameAs: Int)] = []
    public var refused: [Refusal] = []
    /// Set when the log failed: lines from this one on may not be on the log and must be published again.
    public var failure: (line: Int, reason: LogFailure)?
    /// Lines that are not on the log because it failed; those after the failure that were not looked at any more, too.
    public var notOnLog = 0
  }

  /// Lines that are handed over at once: enough to fill a producer's batches, little enough to hold in memory.
  static let window = 500

  private let producer: any LogProducer
  private let topics: TopicSettings
  private let clock: any Clock

  public init(producer: any LogProducer, topics: TopicSettings, clock: any Clock) {
    self.producer = producer
    self.topics = topics
    self.clock = clock
  }

  /// Publishes all lines of the input. Empty lines are passed over. Every accepted line is durable when this returns.
  public func publish(_ input: [UInt8], source: String = "/purchases/publish") -> Outcome {
    var outcome = Outcome()
    // The id of a report with a proof is the proof's. Two accounts may report one proof, and a report with a mistake in it may
    // be followed by one without: each is a report of its own.
    var firstLines: [[UInt8]: Int] = [:]
    var window: [(line: Int, record: ProducedRecord)] = []
    var lost: Set<Int> = []
    var number = 0
    for bytes in input.split(separator: 0x0a, omittingEmptySubsequences: false) {
      number += 1
      let line = bytes.last == 0x0d ? bytes.dropLast() : bytes
      guard line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { continue }
      guard outcome.failure == nil else {
        outcome.notOnLog += 1
        continue
      }
      do throws(FieldFailure) {
        let received = try ReceivedRecord(line: Array(line))
        let said = SHA256.digest(Array((received.event.type.rawValue + "\n").utf8) + received.event.data).bytes
        if let first = firstLines[said] {
          outcome.duplicates.append((number, first))
          continue
        }
        firstLines[said] = number
        window.append((number, received.produced(to: topics, source: source, at: clock.now())))
      } catch {
        outcome.refused.append(Refusal(line: number, field: error.field, reason: error.reason))
      }
      if window.count == Self.window { send(&window, &outcome, &lost) }
    }
    send(&window, &outcome, &lost)
    // A line that repeats one that is not on the log isn't there either.
    let all = outcome.duplicates.count
    outcome.duplicates.removeAll { lost.contains($0.sameAs) }
    outcome.notOnLog += all - outcome.duplicates.count
    return outcome
  }

  /// - Parameter lost: gets the lines that are not on the log because it failed.
  private func send(
    _ window: inout [(line: Int, record: ProducedRecord)], _ outcome: inout Outcome, _ lost: inout Set<Int>
  ) {
    guard !window.isEmpty else { return }
    for (index, result) in producer.publishAndWait(window.map(\.record)).enumerated() {
      switch result {
      case .success: outcome.accepted += 1
      case .failure(let failure) where failure.kind == .refused:
        outcome.refused.append(Refusal(line: window[index].line, field: "event", reason: failure.reason))
      case .failure(let failure):
        lost.insert(window[index].line)
        outcome.notOnLog += 1
        if outcome.failure == nil { outcome.failure = (window[index].line, failure) }
      }
    }
    window.removeAll(keepingCapacity: true)
  }
}

extension LogProducer {
  /// Publishes and waits until every record is durable or has failed. Blocks the calling thread.
  public func publishAndWait(_ records: [ProducedRecord]) -> [Result<Coordinates, LogFailure>] {
    let done = StopSignal()
    let results = Mutex<[Result<Coordinates, LogFailure>]>([])
    publish(records) { outcome in
      results.withLock { $0 = outcome }
      done.set()
    }
    done.wait()
    return results.withLock { $0 }
  }
}
