import PurchasesCore

/// The keys of the topics' records: what is to be worked on by one writer, in order, has one key.
public enum TopicKey {
  /// `received` where the proof names a chain, `verified`, and `owned` while nobody owns it.
  public static func chain(_ environment: Environment, _ original: OriginalTransactionID) -> String {
    "\(environment.rawValue)/\(original.text)"
  }

  /// `owned`, `entitlements`, and `received` for what is about an account and names no chain.
  public static func account(_ environment: Environment, _ account: Account) -> String {
    "\(environment.rawValue)/\(account.text)"
  }

  /// `owned`, for what is about a customer's use of the app.
  public static func app(_ environment: Environment, _ appTransaction: AppTransactionID) -> String {
    "\(environment.rawValue)/\(appTransaction.text)"
  }

  /// `entitlement-state`.
  public static func entitlement(
    _ environment: Environment, _ account: Account, _ entitlement: EntitlementID
  ) -> String {
    "\(environment.rawValue)/\(account.text)/\(entitlement.text)"
  }
}
