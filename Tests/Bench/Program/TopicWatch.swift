import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesKafkaLog
import PurchasesRunner
import Synchronization

/// Notes when events of the topic `entitlements` can be read, as a consumer with `read_committed` sees them.
final class TopicWatch: Sendable {
  private struct Seen {
    var permits: [String: Double] = [:]
    var expiries: [Double] = []
  }

  private let seen = Mutex(Seen())
  private let isOver = Atomic(false)
  private let worker = Mutex<Worker<LogFailure?>?>(nil)

  init(_ service: LiveService) {
    let (log, topics) = (service.log, service.topics)
    let worker = Worker<LogFailure?>(name: "watch") { [self] in
      do throws(LogFailure) {
        try follow(topics.name(.entitlements), log)
        return nil
      } catch { return error }
    }
    self.worker.withLock { $0 = worker }
  }

  /// A member of a group of its own that commits nothing.
  private func follow(_ topic: String, _ log: KafkaLog) throws(LogFailure) {
    let member = try log.worker(WorkerSettings(group: topic + ".watch", topics: [topic], instance: "watch"))
    defer { member.close() }
    while !isOver.load(ordering: .relaxed) {
      switch try member.poll(max: 4096, waitMilliseconds: 50) {
      case .assigned(let partitions):
        try member.start(Dictionary(uniqueKeysWithValues: partitions.map { ($0, 0) }))
      case .records(let records, _):
        let now = Gauge.now
        for stored in records { note(stored.record, now) }
      case .revoked(let partitions, _): try member.release(partitions)
      case .idle: break
      }
    }
  }

  private func note(_ record: Record, _ now: Double) {
    switch record.headerText("ce_type") {
    case EventType.entitlementExpired.wireName: seen.withLock { $0.expiries.append(now) }
    case EventType.paymentFinishable.wireName:
      guard let value = record.value, let document = try? JSONDocument(parsing: value),
        let proof = document.root["proof"]?.string
      else { return }
      seen.withLock { $0.permits[proof] = now }
    default: break
    }
  }

  func permit(_ proof: String) -> Double? { seen.withLock { $0.permits[proof] } }
  var permits: Int { seen.withLock { $0.permits.count } }
  var expiries: [Double] { seen.withLock { $0.expiries } }

  /// Ends it.
  func close() throws {
    isOver.store(true, ordering: .relaxed)
    if let failure = worker.withLock({ $0 })?.wait() { throw failure }
  }
}
