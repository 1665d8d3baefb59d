import PurchasesContracts
import PurchasesCore
import Synchronization

/// A clock that stands until it is turned.
public final class ManualClock: Clock, Sendable {
  private let instant: Mutex<Instant>

  public init(_ instant: Instant = Instant(milliseconds: 1_764_460_800_000)) { self.instant = Mutex(instant) }

  public func now() -> Instant { instant.withLock { $0 } }
  public func set(_ instant: Instant) { self.instant.withLock { $0 = instant } }
  public func advance(milliseconds: Int64) { instant.withLock { $0 = $0.advanced(byMilliseconds: milliseconds) } }
}
