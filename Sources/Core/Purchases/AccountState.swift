/// One account: the facts about it, what was published about it, its credits, and who waits for a permit.
///
/// A value. The stage reads it from the store, changes it by one event and writes it back; the changes that the event led to
/// come out of the deciding functions.
public struct AccountState: Sendable, Hashable {
  public var facts: AccountFacts
  /// Entitlements that stand as active in the topic, in order.
  public internal(set) var published: [PublishedEntitlement]
  /// Balances that are or were not zero, in order of unit.
  public internal(set) var balances: [Balance]
  /// Proofs whose permit waits: for the catalogue, or for access to begin.
  public internal(set) var openPermits: [OpenPermit]
  /// Orders to merge the account into another that were decided: a repeated one has no second effect. The oldest first.
  public internal(set) var mergeIDs: [String]
  /// Set once the account is another one's: what still comes to it is handed on.
  public internal(set) var merge: Merge?
  /// The instant of the last tick that this account saw.
  public internal(set) var clock: Instant
  /// The next instant at which access changes by time alone; nil while there is none.
  public internal(set) var dueAt: Instant?

  public init(
    facts: AccountFacts = AccountFacts(), published: [PublishedEntitlement] = [], balances: [Balance] = [],
    openPermits: [OpenPermit] = [], mergeIDs: [String] = [], merge: Merge? = nil, clock: Instant = .distantPast,
    dueAt: Instant? = nil
  ) {
    self.facts = facts
    self.published = published
    self.balances = balances
    self.openPermits = openPermits
    self.mergeIDs = mergeIDs
    self.merge = merge
    self.clock = clock
    self.dueAt = dueAt
  }

  /// Whether something waits for a catalogue that knows more.
  public func isWaiting(for catalogue: Catalogue) -> Bool {
    facts.purchases(catalogue).contains { catalogue.isMissing($0) }
  }
}

public struct PublishedEntitlement: Sendable, Hashable {
  public var entitlement: EntitlementID
  public var state: EntitlementState

  public init(entitlement: EntitlementID, state: EntitlementState) {
    self.entitlement = entitlement
    self.state = state
  }
}

public struct Balance: Sendable, Hashable {
  public var unit: CreditUnit
  /// Below zero it is debt: by refunds and by operators' orders, never by spending.
  public var amount: Int64

  /// What is owed: 0 where the balance isn't below zero.
  public var debt: Int64 { amount < 0 ? -max(amount, -.max) : 0 }

  public init(unit: CreditUnit, amount: Int64) {
    self.unit = unit
    self.amount = amount
  }
}

/// A proof that somebody sent, and the purchase that it speaks of.
public struct OpenPermit: Sendable, Hashable {
  /// SHA-256 of the proof, in hex.
  public var proof: String
  public var key: BusinessKey
  public var transaction: TransactionID
  public var product: ProductID

  public init(proof: String, key: BusinessKey, transaction: TransactionID, product: ProductID) {
    self.proof = proof
    self.key = key
    self.transaction = transaction
    self.product = product
  }
}

/// Why something changed: a closed list, for people and for counting.
public enum Rule: String, Sendable, Hashable, CaseIterable {
  case purchase, refund
  case refundReversal = "refund-reversal"
  /// Renewal info said something new: grace began or ended.
  case renewal
  case transfer, order, spend, time, catalogue
}

/// What one event led to. The stage makes events, rows and ledger lines of these.
public enum AccountChange: Sendable, Hashable {
  public enum Step: Sendable, Hashable {
    case granted
    /// Still active, for as long or longer.
    case extended
    /// Still active, for less long.
    case reduced
    case revoked, expired
  }

  case entitlement(EntitlementID, Step, before: EntitlementState, after: EntitlementState, Rule)
  case credit(CreditChange)
  case permit(Permit)
}

/// A line of the ledger and what it does to the balance.
public struct CreditChange: Sendable, Hashable {
  public enum Counterpart: String, Sendable, Hashable {
    /// The App Store: purchases, refunds, and purchases that go to another account.
    case store
    case spent
    /// Another account, in a merge: what one side gives the other takes.
    case transfer
    /// A person, by hand.
    case `operator`
  }

  public var unit: CreditUnit
  /// Above zero: added; below: removed. Never zero.
  public var amount: Int64
  public var before: Int64
  public var after: Int64
  public var counterpart: Counterpart
  /// nil for a spend or an order.
  public var transaction: TransactionID?
  public var product: ProductID?
  /// Of a spend or an order: what answers it (`AskedRequest`), and the line's name in the ledger.
  public var request: String?
  public var rule: Rule
}

/// The answer to who wants to finish a transaction.
public struct Permit: Sendable, Hashable {
  public enum Status: String, Sendable, Hashable, CaseIterable { case finishable, refused, pending }
  public enum Content: String, Sendable, Hashable, CaseIterable {
    case granted
    case alreadyGranted = "already-granted"
    case none
  }

  /// Codes of our own; a refusal carries the verdict's.
  public enum Reason {
    public static let granted = "granted"
    public static let alreadyGranted = "already-granted"
    public static let revoked = "revoked"
    public static let expired = "expired"
    public static let anotherAccount = "another-account"
    /// Another account's, to which the restore policy gave it so short a time ago that it stays there.
    public static let movedRecently = "moved-recently"
    public static let paymentFailed = "payment-failed"
    public static let unknownProduct = "unknown-product"
    public static let notBegun = "not-begun"
    public static let notVerified = "not-yet-verified"
    public static let insufficientFunds = "insufficient-funds"
    public static let nothingBought = "no-matching-purchase"
  }

  /// SHA-256 of the proof in hex, or `attempt:ID` of a payment that has none.
  public var proof: String
  public var status: Status
  public var content: Content
  public var reason: String
  public var transaction: TransactionID?
  public var product: ProductID?
  public var attempt: String?

  public init(
    proof: String, status: Status, content: Content, reason: String, transaction: TransactionID? = nil,
    product: ProductID? = nil, attempt: String? = nil
  ) {
    self.proof = proof
    self.status = status
    self.content = content
    self.reason = reason
    self.transaction = transaction
    self.product = product
    self.attempt = attempt
  }
}
