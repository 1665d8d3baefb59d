import Glibc

/// How the client waits. A test hands in one that turns its clock.
public typealias Pause = @Sendable (_ milliseconds: Int64) -> Void

public enum Pauses {
  /// Sleeps on the calling thread, which must be one of the caller's own.
  public static let sleeping: Pause = { milliseconds in
    guard milliseconds > 0 else { return }
    var left = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
    var rest = timespec()
    while nanosleep(&left, &rest) != 0, errno == EINTR { left = rest }
  }

  /// Before the second try of a call.
  static let first: Int64 = 250

  /// The pause before try number `attempt` + 1, each twice the one before.
  static func growing(after attempt: Int) -> Int64 { first << Int64(min(max(attempt - 1, 0), 10)) }
}
