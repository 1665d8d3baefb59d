import PurchasesContracts
import PurchasesCore
import PurchasesRunner
import Synchronization

/// How many purchases wait for an owner, and how long the oldest has waited: measured by the process that runs the stage
/// ownership, since escrow is that stage's.
final class EscrowGauges: Sendable {
  private let reader: any StoreReader
  private let clock: any Clock
  private let kept = Mutex<Kept?>(nil)

  private struct Kept {
    var askedAt: ContinuousClock.Instant
    var chains: Int64
    var oldest: Instant?
  }

  /// Counting walks an index as long as the escrow: scrapes that come more often than this get the last answer.
  private static let keptSeconds = 15

  init(_ reader: any StoreReader, clock: any Clock) {
    self.reader = reader
    self.clock = clock
  }

  /// A store that can't be reached shows in `/readyz`; the gauges then stay as they are.
  func measure(into metrics: Metrics) {
    guard let state = state() else { return }
    metrics.set("purchases_escrow_chains", "Purchases that wait for an owner", to: Double(state.chains))
    let age = state.oldest.map { max(0, clock.now().milliseconds - $0.milliseconds) } ?? 0
    metrics.set(
      "purchases_escrow_oldest_seconds", "How long the oldest purchase without an owner has waited; 0 where none does",
      to: Double(age) / 1000)
  }

  private func state() -> Kept? {
    let now = ContinuousClock.now
    if let kept = kept.withLock({ $0 }), kept.askedAt.duration(to: now) < .seconds(Self.keptSeconds) { return kept }
    guard let chains = try? reader.count(.chain, whereSet: "unowned_since"),
      let oldest = try? reader.rows(.chain, where: "unowned_since", atMost: .max, limit: 1)
    else { return nil }
    let state = Kept(
      askedAt: now, chains: chains,
      oldest: oldest.first?["unowned_since"].integer.map { Instant(milliseconds: $0) })
    kept.withLock { $0 = state }
    return state
  }

  func close() { reader.close() }
}
