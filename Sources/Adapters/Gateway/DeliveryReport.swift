import Dispatch
import PurchasesContracts
import Synchronization

/// Waits on one request's thread for what the log's thread reports.
final class DeliveryReport: Sendable {
  private let results = Mutex<[Result<Coordinates, LogFailure>]?>(nil)
  private let arrived = DispatchSemaphore(value: 0)

  /// Publishes and waits; nil when no report came in time. The records may become durable later all the same: the sender
  /// tries again, and the same content has the same id.
  static func publish(
    _ records: [ProducedRecord], on producer: any LogProducer, seconds: Double
  ) -> [Result<Coordinates, LogFailure>]? {
    let report = DeliveryReport()
    producer.publish(records) { results in
      report.results.withLock { $0 = results }
      report.arrived.signal()
    }
    guard report.arrived.wait(timeout: .now() + seconds) == .success else { return nil }
    return report.results.withLock { $0 }
  }
}
