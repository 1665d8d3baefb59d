import PurchasesCore
import PurchasesJSON

/// Data of `purchase.owned`: verified statements about a purchase, under its owner. With `basis` share, under an account
/// that shares it.
public struct PurchaseOwned: Sendable, Hashable {
  public var environment: Environment
  public var account: Account
  public var basis: OwnershipBasis
  public var originalTransaction: OriginalTransactionID
  /// SHA-256 of the proof as received, in hex; nil where no proof but a claim brought the purchase to its owner.
  public var proof: String?
  public var signedDate: Instant?
  public var notification: NotificationFacts?
  /// The circumstances, where the account itself sent the proof and waits for a permit.
  public var report: Report?
  /// What the proof says; all that is known of the purchase where it came to its owner only now.
  public var parts: [SignedPart]

  public init(
    environment: Environment, account: Account, basis: OwnershipBasis, originalTransaction: OriginalTransactionID,
    proof: String?, signedDate: Instant?, notification: NotificationFacts?, report: Report?, parts: [SignedPart]
  ) {
    self.environment = environment
    self.account = account
    self.basis = basis
    self.originalTransaction = originalTransaction
    self.proof = proof
    self.signedDate = signedDate
    self.notification = notification
    self.report = report
    self.parts = parts
  }
}

/// Data of `purchase.transferred`: written under both accounts in one transaction. Alone, under an account that shared a
/// purchase and no longer does: to is then whose it is, or (basis share) what the sharing account was merged into.
public struct PurchaseTransferred: Sendable, Hashable {
  public var environment: Environment
  /// The account under which this copy stands: `from` or `to`.
  public var account: Account
  public var from: Account
  public var to: Account
  /// What the new owner's right rests on.
  public var basis: OwnershipBasis
  public var originalTransaction: OriginalTransactionID
  /// The proof that led to it, or the order.
  public var proof: String?
  public var orderID: String?
  /// In the new owner's copy, where it sent the proof.
  public var report: Report?
  /// All that is known of the purchase: in the new owner's copy only.
  public var parts: [SignedPart]

  public init(
    environment: Environment, account: Account, from: Account, to: Account, basis: OwnershipBasis,
    originalTransaction: OriginalTransactionID, proof: String?, orderID: String?, report: Report?, parts: [SignedPart]
  ) {
    self.environment = environment
    self.account = account
    self.from = from
    self.to = to
    self.basis = basis
    self.originalTransaction = originalTransaction
    self.proof = proof
    self.orderID = orderID
    self.report = report
    self.parts = parts
  }
}

/// Data of `purchase.unowned`: verified, and kept for whoever comes to own it.
public struct PurchaseUnowned: Sendable, Hashable {
  public var environment: Environment
  public var originalTransaction: OriginalTransactionID
  public var proof: String
  public var signedDate: Instant
  public var notification: NotificationFacts?
  public var parts: [SignedPart]

  public init(
    environment: Environment, originalTransaction: OriginalTransactionID, proof: String, signedDate: Instant,
    notification: NotificationFacts?, parts: [SignedPart]
  ) {
    self.environment = environment
    self.originalTransaction = originalTransaction
    self.proof = proof
    self.signedDate = signedDate
    self.notification = notification
    self.parts = parts
  }
}

/// Data of `clock.ticked`: everything before the instant has been worked off, and something in this partition is due.
public struct ClockTicked: Sendable, Hashable {
  /// The account that is due first: its key brings the tick into its partition.
  public var environment: Environment
  public var account: Account
  public var instant: Instant
  /// The catalogue of the program that wrote it.
  public var catalogueVersion: String
  /// Accounts that it settles at most. It stands in the tick so that a replay by a program of another limit settles the same
  /// ones; nil in ticks of programs that had no other than theirs.
  public var limit: Int64?
  /// When the first of what is due was due; nil where nothing is, as under a newer catalogue.
  public var dueAt: Instant?

