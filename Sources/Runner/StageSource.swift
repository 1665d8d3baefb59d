import PurchasesContracts
import Synchronization

/// Hands a running loop another stage of the same name, which goes on where the one before it stopped: between two batches,
/// so that a batch is decided by one of them.
public final class StageSource: Sendable {
  private let next = Mutex<(any Stage)?>(nil)

  public init() {}

  /// The newest one counts, where the loop has not come to the one before.
  public func replace(by stage: any Stage) { next.withLock { $0 = stage } }

  func take() -> (any Stage)? {
    next.withLock { next in
      defer { next = nil }
      return next
    }
  }
}
