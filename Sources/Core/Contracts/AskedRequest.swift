import PurchasesCore
import PurchasesJSON

/// What somebody asks for without a proof, and is answered once: a spend, a claim, an operator's order. Whoever sends the same
/// one again comes to the same name, and another one under that name is a conflict.
public struct AskedRequest: Sendable, Hashable {
  public let environment: Environment
  /// As it was asked; the account may be another one's since.
  public let account: Account
  /// `spend:` and the idempotency key, `claim:` and the attempt, `order:` and the order's id.
  public let name: String
  /// spend, claim or an order's action.
  public let kind: String
  /// What was asked, in one line. Who ordered it, and why, is no part of it.
  public let asked: String

  /// Nil for an event that is answered by a permit or not at all.
  public init?(_ event: ReceivedEvent) {
    switch event {
    case .spendRequested(let spend):
      self.init(
        spend.environment, spend.account, name: "spend:\(spend.idempotencyKey)", kind: "spend",
        asked: "\(spend.unit) \(spend.amount)")
    case .claimed(let claim):
      self.init(
        claim.environment, claim.account, name: "claim:\(claim.attempt)", kind: "claim",
        asked: claim.originalTransaction.text)
    case .ordered(let order):
      func until(_ instant: Instant?) -> String { instant.map { " until \($0.rfc3339)" } ?? "" }
      let asked =
        switch order.order {
        case .grant(let entitlement, let end), .revoke(let entitlement, let end): "\(entitlement)\(until(end))"
        case .reverse(let id): id
        case .adjust(let unit, let amount): "\(unit) \(amount)"
        case .transfer(let original, let to): "\(original) to \(to)"
        case .merge(let into): "into \(into)"
        }
      self.init(
        order.environment, order.account, name: "order:\(order.orderID)", kind: order.order.action,
        asked: "\(order.order.action) \(asked)")
    case .payment, .restore, .notified, .operatorActed: return nil
    }
  }

  private init(_ environment: Environment, _ account: Account, name: String, kind: String, asked: String) {
    self.environment = environment
    self.account = account
    self.name = name
    self.kind = kind
    self.asked = asked
  }

  /// The request's name in the books of an account that the one it was about was merged into. No account has a `/` in it, so
  /// no two requests share a name.
  public static func name(_ name: String, from account: Account) -> String { "from:\(account)/\(name)" }
}

/// A row of the table `answer`.
public struct AnswerRow: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable, CaseIterable { case done, refused }

  public var kind: String
  public var outcome: Outcome
  /// A code from a closed list.
  public var reason: String
  /// nil where it isn't known any more.
  public var asked: String?
  /// Of the account's newest event when it was decided.
  public var version: Int64?
  /// Coordinates of the record of `owned` that it was decided by.
  public var source: String
  /// Log time.
  public var recordedAt: Instant

  public init(
    kind: String, outcome: Outcome, reason: String, asked: String?, version: Int64?, source: String,
    recordedAt: Instant
  ) {
    self.kind = kind
    self.outcome = outcome
    self.reason = reason
    self.asked = asked
    self.version = version
    self.source = source
    self.recordedAt = recordedAt
  }

  /// Codes of what is done.
  public enum Reason {
    public static let spent = "spent"
    public static let owner = "owner"
    public static let ordered = "ordered"
  }

  public static func key(_ environment: Environment, _ account: Account, _ name: String) -> RowKey {
    RowKey(.answer, [.text(environment.rawValue), .text(account.text), .text(name)])
  }

  /// - Throws: for a row that neither this program nor an older one wrote.
  public init(_ row: Row) throws(FieldFailure) {
    guard row.key.table == .answer, let kind = row["kind"].text,
      let outcome = row["outcome"].text.flatMap(Outcome.init), let reason = row["reason"].text,
      let source = row["source"].text, let recordedAt = row["recorded_at"].integer
    else { throw FieldFailure("answer", "has a column that is not what it must be") }
    self.init(
      kind: kind, outcome: outcome, reason: reason, asked: row["asked"].text, version: row["version"].integer,
      source: source, recordedAt: Instant(milliseconds: recordedAt))
  }

  public func row(_ key: RowKey) -> Row {
    Row(
      key,
      [
        .text(kind), .text(outcome.rawValue), .text(reason), Value(asked), Value(version), .text(source),
        Value(recordedAt),
      ])
  }

  /// Whether something else was asked under the same name first.
  public func isConflict(with asked: String) -> Bool { self.asked.map { $0 != asked } ?? false }
}

extension AnswerRow {
  /// Writes the members of an object.
  public func write(_ json: inout JSONWriter) {
    json.field("kind", kind)
    json.field("outcome", outcome.rawValue)
    json.field("reason", reason)
    json.field("asked", asked)
    json.field("version", version)
    json.field("source", source)
    json.field("recordedAt", rfc3339: recordedAt)
  }
}

extension RowReader {
  /// The answer to what was asked about an account, whoever has given it: that account, or one that it was merged into.
  /// - Throws: `corrupt` for rows that can't be read.
  public func answer(
    _ environment: Environment, _ account: Account, _ name: String
  ) throws(StoreFailure) -> AnswerRow? {
    if let answer = try answer(at: AnswerRow.key(environment, account, name)) { return answer }
    let name = AskedRequest.name(name, from: account)
    var account = account
    for _ in 0..<MergedAccount.maximumHops {
      guard let next = MergedAccount.target(try row(MergedAccount.key(environment, account))) else { return nil }
      account = next
      if let answer = try answer(at: AnswerRow.key(environment, account, name)) { return answer }
    }
    return nil
  }

  private func answer(at key: RowKey) throws(StoreFailure) -> AnswerRow? {
    guard let row = try row(key) else { return nil }
    do throws(FieldFailure) { return try AnswerRow(row) } catch { throw StoreFailure(.corrupt, "\(error)") }
  }
}
