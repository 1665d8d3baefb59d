import PurchasesContracts
import PurchasesCore
import Synchronization

/// The time of a played day. Whoever takes part reads it; only the player moves it, and only forward.
public final class ScenarioClock: Clock {
  private let instant: Mutex<Instant>

  public init(_ start: Instant) { instant = Mutex(start) }

  public func now() -> Instant { instant.withLock { $0 } }

  /// Does nothing where the clock is there or beyond already.
  public func advance(to later: Instant) { instant.withLock { $0 = max($0, later) } }
}
