import PurchasesCore

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z, as Apple and Kafka count it.
public struct WireTime: Sendable, Hashable {
  public var milliseconds: Int64

  public init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  /// `Date().timeIntervalSince1970` of Foundation, for one. Parts of a millisecond are dropped.
  public init(secondsSince1970 seconds: Double) {
    precondition(seconds.isFinite && abs(seconds) < 1e12, "a time in seconds since 1970")
    milliseconds = Int64((seconds * 1000).rounded(.down))
  }

  var instant: Instant { Instant(milliseconds: milliseconds) }
}
