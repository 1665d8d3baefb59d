import Dispatch
import PurchasesContracts
import PurchasesCore
import Synchronization

/// What publishes to a stage's input, as a gateway does: a batch at a time, none of it ever again.
struct Door {
  static let batch = 50
  let producer: any LogProducer
  let topic: String
  let partitions: Int32

  struct Outcome: Sendable {
    var accepted: [[UInt8]] = []
    var givenUp = 0
  }

  /// Hands fifty records over, spread over the partitions, and waits for what became of each.
  func publish(batch number: Int) -> Outcome {
    let values = (0..<Self.batch).map { Array("\(number)/\($0)".utf8) }
    let outcome = Mutex(Outcome())
    let done = DispatchSemaphore(value: 0)
    producer.publish(
      values.enumerated().map { index, value in
        ProducedRecord(
          topic: topic, partition: Int32(index) % partitions,
          record: Record(key: nil, value: value, timestamp: Instant(milliseconds: 1)))
      }
    ) { results in
      outcome.withLock { outcome in
        for (value, result) in zip(values, results) {
          if (try? result.get()) != nil { outcome.accepted.append(value) } else { outcome.givenUp += 1 }
        }
      }
      done.signal()
    }
    done.wait()
    return outcome.withLock { $0 }
  }
}