  public init(
    environment: Environment, account: Account, instant: Instant, catalogueVersion: String, limit: Int64? = nil,
    dueAt: Instant? = nil
  ) {
    self.environment = environment
    self.account = account
    self.instant = instant
    self.catalogueVersion = catalogueVersion
    self.limit = limit
    self.dueAt = dueAt
  }
}

/// Data of `fact.noted` in the topic `owned`: something that concerns an account without being a statement of Apple's
/// about its purchases.
public struct AccountFact: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    /// Nothing to say: passed on as it came.
    case passed
    /// The purchase that the account sent or claimed belongs to another one.
    case anotherAccount = "another-account"
    /// The claim holds, or the account had the purchase already.
    case owner
    /// The receipt that the account sent is genuine, and the purchase that it was sent for is not in it.
    case nothingBought = "nothing-bought"
    /// The proof that the account sent isn't genuine; terminal.
    case rejected
    /// Whether the proof is genuine can't be told yet.
    case pending
    /// An order that can't be carried out.
    case refused
    /// What an account had that was merged into this one: its grants, and its credits beside those of its purchases.
    case handedOn = "handed-on"
  }

  public var environment: Environment
  public var account: Account
  public var outcome: Outcome
  /// The verdict's code, where there was one; of what is another account's, why it is so for now.
  public var reason: String?
  public var proof: String?
  /// The accounts that it was said about and that were merged into this one, the first one first; empty where it was said
  /// about this one.
  public var via: [Account]
  /// Log time of an order that was handed on.
  public var orderedAt: Instant?
  /// The received event; of one that carried a proof, the circumstances without the proof.
  public var fact: FactNoted

  /// What went through more accounts than these stays where it is.
  public static let maximumVia = MergedAccount.maximumHops

  public init(
    environment: Environment, account: Account, outcome: Outcome = .passed, reason: String? = nil,
    proof: String? = nil, via: [Account] = [], orderedAt: Instant? = nil, fact: FactNoted
  ) {
    self.environment = environment
    self.account = account
    self.outcome = outcome
    self.reason = reason
    self.proof = proof
    self.via = via
    self.orderedAt = orderedAt
    self.fact = fact
  }

  /// A report without its proof.
  public init(
    environment: Environment, account: Account, outcome: Outcome, reason: String?, proof: String, report: Report
  ) {
    var writer = JSONWriter(reserving: 256)
    writer.object { report.write(&$0) }
    self.init(
      environment: environment, account: account, outcome: outcome, reason: reason, proof: proof,
      fact: FactNoted(type: report.type, data: writer.bytes))
  }

  /// The circumstances of a proof that another account's or no verdict came to.
  public func report() throws(FieldFailure) -> Report { try Report(Fields(parsing: fact.data)) }
}

/// Data of `consent.rescinded`: Apple said that the consent to a customer's use of the app was withdrawn. It names the
/// customer by the app transaction, which all that was bought there carries, and no account: who may know which accounts
/// those are is the deployment's affair.
public struct ConsentRescinded: Sendable, Hashable {
  public var environment: Environment
  public var appTransaction: AppTransactionID
  public var bundleID: String
  /// SHA-256 of the notification as received, in hex.
  public var proof: String
  public var signedDate: Instant
  public var notification: NotificationFacts

  public init(
    environment: Environment, appTransaction: AppTransactionID, bundleID: String, proof: String, signedDate: Instant,
    notification: NotificationFacts
  ) {
    self.environment = environment
    self.appTransaction = appTransaction
    self.bundleID = bundleID
    self.proof = proof
    self.signedDate = signedDate
    self.notification = notification
  }
}

/// The events of the topic `owned`.
public enum OwnedEvent: Sendable, Hashable {
  case owned(PurchaseOwned)
  case transferred(PurchaseTransferred)
  case unowned(PurchaseUnowned)
  case ticked(ClockTicked)
  case consentRescinded(ConsentRescinded)
  case noted(AccountFact)
}
