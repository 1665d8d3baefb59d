import PurchasesCore
import PurchasesJSON

/// A line of an account's ledger, as people read it.
public struct LedgerLine: Sendable, Hashable {
  public var unit: CreditUnit
  public var entry: String
  /// The other side: store, spent, operator or transfer.
  public var counterpart: String
  /// Above zero: the balance rose.
  public var amount: Int64
  /// Of the unit, after this line.
  public var balance: Int64
  /// Of the account, of the event that came with it.
  public var version: Int64
  /// Log time.
  public var recordedAt: Instant

  /// - Throws: for a row that neither this program nor an older one wrote. The balance is left at 0.
  public init(_ row: Row) throws(FieldFailure) {
    guard row.key.table == .ledger, let unit = row.key.values[2].text.flatMap({ CreditUnit($0) }),
      let entry = row.key.values[3].text, let debit = row["debit"].text, let credit = row["credit"].text,
      let amount = row["amount"].integer, amount > 0, (debit == Self.account) != (credit == Self.account),
      let version = row["version"].integer, let recordedAt = row["recorded_at"].integer
    else { throw FieldFailure("ledger", "has a column that is not what it must be") }
    self.unit = unit
    self.entry = entry
    let isAddition = credit == Self.account
    counterpart = isAddition ? debit : credit
    self.amount = isAddition ? amount : -amount
    balance = 0
    self.version = version
    self.recordedAt = Instant(milliseconds: recordedAt)
  }

  /// The side that every line has.
  public static let account = "account"

  /// Writes the members of an object.
  public func write(_ json: inout JSONWriter) {
    json.field("unit", unit.text)
    json.field("amount", amount)
    json.field("counterpart", counterpart)
    json.field("entry", entry)
    json.field("balance", balance)
    json.field("version", version)
    json.field("recordedAt", rfc3339: recordedAt)
  }
}

extension StoreReader {
  /// All lines of an account in the order in which they were booked, each with the balance after it.
  /// - Throws: `corrupt` for rows that can't be read.
  public func ledger(_ environment: Environment, _ account: Account) throws(StoreFailure) -> [LedgerLine] {
    // Some hundred bytes a row.
    let page = 1_000
    let prefix: [Value] = [.text(environment.rawValue), .text(account.text)]
    var lines: [LedgerLine] = []
    var after: [Value]?
    while true {
      let rows = try rows(.ledger, prefix: prefix, after: after, limit: page)
      for row in rows {
        do throws(FieldFailure) { lines.append(try LedgerLine(row)) } catch {
          throw StoreFailure(.corrupt, "\(error)")
        }
      }
      guard rows.count == page, let last = rows.last else { break }
      after = last.key.values
    }
    lines.sort { $0.version < $1.version }
    var balances: [CreditUnit: Int64] = [:]
    for index in lines.indices {
      balances[lines[index].unit, default: 0] += lines[index].amount
      lines[index].balance = balances[lines[index].unit, default: 0]
    }
    return lines
  }
}
