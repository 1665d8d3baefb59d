import PurchasesContracts
import Synchronization

/// What a stage's loop says of itself, for `/livez`, `/readyz` and people.
public final class StageHealth: Sendable {
  public enum State: Sendable, Hashable {
    case starting
    case working
    /// Trying again after a failure that can heal.
    case retrying(String)
    case stopped
    case failed(RunnerFailure)
  }

  private struct Inner {
    var state = State.starting
    var hasRecovered = false
    var lastTurn = Stopwatch()
  }

  /// A loop that has not come round for so long hangs: longer than any batch, store time-out or session takes.
  public static let hangMilliseconds: Int64 = 60_000

  private let inner = Mutex(Inner())

  public init() {}

  public var state: State { inner.withLock { $0.state } }

  func turn() { inner.withLock { $0.lastTurn = Stopwatch() } }

  func set(_ state: State) {
    inner.withLock {
      $0.state = state
      $0.lastTurn = Stopwatch()
    }
  }

  /// Whether the loop has been given partitions (or none) and has compared log and store: before that, being idle says nothing.
  public var hasRecovered: Bool { inner.withLock { $0.hasRecovered } }

  func recovered() { inner.withLock { $0.hasRecovered = true } }

  /// The loop comes round, or has ended as it was told to.
  public var isLive: Bool {
    inner.withLock { inner in
      if case .failed = inner.state { return false }
      return inner.state == .stopped || inner.lastTurn.milliseconds < Self.hangMilliseconds
    }
  }

  /// The stage does its work now.
  public var isReady: Bool { state == .working }
}
