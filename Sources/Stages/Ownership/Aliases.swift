import PurchasesContracts
import PurchasesCore

/// Accounts that were merged into others.
struct Aliases {
  let facts: any Facts

  /// The account that this one is now.
  func resolve(_ environment: Environment, _ account: Account) -> Account {
    MergedAccount.resolve(environment, account) { facts.row($0) }
  }

  /// What must be known to resolve it, as far as it is known so far.
  func needs(_ environment: Environment, _ account: Account) -> [Need] {
    var needs: [Need] = []
    var account = account
    for _ in 0..<MergedAccount.maximumHops {
      let key = MergedAccount.key(environment, account)
      needs.append(.row(key))
      guard let next = MergedAccount.target(facts.row(key)) else { break }
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
