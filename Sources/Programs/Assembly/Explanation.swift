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
    public let version: Int64
    public let type: String
    public let subject: String
    public let rule: String
    public let at: Instant
    /// From what was received on.
    public let steps: [Step]
  }

  /// What an account has, and how it came to it.
  public struct Account: Sendable {
    public let view: AccountView
    public let changes: [Change]
  }

  private let reader: any StoreReader
  private let history: CatalogueHistory
  private let log: any LogReader

  static let page = 500
  /// received, verified and owned, and as many rounds through `parked` as anybody wants to read.
  static let maximumSteps = 20

  public init(store: any StoreReader, history: CatalogueHistory, log: any LogReader) {
    reader = store
    self.history = history
    self.log = log
  }

  /// The account and its changes from one instant of the store; nil where nothing was written about it.
  /// - Parameter subject: an entitlement, a unit of credits or a proof; nil for all changes.
  public func account(
    _ environment: Environment, _ account: PurchasesCore.Account, subject: String?, now: Instant
  ) throws -> Account? {
    let (view, rows) = try reader.atOneInstant { reader throws(StoreFailure) in
      let view = try reader.answer(environment, account, AccountQuestion(now: now, history: history))
      // One that was merged has what happened to it under its old name, too.
      var rows = try Self.changes(environment, account, subject, reader)
      if view.account != account { rows += try Self.changes(environment, view.account, subject, reader) }
      return (view, rows)
    }
    guard view.isKnown else { return nil }
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
      version: row.key.values[2].integer ?? 0, type: row["type"].text ?? "", subject: row["subject"].text ?? "",
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
