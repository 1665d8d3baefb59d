import Dispatch
import PurchasesContracts
import PurchasesKafka
import Synchronization

/// One transaction, from its begin to its commit, on a thread beside its worker's. It only runs the steps: what a failed
/// one means for the worker, the worker decides.
final class KafkaTransaction: Sendable {
  enum Outcome {
    case committed
    case notBegun(KafkaError)
    /// Nothing was committed, and the transaction is open still.
    case notFilled(KafkaError)
    /// The same, though a commit was asked for: a record could not be stored.
    case refused(KafkaError)
    /// It may have been committed.
    case unknown(KafkaError)
  }

  let producer: KafkaProducer
  /// Milliseconds of the clock that never jumps.
  let began = KafkaClock.milliseconds()
  private let records: [ProducedRecord]
  private let offsets: [KafkaPartition: Int64]
  private let member: GroupMembership
  private let milliseconds: Int64
  private let outcome = Mutex<Outcome?>(nil)
  private let done = DispatchSemaphore(value: 0)

  init(
    _ producer: KafkaProducer, _ records: [ProducedRecord], offsets: [TopicPartition: Int64], member: GroupMembership,
    milliseconds: Int64
  ) {
    self.producer = producer
    self.records = records
    self.offsets = Dictionary(offsets.map { (KafkaPartition($0.key), $0.value) }, uniquingKeysWith: { a, _ in a })
    self.member = member
    self.milliseconds = milliseconds
  }

  func run() {
    let outcome = steps()
    self.outcome.withLock { $0 = outcome }
    done.signal()
  }

  /// Called once.
  func wait() -> Outcome {
    done.wait()
    guard let outcome = outcome.withLock({ $0 }) else { preconditionFailure("a transaction ends with an outcome") }
    return outcome
  }

  private func steps() -> Outcome {
    do throws(KafkaError) { try producer.beginTransaction() } catch { return .notBegun(error) }
    do throws(KafkaError) { try fill() } catch { return .notFilled(error) }
    do throws(KafkaError) {
      // librdkafka's -1 waits for as long as no broker answers, and with it the process.
      try producer.commitTransaction(milliseconds: left)
    } catch {
      // When its time is over, librdkafka calls a commit that was sent a transaction to abort, too.
      return error.severity == .abortable && error.code != .timedOut ? .refused(error) : .unknown(error)
    }
    return .committed
  }

  private func fill() throws(KafkaError) {
    for record in records { try producer.send(OutgoingRecord(record), whenFull: .wait) }
    // Offsets that are sent while records are under way wait for them in a slow way: 50 ms where this takes 17.
    if !records.isEmpty { try producer.flush(milliseconds: left) }
    if let failure = producer.takeFirstFailure() { throw failure }
    guard !offsets.isEmpty else { return }
    while true {
      do throws(KafkaError) {
        return try producer.sendOffsets(offsets, membership: member, milliseconds: left)
      } catch {
        guard error.severity == .retriable, left > 1 else { throw error }
      }
    }
  }

  /// What is left of the transaction's time, at least a moment.
  private var left: Int32 { Int32(clamping: max(1, milliseconds - (KafkaClock.milliseconds() - began))) }
}
