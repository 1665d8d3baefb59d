import Glibc
import PurchasesRunner
import Synchronization

/// Purchases that are posted by a timetable, whether or not the ones before have been answered: a service that stands still
/// for a second has all that came in meanwhile to answer for. Who is late posts at once.
final class OpenLoop: Sendable {
  struct Times: Sendable {
    /// When it was to be posted.
    var due: Double
    /// When the 202 was there; nil where it was another answer.
    var accepted: Double?
    /// When its permit was there over HTTP; nil where nobody asked or it did not come.
    var permitted: Double?
  }

  let reports: [SyntheticPurchases.Report]
  private let times: Mutex<[Times]>
  private let next = Atomic(0)
  private let workers = Mutex<[Worker<Bool>]>([])

  /// As many may be on their way at a time: at 500 a second a second's worth, and who waits for a permit among them.
  private static let clients = 256

  /// - Parameters:
  ///   - perSecond: posted.
  ///   - begin: of the timetable, by `Gauge.now`.
  ///   - waits: whether each client waits for its permit over HTTP before it takes the next one.
  init(
    _ reports: [SyntheticPurchases.Report], perSecond: Double, begin: Double, waits: Bool, to service: LiveService
  ) {
    self.reports = reports
    times = Mutex(reports.indices.map { Times(due: begin + Double($0) / perSecond) })
    let http = Unshared(service)
    for client in 0..<Self.clients {
      let worker = Worker<Bool>(name: "client \(client)") { [self] in
        while true {
          let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
          guard index < reports.count else { return true }
          let due = times.withLock { $0[index].due }
          while case let left = due - Gauge.now, left > 0 { usleep(UInt32(min(left, 0.5) * 1e6)) }
          guard http.service.post(reports[index]) else { continue }
          let accepted = Gauge.now
          times.withLock { $0[index].accepted = accepted }
          guard waits, http.service.permit(reports[index]) else { continue }
          let permitted = Gauge.now
          times.withLock { $0[index].permitted = permitted }
        }
      }
      workers.withLock { $0.append(worker) }
    }
  }

  /// What clients share of the service is its HTTP client, which is made for many threads.
  private final class Unshared: @unchecked Sendable {
    let service: LiveService
    init(_ service: LiveService) { self.service = service }
  }

  /// Waits for the last client.
  func wait() -> [Times] {
    for worker in workers.withLock({ $0 }) { _ = worker.wait() }
    return times.withLock { $0 }
  }
}

/// Parts of a distribution, in milliseconds.
struct Percentiles {
  let count: Int
  let p50: Double
  let p95: Double
  let p99: Double
  let most: Double

  /// - Parameter seconds: in any order.
  init(_ seconds: [Double]) {
    let sorted = seconds.sorted()
    func part(_ share: Double) -> Double {
      sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))] * 1000
    }
    count = sorted.count
    (p50, p95, p99, most) = (part(0.5), part(0.95), part(0.99), part(1))
  }

  var text: String {
    "p50 \(Spread.text(p50, 0)), p95 \(Spread.text(p95, 0)), p99 \(Spread.text(p99, 0)), most \(Spread.text(most, 0)) ms"
  }
}
