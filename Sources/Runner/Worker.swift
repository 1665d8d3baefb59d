import Foundation
import Synchronization

/// A thread with a result. What may block runs on one of these, never on Swift's cooperative pool.
public final class Worker<Outcome: Sendable>: Sendable {
  private let done = NSCondition()
  private let outcome = Mutex<Outcome?>(nil)

  /// Deep enough for the C libraries' own use of the stack.
  private static var stackBytes: Int { 4 << 20 }

  public init(name: String, _ body: @escaping @Sendable () -> Outcome) {
    let thread = Thread { [self] in
      let result = body()
      done.lock()
      outcome.withLock { $0 = result }
      done.broadcast()
      done.unlock()
    }
    thread.name = name
    thread.stackSize = Self.stackBytes
    thread.start()
  }

  public var isDone: Bool { outcome.withLock { $0 != nil } }

  public func wait() -> Outcome {
    done.lock()
    defer { done.unlock() }
    while true {
      if let result = outcome.withLock({ $0 }) { return result }
      done.wait()
    }
  }
}
