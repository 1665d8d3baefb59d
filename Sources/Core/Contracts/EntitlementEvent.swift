import PurchasesCore

/// What an event of the topic `entitlements` goes back to.
public struct Cause: Sendable, Hashable {
  /// Id of the event in the topic `owned`.
  public var event: String
  /// SHA-256 of the proof as received, in hex.
  public var proof: String?
  public var transaction: TransactionID?

  public init(event: String, proof: String? = nil, transaction: TransactionID? = nil) {
    self.event = event
    self.proof = proof
    self.transaction = transaction
  }
}

/// Data of `entitlement.granted|extended|reduced|revoked|expired`. The same event, under the entitlement's own key, is its
/// newest state in the topic `entitlement-state`.
public struct EntitlementChanged: Sendable, Hashable {
  public var entitlement: EntitlementID
  public var step: AccountChange.Step
  public var before: EntitlementState
  public var after: EntitlementState
  public var rule: Rule

  public init(
    entitlement: EntitlementID, step: AccountChange.Step, before: EntitlementState, after: EntitlementState, rule: Rule
  ) {
    self.entitlement = entitlement
    self.step = step
    self.before = before
    self.after = after
    self.rule = rule
  }
}

/// Data of `credit.added|removed`.
public struct CreditChanged: Sendable, Hashable {
  public var unit: CreditUnit
  /// Above zero in both: the type says which way.
  public var amount: Int64
  public var isAddition: Bool
  public var balanceBefore: Int64
  public var balanceAfter: Int64
  /// The line of the ledger.
  public var entry: String
  public var transaction: TransactionID?
  public var product: ProductID?
  public var rule: Rule

  public init(
    unit: CreditUnit, amount: Int64, isAddition: Bool, balanceBefore: Int64, balanceAfter: Int64, entry: String,
    transaction: TransactionID?, product: ProductID?, rule: Rule
  ) {
    self.unit = unit
    self.amount = amount
    self.isAddition = isAddition
    self.balanceBefore = balanceBefore
    self.balanceAfter = balanceAfter
    self.entry = entry
    self.transaction = transaction
    self.product = product
    self.rule = rule
  }
}

/// Data of `payment.finishable`: the permit to finish, once per account and proof.
public struct PaymentFinishable: Sendable, Hashable {
  /// SHA-256 of the proof in hex, or `attempt:ID` of a failed payment.
  public var proof: String
  public var content: Permit.Content
  public var reason: String
  public var transaction: TransactionID?
  public var product: ProductID?
  public var attempt: String?

  public init(
    proof: String, content: Permit.Content, reason: String, transaction: TransactionID?, product: ProductID?,
    attempt: String?
  ) {
    self.proof = proof
    self.content = content
    self.reason = reason
    self.transaction = transaction
    self.product = product
    self.attempt = attempt
  }
}

/// An event of the topic `entitlements`: what happened, and what is said of each.
public struct EntitlementEvent: Sendable, Hashable {
  public enum Content: Sendable, Hashable {
    case entitlement(EntitlementChanged)
    case credit(CreditChanged)
    case finishable(PaymentFinishable)
  }

  public var environment: Environment
  public var account: Account
  /// Counts the account's events from 1, without a gap.
  public var version: Int64
  /// The instant that the decision was made for, in log time.
  public var asOf: Instant
  public var catalogueVersion: String
  public var cause: Cause
  public var content: Content

  public init(
    environment: Environment, account: Account, version: Int64, asOf: Instant, catalogueVersion: String, cause: Cause,
    content: Content
  ) {
    self.environment = environment
    self.account = account
    self.version = version
    self.asOf = asOf
    self.catalogueVersion = catalogueVersion
    self.cause = cause
    self.content = content
  }
}
