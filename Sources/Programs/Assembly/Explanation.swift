import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// The chain of events behind what an account may use: each change with its rule, and the records that led to it, back to
/// what was received.
public struct Explanation {
  public struct Step: Sendable {
    public let coordinates: Coordinates
    public let type: String
    public let id: String
    public let at: Instant
    public let data: JSON
  }

  public struct Change: Sendable {
    public let account: String
    public let version: Int64
    public let type: String
    public let subject: String
    public let rule: String
    public let at: Instant
    /// From what was received on.
    public let steps: [Step]

    /// The operator's order that led to it, if one did.
    public var order: Order? {
      guard let data = steps.first(where: { $0.type == EventType.accessOrdered.rawValue })?.data else { return nil }
      return Order(
        id: data["orderId"]?.string, author: data["operator"]?.string, reason: data["reason"]?.string)
    }
  }

  public struct Order: Sendable, Hashable {
    public let id: String?
    public let author: String?
    public let reason: String?
  }

  /// What an account has, and how it came to it.
  public struct Account: Sendable {
    public let view: AccountView
    public let changes: [Change]
  }

  private let reader: any StoreReader
  private let log: any LogReader

  static let page = 500
  /// received, verified and owned, and as many rounds through `parked` as anybody wants to read.
  static let maximumSteps = 20

  public init(store: any StoreReader, log: any LogReader) {
    reader = store
    self.log = log
  }

  /// The account and its changes from one instant of the store; nil where nothing was ever written about it.
  /// - Parameter subject: an entitlement, a unit of credits or a proof; nil for all changes.
  public func account(
    _ environment: Environment, _ account: PurchasesCore.Account, subject: String?, _ question: AccountQuestion
  ) throws -> Account? {
    let (view, rows) = try reader.atOneInstant { reader throws(StoreFailure) in
      let view = try reader.answer(environment, account, question)
      // One that was merged has a story of its own before that of the account that it is now.
      var changes = try Self.changes(environment, account, subject, reader)
      if view.account != account { changes += try Self.changes(environment, view.account, subject, reader) }
      return (view, changes)
    }
    guard view.isKnown || !rows.isEmpty else { return nil }
    // The log is asked when the store is free again.
    return Account(view: view, changes: try rows.map(change))
  }

  private static func changes(
    _ environment: Environment, _ account: PurchasesCore.Account, _ subject: String?, _ reader: any StoreReader
  ) throws(StoreFailure) -> [Row] {
    var changes: [Row] = []
    var after: [Value]?
    let prefix: [Value] = [.text(environment.rawValue), .text(account.text)]
    while true {
      let rows = try reader.rows(.change, prefix: prefix, after: after, limit: page)
      for row in rows where subject == nil || row["subject"].text == subject { changes.append(row) }
      guard rows.count == page, let last = rows.last else { return changes }
      after = last.key.values
    }
  }

  private func change(_ row: Row) throws -> Change {
    Change(
      account: row.key.values[1].text ?? "", version: row.key.values[2].integer ?? 0, type: row["type"].text ?? "",
      subject: row["subject"].text ?? "",
      rule: row["rule"].text ?? "", at: Instant(milliseconds: row["recorded_at"].integer ?? 0),
      steps: try steps(to: row["source"].text.flatMap { Coordinates(parsing: $0) }))
  }

  private func steps(to source: Coordinates?) throws -> [Step] {
    var steps: [Step] = []
    var next = source
    while let place = next, steps.count < Self.maximumSteps {
      guard let stored = try log.read(place.topicPartition, from: place.offset, max: 1).first,
        stored.coordinates == place
      else { break }
      let envelope = try? Envelope(reading: stored.record)
      steps.append(
        Step(
          coordinates: place, type: envelope?.type.rawValue ?? "unreadable", id: envelope?.id ?? "",
          at: stored.record.timestamp, data: stored.record.value.flatMap { try? JSON(parsing: $0) } ?? .null))
      next = envelope?.origin?.coordinates
    }
    return steps.reversed()
  }
}

extension Coordinates {
  /// Reads `TOPIC/PARTITION/OFFSET`.
  public init?(parsing text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, let partition = Int32(parts[1]), let offset = Int64(parts[2]) else {
      return nil
    }
    self.init(topic: String(parts[0]), partition: partition, offset: offset)
  }
}
