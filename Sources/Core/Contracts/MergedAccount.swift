import PurchasesCore

/// Accounts that were merged into others: the table `alias`, for who writes and for who reads.
public enum MergedAccount {
  /// A merged account merged again, and so on: longer chains are nobody's, and end here in any case.
  public static let maximumHops = 6

  public static func key(_ environment: Environment, _ account: Account) -> RowKey {
    RowKey(.alias, [.text(environment.rawValue), .text(account.text)])
  }

  /// The account that this one was merged into, by its row.
  public static func target(_ row: Row?) -> Account? { row?.values[0].text.flatMap { Account($0) } }

  /// The account that this one is now.
  public static func resolve<Failure: Error>(
    _ environment: Environment, _ account: Account, _ row: (RowKey) throws(Failure) -> Row?
  ) throws(Failure) -> Account {
    var account = account
    for _ in 0..<maximumHops {
      guard let next = target(try row(key(environment, account))) else { return account }
      account = next
    }
    return account
  }
}

extension RowReader {
  /// The account that this one is now: itself, unless it was merged into another.
  public func current(_ environment: Environment, _ account: Account) throws(StoreFailure) -> Account {
    try MergedAccount.resolve(environment, account) { key throws(StoreFailure) in try row(key) }
  }
}
