import PurchasesContracts
import PurchasesCore

public struct OwnershipSettings: Sendable, Hashable {
  /// What a restore by another account does to a purchase that no token binds.
  public var restorePolicy: RestorePolicy
  /// For how long a purchase that the policy moved stays where it is; nil: it may be moved again at once.
  public var restoreDamping: CalendarDuration?
  /// Where the answer to a proof belongs of which nothing can be believed, its environment included.
  public var environment: Environment

  public init(
    restorePolicy: RestorePolicy = .keep, restoreDamping: CalendarDuration? = nil,
    environment: Environment = .production
  ) {
    self.restorePolicy = restorePolicy
    self.restoreDamping = restoreDamping
    self.environment = environment
  }

  var rules: RestoreRules { RestoreRules(restorePolicy, damping: restoreDamping) }
}

/// Finds the account that a verified purchase belongs to, and passes everything on under that account's key: from here on
/// an account has one writer.
public struct OwnershipStage: Stage {
  public let settings: OwnershipSettings

  public init(_ settings: OwnershipSettings = OwnershipSettings()) { self.settings = settings }

  public var name: StageName { .ownership }
  public var inputs: [Topic] { [.verified] }
  public var needsDependOnFacts: Bool { true }

  public func read(_ record: Incoming) -> (any Sendable)? { Reading(record) }

  public func needs(_ record: Incoming, _ facts: any Facts) -> [Need] {
    let reading = record.reading as? Reading ?? Reading(record)
    var needs: [Need] = []
    let aliases = Aliases(facts: facts)
    func chain(_ environment: Environment, _ original: OriginalTransactionID) {
      let key = ChainRow.key(environment, original)
      needs.append(.row(key))
      guard let row = facts.row(key) else { return }
      if let owner = row.values[0].text.flatMap({ Account($0) }) {
        needs += aliases.needs(environment, owner)
      }
      // A row that can't be read is met by `decide`.
      guard let ownership = try? ChainRow.ownership(row) else { return }
      for account in [ownership.token, ownership.claimant, ownership.order?.to] + ownership.sharers {
        if let account { needs += aliases.needs(environment, account) }
      }
    }
    switch reading {
    case .proof(let proof):
      if let original = proof.originalTransaction { chain(proof.environment, original) }
      if let notification = proof.event.notification {
        needs.append(.row(Notifications.key(proof.environment, notification.uuid)))
      }
      for account in proof.accounts { needs += aliases.needs(proof.environment, account) }
    case .verdict(let verdict): needs += aliases.needs(verdict.environment ?? settings.environment, verdict.account)
    case .claim(let claim, _):
      chain(claim.environment, claim.originalTransaction)
      needs += aliases.needs(claim.environment, claim.account)
    case .order(let order, _):
      needs += aliases.needs(order.environment, order.account)
      switch order.order {
      case .transfer(let original, let to):
        chain(order.environment, original)
        needs += aliases.needs(order.environment, to)
      case .merge(let into): needs += aliases.needs(order.environment, into)
      case .grant, .revoke, .reverse, .adjust: break
      }
    case .fact(let environment, let account, _): needs += aliases.needs(environment, account)
    case .nothing, .unreadable: break
    }
    return needs
  }

  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    var decision = Decision(record: record, aliases: Aliases(facts: facts), facts: facts, settings: settings)
    do throws(FieldFailure) {
      switch record.reading as? Reading ?? Reading(record) {
      case .proof(let proof): try decision.decide(proof)
      case .verdict(let verdict): decision.decide(verdict)
      case .claim(let claim, let fact): try decision.decide(claim, fact)
      case .order(let order, let fact): try decision.decide(order, fact)
      case .fact(let environment, let account, let fact):
        if fact.type == .creditSpendRequested {
          decision.ask(fact, environment, account)
        } else {
          decision.pass(fact, environment, account)
        }
      case .nothing: break
      case .unreadable(let failure): throw failure
      }
    } catch {
      // Only our stages write this topic: what can't be read there must never happen.
      return [.quarantine(reason: error.description, alarm: .unreadable)]
    }
    return decision.actions
  }
}
