import PurchasesContracts
import PurchasesCore

/// Accounts that were merged into others.
struct Aliases {
  let facts: any Facts

  /// A merged account merged again, and so on: longer chains are nobody's, and end here in any case.
  static let maximumHops = 6

  static func key(_ environment: Environment, _ account: Account) -> RowKey {
    RowKey(.alias, [.text(environment.rawValue), .text(account.text)])
  }

  func next(_ environment: Environment, _ account: Account) -> Account? {
    facts.row(Self.key(environment, account))?.values[0].text.flatMap { Account($0) }
  }

  /// The account that this one is now.
  func resolve(_ environment: Environment, _ account: Account) -> Account {
    var account = account
    for _ in 0..<Self.maximumHops {
      guard let next = next(environment, account) else { return account }
      account = next
    }
    return account
  }

  /// What must be known to resolve it, as far as it is known so far.
  func needs(_ environment: Environment, _ account: Account) -> [Need] {
    var needs: [Need] = []
    var account = account
    for _ in 0..<Self.maximumHops {
      needs.append(.row(Self.key(environment, account)))
      guard let next = next(environment, account) else { break }
      account = next
    }
    return needs
  }
}

/// Notifications by Apple's UUID, whose case means nothing.
enum Notifications {
  static func key(_ environment: Environment, _ uuid: String) -> RowKey {
    RowKey(.notification, [.text(environment.rawValue), .text(uuid.lowercased())])
  }
}
