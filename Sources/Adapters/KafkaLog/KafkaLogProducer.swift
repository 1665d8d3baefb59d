import PurchasesContracts
import PurchasesKafka
import Synchronization

/// Publishes outside transactions. Safe to share between threads.
final class KafkaLogProducer: LogProducer {
  private let settings: KafkaSettings
  private let sink: KafkaLogSink
  private let current: Mutex<KafkaProducer?>

  private static let defaults = [
    // Half a minute without the cluster and the caller is told: it answers 503, and its own caller comes again.
    "message.timeout.ms": "30000",
    // A wait for company that a lone record hardly feels. Each batch costs the broker, and every consumer of the topic, a
    // request: at hundreds of events a second, most of which come alone, these are what the door costs.
    "linger.ms": "5",
    // How long a topic that nobody knows may still turn out to be a new one.
    "topic.metadata.propagation.max.ms": "3000",
  ]

  init(settings: KafkaSettings, sink: @escaping KafkaLogSink) throws(LogFailure) {
    self.settings = settings.withDefaults(KafkaLogProducer.defaults)
    self.sink = sink
    do throws(KafkaError) {
      current = Mutex(try KafkaProducer(settings: self.settings, log: sink))
    } catch {
      throw LogFailure(error)
    }
  }

  /// The producer, or a new one when a fatal error has made the old one unusable; nil when closed.
  private func producer() throws(LogFailure) -> KafkaProducer? {
    let (producer, worn) = current.withLock { current in (current, current?.fatalError != nil) }
    guard let producer, worn else { return producer }
    let fresh: KafkaProducer
    do throws(KafkaError) {
      fresh = try KafkaProducer(settings: settings, log: sink)
    } catch {
      throw LogFailure(error)
    }
    return current.withLock { current in
      // Another thread may have been first, or have closed us.
      if current === producer { current = fresh }
      return current
    }
  }

  func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void
  ) {
    guard !records.isEmpty else { return done([]) }
    let tally = Tally(count: records.count, done: done)
    var producer: KafkaProducer?
    var failure: LogFailure?
    do throws(LogFailure) {
      producer = try self.producer()
      if producer == nil { failure = LogFailure(.unavailable, "the producer is closed") }
    } catch {
      failure = error
    }
    for (index, record) in records.enumerated() {
      // After one that was not taken the rest is not tried: it would overtake.
      if failure == nil, let producer {
        do throws(LogFailure) {
          try KafkaLogProducer.check(record)
          do throws(KafkaError) {
            try producer.send(OutgoingRecord(record)) { report in
              let result = report.map {
                Coordinates(topic: $0.partition.topic, partition: $0.partition.partition, offset: $0.offset)
              }.mapError { LogFailure($0) }
              tally.report(index, result)?()
            }
            continue
          } catch {
            throw LogFailure(error)
          }
        } catch {
          failure = error
        }
      }
      guard let failure, let finish = tally.report(index, .failure(failure)) else { continue }
      // The callback is promised from a thread of ours; a closed producer has none left.
      if let producer, producer.onReportThread(finish) { continue }
      finish()
    }
  }

  /// What Kafka cannot hold: its time-stamps count from 1970, and librdkafka takes a zero for "now".
  static func check(_ record: ProducedRecord) throws(LogFailure) {
    guard record.record.timestamp.milliseconds > 0 else {
      throw LogFailure(.refused, "a record for \(record.topic) carries a time before 1970, which Kafka cannot hold")
    }
  }

  func close(withinMilliseconds: Int64) -> Int {
    let producer = current.withLock { current in
      defer { current = nil }
      return current
    }
    return producer?.close(milliseconds: Int32(clamping: max(0, withinMilliseconds))) ?? 0
  }

  /// Gathers the results of one call.
  private final class Tally: Sendable {
    private struct State {
      var left: Int
      var results: [Result<Coordinates, LogFailure>?]
    }
    private let state: Mutex<State>
    private let done: @Sendable ([Result<Coordinates, LogFailure>]) -> Void

    init(count: Int, done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void) {
      state = Mutex(State(left: count, results: Array(repeating: nil, count: count)))
      self.done = done
    }

    /// What is to be called now: nothing while some are open.
    func report(_ index: Int, _ result: Result<Coordinates, LogFailure>) -> (@Sendable () -> Void)? {
      let finished = state.withLock { state -> [Result<Coordinates, LogFailure>]? in
        state.results[index] = result
        state.left -= 1
        return state.left == 0 ? state.results.compactMap { $0 } : nil
      }
      guard let finished else { return nil }
      return { [done] in done(finished) }
    }
  }
}
