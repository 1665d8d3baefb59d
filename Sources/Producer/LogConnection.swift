import Dispatch
import PurchasesContracts

/// The log and its producer, opened when first needed. Everything that may block happens on one queue of its own.
///
/// `@unchecked Sendable`: `state` is touched on the queue only.
final class LogConnection: @unchecked Sendable {
  private enum State {
    case unopened
    case open(any EventLog, any LogProducer)
    case closed
  }

  private let address: LogAddress
  private let settings: [String: String]
  private let queue = DispatchQueue(label: "purchases.producer")
  private var state = State.unopened

  init(_ address: LogAddress, _ settings: [String: String]) {
    self.address = address
    self.settings = settings
  }

  /// Calls `body` on the queue with the producer. A log that could not be opened is tried again by the next call.
  func withProducer(_ body: @escaping @Sendable (Result<any LogProducer, ProducerError>) -> Void) {
    queue.async { body(self.producer()) }
  }

  private func producer() -> Result<any LogProducer, ProducerError> {
    switch state {
    case .open(_, let producer): return .success(producer)
    case .closed: return .failure(.closed)
    case .unopened:
      do {
        return .success(try open())
      } catch {
        return .failure(ProducerError(error))
      }
    }
  }

  private func open() throws(LogFailure) -> any LogProducer {
    let log = try address.open(settings)
    do {
      let producer = try log.producer()
      state = .open(log, producer)
      return producer
    } catch {
      log.close()
      throw error
    }
  }

  func close(within seconds: Double, _ done: @escaping @Sendable (Int) -> Void) {
    queue.async {
      var left = 0
      if case .open(let log, let producer) = self.state {
        left = producer.close(withinMilliseconds: Int64((max(0, seconds) * 1000).rounded(.up)))
        log.close()
      }
      self.state = .closed
      done(left)
    }
  }
}
