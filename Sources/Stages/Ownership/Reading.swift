import PurchasesContracts
import PurchasesCore

/// A record of the topic `verified`, parsed once.
enum Reading: Sendable {
  case proof(Proof)
  case verdict(Verdict)
  case claim(PurchaseClaimed, FactNoted)
  case order(AccessOrdered, FactNoted)
  /// A fact with an account, passed on to it.
  case fact(Environment, Account, FactNoted)
  /// Nothing that concerns an account or a purchase.
  case nothing
  case unreadable(FieldFailure)

  /// A verified proof and what it says about one chain.
  struct Proof: Sendable {
    var event: PurchaseVerified
    /// nil where nothing in it speaks of a purchase.
    var originalTransaction: OriginalTransactionID?
    var statements: [Statement]
    var rescinded: Rescinded?

    var environment: Environment { event.environment }
    var accounts: [Account] { statements.compactMap(\.token) + [event.report.account].compactMap(\.self) }

    /// Whether a client sent it as a purchase of its own, and waits for a permit.
    var isReported: Bool { event.report.type == .paymentPurchased || event.report.type == .paymentRestored }

    /// The account that sent it as its purchase: the sender vouches for who it is.
    var sender: Account? { isReported ? event.report.account : nil }

    /// The account that a reported proof itself names.
    var named: Account? { isReported ? statements.lazy.compactMap(\.token).first : nil }
  }

  /// That consent to a customer's use of the app was withdrawn.
  enum Rescinded: Sendable {
    case by(ConsentRescinded)
    /// Nothing verified in it says whose.
    case byNobody
  }

  struct Statement: Sendable {
    var kept: ChainRow.Kept
    var token: Account?
    /// What should be an account token is none.
    var hasUnusableToken: Bool
  }

  /// A proof without a usable verdict, sent by an account that waits for an answer.
  struct Verdict: Sendable {
    var environment: Environment?
    var account: Account
    var outcome: AccountFact.Outcome
    var reason: String
    var proof: String
    var report: Report
  }

  init(_ record: Incoming) {
    guard let type = record.event?.type, let data = record.stored.record.value else {
      self = .unreadable(FieldFailure("event", "has no data"))
      return
    }
    do throws(FieldFailure) {
      switch try VerifiedEvent(type: type, data: data) {
      case .verified(let event): self = .proof(try Proof(event))
      case .rejected(let event):
        self = Self.verdict(event.environment, .rejected, event.reason, event.proof, event.report)
      case .pending(let event):
        self = Self.verdict(event.environment, .pending, event.reason, event.proof, event.report)
      case .noted(let fact): self = try Self.fact(fact)
      }
    } catch { self = .unreadable(error) }
  }

  private static func verdict(
    _ environment: Environment?, _ outcome: AccountFact.Outcome, _ reason: String, _ proof: String, _ report: Report
  ) -> Reading {
    guard let account = report.account else { return .nothing }
    return .verdict(
      Verdict(
        environment: environment, account: account, outcome: outcome, reason: reason, proof: proof, report: report))
  }

  private static func fact(_ fact: FactNoted) throws(FieldFailure) -> Reading {
    switch try fact.event() {
    case .claimed(let claim): return .claim(claim, fact)
    case .ordered(let order): return .order(order, fact)
    case .payment(let event):
      guard let environment = event.environment, let account = event.account else { return .nothing }
      return .fact(environment, account, fact)
    case .restore(let event): return .fact(event.environment, event.account, fact)
    case .spendRequested(let event): return .fact(event.environment, event.account, fact)
    case .notified, .operatorActed: return .nothing
    }
  }
}

extension Reading.Proof {
  /// `inAppOwnershipType` of who uses what another Apple account pays for: a token there would be the payer's.
  private static let members: Set<String> = ["FAMILY_SHARED", "ASSIGNED"]

  init(_ event: PurchaseVerified) throws(FieldFailure) {
    var statements: [Reading.Statement] = []
    var original: OriginalTransactionID?
    var isMembersCopy = false
    for part in event.parts {
      let environment: Environment
      let named: OriginalTransactionID
      switch part.kind {
      case .transaction, .appReceipt:
        let revision = try part.transactionRevision()
        (environment, named) = (revision.environment, revision.originalTransaction)
        if let ownership = revision.ownershipType, Self.members.contains(ownership) { isMembersCopy = true }
        statements.append(
          Reading.Statement(
            kept: ChainRow.Kept(part: revision.businessKey.part, rank: revision.rank, signed: part),
            token: revision.accountToken, hasUnusableToken: revision.hasUnusableToken))
      case .renewalInfo:
        let revision = try part.renewalRevision()
        (environment, named) = (revision.environment, revision.originalTransaction)
        statements.append(
          Reading.Statement(
            kept: ChainRow.Kept(part: nil, rank: revision.rank, signed: part), token: revision.accountToken,
            hasUnusableToken: revision.hasUnusableToken))
      case .notification, .appTransaction: continue
      }
      // Verification has seen to both; a record that says otherwise must not move anything across.
      guard environment == event.environment else {
        throw FieldFailure("parts", "name another environment than the event")
      }
      guard original == nil || original == named else { throw FieldFailure("parts", "name more than one purchase") }
      original = named
    }
    if isMembersCopy { for index in statements.indices { statements[index].token = nil } }
    self.init(
      event: event, originalTransaction: original, statements: statements, rescinded: try Reading.Rescinded(event))
  }
}

extension Reading.Rescinded {
  /// nil for what is about anything else.
  init?(_ event: PurchaseVerified) throws(FieldFailure) {
    guard let notification = event.notification, notification.statedType == .known(.rescindConsent) else { return nil }
    guard let app = try event.parts.first(where: { $0.kind == .appTransaction })?.appTransaction().model,
      let id = app.appTransactionID.flatMap({ AppTransactionID($0) }), let bundle = app.bundleID
    else {
      self = .byNobody
      return
    }
    self = .by(
      ConsentRescinded(
        environment: event.environment, appTransaction: id, bundleID: bundle, proof: event.proof,
        signedDate: event.signedDate, notification: notification))
  }
}
