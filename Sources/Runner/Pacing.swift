/// What the loop takes from the machine beside the time of day: how long things take, pauses, and chance. Handed in like the
/// clock, so that a simulation decides all three.
public protocol Pacing: Sendable {
  /// Milliseconds since an instant of its own choosing; never goes back.
  func milliseconds() -> Int64
  /// Waits so long, or until the signal is set.
  func pause(milliseconds: Int64, until stop: StopSignal)
  /// Any number of the range.
  func chance(_ range: ClosedRange<Int64>) -> Int64
}

/// The machine's own, for live deployments.
public struct MachinePacing: Pacing {
  private let begin = Stopwatch()

  public init() {}

  public func milliseconds() -> Int64 { begin.milliseconds }
  public func pause(milliseconds: Int64, until stop: StopSignal) { stop.wait(milliseconds: milliseconds) }
  public func chance(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range) }
}
