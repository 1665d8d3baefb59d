import PurchasesCore
import Synchronization

/// Keeps callers away from a server that fails, for growing pauses, and lets one call at a time find out whether it is well
/// again. So an outage costs each caller nothing but the news of it, and Apple one call per pause.
public final class CircuitBreaker: Sendable {
  public struct Settings: Sendable, Hashable {
    /// Failures in a row after which nobody calls for a while.
    public var failures: Int
    /// The first pause and the longest one, in milliseconds; each is twice the one before.
    public var firstPause: Int64
    public var longestPause: Int64

    /// A lost packet or a restarted front end fails a call or two; five in a row are an outage.
    public static let defaultFailures = 5
    public static let defaultFirstPause: Int64 = 1_000
    /// After five minutes of silence one more call in five minutes is no load, and recovery is noticed soon enough.
    public static let defaultLongestPause: Int64 = 300_000

    public init(
      failures: Int = Self.defaultFailures, firstPause: Int64 = Self.defaultFirstPause,
      longestPause: Int64 = Self.defaultLongestPause
    ) {
      precondition(failures > 0 && firstPause > 0 && longestPause >= firstPause, "a circuit breaker without a pause")
      self.failures = failures
      self.firstPause = firstPause
      self.longestPause = longestPause
    }
  }

  /// Says to which state of the breaker a call belongs, so that calls which were on their way when it opened don't count.
  struct Ticket: Sendable, Hashable {
    fileprivate let generation: Int
  }

  enum Admission: Sendable, Hashable {
    case go(Ticket)
    case wait(until: Instant)
  }

  private struct State {
    var failures = 0
    /// The pause that is under way, or was last.
    var pause: Int64?
    var until = Instant.distantPast
    var generation = 0
  }

  private let settings: Settings
  private let state = Mutex(State())

  public init(_ settings: Settings = Settings()) { self.settings = settings }

  /// Until when nobody calls, as far as is known; nil while all is well.
  public func pausedUntil(_ now: Instant) -> Instant? {
    state.withLock { $0.pause != nil && now < $0.until ? $0.until : nil }
  }

  func admit(_ now: Instant) -> Admission {
    state.withLock { state in
      guard let pause = state.pause else { return .go(Ticket(generation: state.generation)) }
      // A clock that was set back must not make the pause any longer.
      state.until = min(state.until, now.advanced(byMilliseconds: pause))
      guard now >= state.until else { return .wait(until: state.until) }
      // This one call finds out; the others wait for what it finds.
      state.until = now.advanced(byMilliseconds: pause)
      return .go(Ticket(generation: state.generation))
    }
  }

  func succeeded() {
    state.withLock { state in
      state.failures = 0
      state.pause = nil
    }
  }

  /// - Returns: whether this failure opened the breaker or kept it open.
  @discardableResult
  func failed(_ ticket: Ticket, _ now: Instant) -> Bool {
    state.withLock { state in
      guard ticket.generation == state.generation else { return false }
      state.failures += 1
      guard state.pause != nil || state.failures >= settings.failures else { return false }
      let pause = state.pause.map { min($0 * 2, settings.longestPause) } ?? settings.firstPause
      state.pause = pause
      state.until = now.advanced(byMilliseconds: pause)
      state.generation += 1
      return true
    }
  }
}
