import PurchasesCore

/// The `subject` of events about one transaction, `ENVIRONMENT/TRANSACTION`: of the payments that name one in `received`,
/// of the verdicts on them in `verified` (the received event's, handed on) and of permits in `entitlements`. Auditing
/// follows a purchase by it from topic to topic, without parsing anybody's data.
public struct TransactionSubject: Sendable, Hashable {
  public var environment: Environment
  public var transaction: TransactionID

  public init(_ environment: Environment, _ transaction: TransactionID) {
    self.environment = environment
    self.transaction = transaction
  }

  /// nil for any other subject: foreign producers may have subjects of their own.
  public init?(_ text: String) {
    guard let slash = text.firstIndex(of: "/"), let environment = Environment(rawValue: String(text[..<slash])),
      let transaction = TransactionID(String(text[text.index(after: slash)...]))
    else { return nil }
    self.init(environment, transaction)
  }

  public var text: String { "\(environment.rawValue)/\(transaction.text)" }
}
