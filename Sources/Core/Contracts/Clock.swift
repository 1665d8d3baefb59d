import PurchasesCore

/// Time is data: only the runner and the doors read a clock, and they are handed one.
public protocol Clock: Sendable {
  func now() -> Instant
}
