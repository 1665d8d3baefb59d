import PurchasesContracts
import PurchasesJSON

/// What a played scenario came to, as its clients saw it.
public struct PlayReport: Sendable, Hashable {
  /// Events that the gateway took, by type; notifications as `store.notified`.
  public var posted: [String: Int] = [:]
  /// Notifications by the App Store's type.
  public var notifications: [String: Int] = [:]
  /// Answers to who wanted to finish: `finishable granted`, `refused none`, `pending`, …
  public var permits: [String: Int] = [:]
  /// Requests that had to be sent again because the gateway was not ready to take them.
  public var retries = 0
  /// Clients that waited for a balance and never saw it.
  public var unseenBalances = 0
  /// The first failures, in words; empty when everything was taken.
  public var failures: [String] = []
  public var failed = 0
  /// Why no request came to the gateway at all; nil where one did.
  public var unreachable: String?
  /// Whether the play went on to the end of its day.
  public var isComplete = false

  /// Enough to see a pattern.
  static let maximumFailures = 20

  public init() {}

  public var total: Int { posted.values.reduce(0, +) }

  mutating func count(_ path: WritableKeyPath<PlayReport, [String: Int]>, _ name: String) {
    self[keyPath: path][name, default: 0] += 1
  }

  mutating func fail(_ reason: String) {
    failed += 1
    if failures.count < Self.maximumFailures { failures.append(reason) }
  }

  public func write(_ json: inout JSONWriter) {
    func table(_ name: StaticString, _ counts: [String: Int]) {
      json.field(
        name,
        object: { json in
          for (name, count) in counts.sorted(by: { $0.key < $1.key }) { json.fieldNamed(name, .integer(Int64(count))) }
        })
    }
    table("posted", posted)
    table("notifications", notifications)
    table("permits", permits)
    json.field("retries", retries)
    json.field("unseenBalances", unseenBalances)
    json.field("failed", failed)
    json.field("isComplete", isComplete)
    if let unreachable { json.field("unreachable", unreachable) }
    json.field("failures", array: { json in for failure in failures { json.element(failure) } })
  }
}
