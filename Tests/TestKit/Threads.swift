import Foundation

/// A door that stays shut until it is opened.
public final class Gate: Sendable {
  private let condition = NSCondition()
  nonisolated(unsafe) private var isOpen = false
  nonisolated(unsafe) private var arrived = 0

  public init() {}

  public func pass() {
    condition.withLock {
      arrived += 1
      condition.broadcast()
      while !isOpen { condition.wait() }
    }
  }

  /// Counts an arrival without waiting.
  public func arrive() {
    condition.withLock {
      arrived += 1
      condition.broadcast()
    }
  }

  public func open() {
    condition.withLock {
      isOpen = true
      condition.broadcast()
    }
  }

  /// Waits until so many have come to the door.
  public func awaitArrivals(_ count: Int) {
    condition.withLock { while arrived < count { condition.wait() } }
  }
}

/// Runs `body` so many times on threads of their own and answers the results when all have ended.
public func onThreads<Result: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Result) -> Running<Result> {
  let running = Running<Result>(count)
  for index in 0..<count {
    Thread.detachNewThread { running.ended(body(index)) }
  }
  return running
}

public final class Running<Result: Sendable>: Sendable {
  private let condition = NSCondition()
  nonisolated(unsafe) private var results: [Result] = []
  private let count: Int

  init(_ count: Int) {
    self.count = count
  }

  func ended(_ result: Result) {
    condition.withLock {
      results.append(result)
      condition.broadcast()
    }
  }

  public func wait() -> [Result] {
    condition.withLock {
      while results.count < count { condition.wait() }
      return results
    }
  }
}
