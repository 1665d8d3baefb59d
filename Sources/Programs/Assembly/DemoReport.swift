import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

/// What a played day came to, read from the topics and the store as anybody could read them.
public struct DemoReport: Sendable {
  public var received: [String: Int] = [:]
  public var verdicts: [String: Int] = [:]
  public var changes: [String: Int] = [:]
  /// Active at the end of the day.
  public var entitlements: [String: Int] = [:]
  /// Sum of what was added and removed, by product.
  public var credits: [String: Int64] = [:]
  public var balances: [String: Int64] = [:]
  public var permits: [String: Int] = [:]
  /// Accounts that the store knows.
  public var accounts = 0
  public var quarantined: [String: Int] = [:]

  init() {}

  /// Reads the topics. What a type of event is and what it says stands in its headers and data.
  mutating func read(_ log: any EventLog, _ topics: TopicSettings) throws {
    func each(_ topic: Topic, _ body: (Envelope, JSONView?) -> Void) throws {
      try TopicTail(log: log, topic: topics.name(topic)).run(from: nil, follow: false, limit: nil, until: StopSignal())
      {
        guard let envelope = try? Envelope(reading: $0.record) else { return }
        body(envelope, $0.record.value.flatMap { try? JSONDocument(parsing: $0).root })
      }
    }
    var received: [String: Int] = [:]
    var verdicts: [String: Int] = [:]
    var changes: [String: Int] = [:]
    var credits: [String: Int64] = [:]
    var permits: [String: Int] = [:]
    try each(.received) { envelope, _ in received[envelope.type.rawValue, default: 0] += 1 }
    try each(.verified) { envelope, data in
      switch envelope.type {
      case .purchaseRejected: verdicts["rejected: \(data?["reason"]?.string ?? "?")", default: 0] += 1
      case .purchaseVerified: verdicts["verified: \(data?["kind"]?.string ?? "?")", default: 0] += 1
      case .purchasePending: verdicts["pending: \(data?["reason"]?.string ?? "?")", default: 0] += 1
      default: verdicts["nothing to verify", default: 0] += 1
      }
    }
    try each(.entitlements) { envelope, data in
      switch envelope.type {
      case .paymentFinishable:
        permits["\(data?["content"]?.string ?? "?"): \(data?["reason"]?.string ?? "?")", default: 0] += 1
      case .creditAdded, .creditRemoved:
        let product = data?["productId"]?.string ?? data?["cause"]?["productId"]?.string ?? "by spending"
        let amount = data?["amount"]?.int64 ?? 0
        credits[product, default: 0] += envelope.type == .creditAdded ? amount : -amount
        changes[envelope.type.rawValue, default: 0] += 1
      default: changes[envelope.type.rawValue, default: 0] += 1
      }
    }
    var quarantined: [String: Int] = [:]
    try TopicTail(log: log, topic: topics.name(.quarantine)).run(
      from: nil, follow: false, limit: nil, until: StopSignal()
    ) { quarantined[QuarantineCause($0).text, default: 0] += 1 }
    self.quarantined = quarantined
    self.received = received
    self.verdicts = verdicts
    self.changes = changes
    self.credits = credits
    self.permits = permits
  }

  /// Reads the store as it stands at an instant.
  mutating func read(_ state: StateReading, at instant: Instant) throws -> StateDigest {
    var digest = StateDigest(at: instant)
    try state.forEach(at: instant) { view in
      digest.add(view)
      accounts += 1
      for (entitlement, state) in view.entitlements {
        entitlements["\(entitlement) by \(state.product?.text ?? "an order")", default: 0] += 1
      }
      for balance in view.balances { balances[balance.unit.text, default: 0] += balance.amount }
    }
    return digest
  }

  public static func lines(_ title: String, _ counts: [String: some FixedWidthInteger]) -> [String] {
    guard !counts.isEmpty else { return [] }
    let width = counts.values.map { String($0).count }.max() ?? 0
    return ["", title]
      + counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { name, count in
        "  " + String(repeating: " ", count: width - String(count).count) + "\(count)  \(name)"
      }
  }
}
