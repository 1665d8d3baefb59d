import Glibc
import PurchasesContracts
import PurchasesCore

/// The machine's clock, for live deployments.
public struct SystemClock: Clock {
  public init() {}

  public func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Instant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }
}

/// Measures how long something took; never goes back and is no date.
public struct Stopwatch: Sendable {
  private let begin: Int64

  public init() { begin = Self.nanoseconds() }

  public var milliseconds: Int64 { (Self.nanoseconds() - begin) / 1_000_000 }
  public var seconds: Double { Double(Self.nanoseconds() - begin) / 1e9 }

  private static func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
