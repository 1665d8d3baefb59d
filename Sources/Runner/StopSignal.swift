import Foundation
import Synchronization

/// Asks everything that runs to finish what it has in hand and stop. Set once; waiting threads wake at once.
public final class StopSignal: Sendable {
  private let condition = NSCondition()
  private let flag = Mutex(false)

  public init() {}

  public var isSet: Bool { flag.withLock { $0 } }

  public func set() {
    condition.lock()
    flag.withLock { $0 = true }
    condition.broadcast()
    condition.unlock()
  }

  /// Waits until the signal is set, at most so long; answers whether it is.
  @discardableResult
  public func wait(milliseconds: Int64) -> Bool {
    let deadline = Date(timeIntervalSinceNow: Double(milliseconds) / 1000)
    condition.lock()
    defer { condition.unlock() }
    while !isSet {
      guard condition.wait(until: deadline) else { break }
    }
    return isSet
  }

  /// Waits until the signal is set.
  public func wait() {
    condition.lock()
    defer { condition.unlock() }
    while !isSet { condition.wait() }
  }
}
