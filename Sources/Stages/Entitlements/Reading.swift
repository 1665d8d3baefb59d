import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// The account that a record is about.
struct Subject: Sendable {
  var environment: Environment
  var account: Account

  init(environment: Environment, account: Account) {
    self.environment = environment
    self.account = account
  }

  /// Whose row of the table `account` it is.
  init?(_ row: Row) {
    guard let environment = row.key.values[0].text.flatMap(Environment.init(rawValue:)),
      let account = row.key.values[1].text.flatMap({ Account($0) })
    else { return nil }
    self.init(environment: environment, account: account)
  }

  func permitKey(_ proof: String) -> RowKey {
    RowKey(.permit, [.text(environment.rawValue), .text(account.text), .text(proof)])
  }

  func ledgerKey(_ unit: CreditUnit, _ entry: String) -> RowKey {
    RowKey(.ledger, [.text(environment.rawValue), .text(account.text), .text(unit.text), .text(entry)])
  }
}

/// A record of the topic `owned`, parsed once, and no more of it than decisions need: the payloads as Apple signed them
/// are read straight into revisions.
enum Reading: Sendable {
  /// Verified statements under their owner; true where they come from another account.
  case statements(Subject, AccountState.Statements, Bool)
  /// A chain went to another account.
  case removed(Subject, OriginalTransactionID, proof: String?)
  /// A permit that needs no look at the facts.
  case answer(Subject, Permit)
  /// What somebody asked for without a proof.
  case request(Subject, Request)
  case tick(ClockTicked)
  case nothing
  case unreadable(FieldFailure)

  init(_ record: Incoming) {
    guard let type = record.event?.type, let data = record.stored.record.value else {
      self = .unreadable(FieldFailure("event", "has no data"))
      return
    }
    do throws(FieldFailure) { self = try Self.read(type, Fields(parsing: data), record) } catch {
      self = .unreadable(error)
    }
  }

  /// Whom it is about; nil of a tick and of what is nobody's.
  var subject: Subject? {
    switch self {
    case .statements(let subject, _, _), .removed(let subject, _, _), .answer(let subject, _),
      .request(let subject, _):
      subject
    case .tick, .nothing, .unreadable: nil
    }
  }

  private static func read(_ type: EventType, _ fields: Fields, _ record: Incoming) throws(FieldFailure) -> Reading {
    switch type {
    case .purchaseOwned: return .statements(try subject(fields, record), try statements(fields), false)
    case .purchaseTransferred:
      let subject = try subject(fields, record)
      if try fields.required("to", Account.self) == subject.account {
        return .statements(subject, try statements(fields), true)
      }
      return .removed(subject, try fields.required("originalTransactionId"), proof: try fields.text("proof"))
    // Nobody's yet: nobody's access.
    case .purchaseUnowned: return .nothing
    // About a customer and no purchase: what follows from it is not ours to decide.
    case .consentRescinded: return .nothing
    case .clockTicked, .factNoted:
      switch try OwnedEvent(type: type, fields: fields) {
      case .ticked(let tick): return .tick(tick)
      case .noted(let fact): return try Self.fact(fact, subject(fields, record))
      case .owned, .transferred, .unowned, .consentRescinded: return .nothing
      }
    default: throw FieldFailure("type", "\(type.rawValue) is not an event of the topic owned")
    }
  }

  /// One writer per account: a record under another key could come to another one.
  private static func subject(_ fields: Fields, _ record: Incoming) throws(FieldFailure) -> Subject {
    let subject = Subject(environment: try fields.requiredEnvironment(), account: try fields.required("account"))
    guard let key = record.stored.record.key,
      key.elementsEqual(TopicKey.account(subject.environment, subject.account).utf8)
    else { throw FieldFailure("key", "is not that of the account, environment/account") }
    return subject
  }

  private static func statements(_ fields: Fields) throws(FieldFailure) -> AccountState.Statements {
    var statements = AccountState.Statements(transactions: [], renewals: [])
    for element in fields.member("parts")?.elements ?? [] {
      let part = try Fields(element, path: "parts")
      guard let payload = part.member("payload") else { throw part.failure("payload", "is missing") }
      guard let source = RevisionSource(name: try part.requiredText("source")) else {
        throw part.failure("source", "is not a known source")
      }
      let digest = try part.requiredText("digest")
      guard let kind = part.member("kind") else { throw part.failure("kind", "is missing") }
      if kind.isString("transaction") || kind.isString("app-receipt") {
        statements.transactions.append(try ApplePayload.transaction(payload, digest: digest, source: source))
      } else if kind.isString("renewal-info") {
        statements.renewals.append(try ApplePayload.renewal(payload, digest: digest, source: source))
      }
    }
    // Access is shared, credits never are, whatever the record holds.
    if try fields.text("basis") == OwnershipBasis.share.rawValue {
      statements.transactions.removeAll { $0.type == .consumable }
    }
    if let report = try fields.object("report"), let type = report.member("type"),
      type.isString("payment.purchased") || type.isString("payment.restored")
    {
      let proof = try fields.requiredText("proof")
      statements.reportedProof = proof
      statements.reported =
        statements.transactions.first { $0.rank.digest == proof } ?? statements.transactions.first
    }
    return statements
  }

  private static func fact(_ fact: AccountFact, _ subject: Subject) throws(FieldFailure) -> Reading {
    func answer(_ status: Permit.Status, _ reason: String) throws(FieldFailure) -> Reading {
      guard let proof = fact.proof else { return .nothing }
      let report = try fact.report()
      return .answer(
        subject,
        Permit(
          proof: proof, status: status, content: .none, reason: reason, transaction: report.transaction,
          product: report.product))
    }
    switch fact.outcome {
    case .rejected: return try answer(.refused, fact.reason ?? "rejected")
    case .nothingBought: return try answer(.refused, Permit.Reason.nothingBought)
    case .pending: return try answer(.pending, Permit.Reason.notVerified)
    case .anotherAccount where fact.proof != nil:
      return try answer(.finishable, fact.reason ?? Permit.Reason.anotherAccount)
    case .anotherAccount, .owner, .refused, .handedOn, .passed: break
    }
    let event = try fact.fact.event()
    if let asked = AskedRequest(event) {
      // A claim that was passed on is none that was decided.
      if case .claimed = event, fact.outcome == .passed { return .nothing }
      return .request(subject, Request(fact: fact, event: event, asked: asked))
    }
    guard fact.outcome == .passed else { return .nothing }
    switch event {
    case .payment(let event):
      guard event.type == .paymentFailed, let attempt = event.attempt else { return .nothing }
      return .answer(
        subject,
        Permit(
          proof: "attempt:\(attempt)", status: .finishable, content: .none, reason: Permit.Reason.paymentFailed,
          transaction: event.transaction, product: event.product, attempt: attempt))
    case .restore, .notified, .claimed, .operatorActed, .spendRequested, .ordered: return .nothing
    }
  }
}

/// What somebody asked for, and what the stage before had to say of it.
struct Request: Sendable {
  var fact: AccountFact
  var event: ReceivedEvent
  var asked: AskedRequest

  /// The account that it was about, where that one was merged into this one.
  var origin: Account? { fact.via.first }

  /// Under which it is answered, and booked, in this account.
  var name: String { origin.map { AskedRequest.name(asked.name, from: $0) } ?? asked.name }
}
