import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesTestKit

/// What must hold of a world whatever happened in it. Each check answers what it found wrong, in words.
struct Properties {
  let world: World
  /// The newest statement of each purchase, picked out of everything that Apple said, one by one.
  private var newest: [String: TransactionRevision] = [:]
  private var hasOrders: Set<String> = []

  init(_ world: World, _ arrivals: [RandomHistory.Arrival]) throws {
    self.world = world
    for arrival in arrivals {
      switch arrival.event {
      case .verified(let event):
        for part in event.parts where part.kind == .transaction {
          let revision = try part.transactionRevision()
          let key =
            "\(revision.environment.rawValue)/\(revision.businessKey.originalTransaction) \(revision.businessKey.part)"
          if let known = newest[key], !(known.rank < revision.rank) { continue }
          newest[key] = revision
        }
      case .noted(let fact):
        if case .ordered(let order) = try fact.event() { hasOrders.insert(order.account.text) }
      case .rejected, .pending: break
      }
    }
  }

  private func chain(_ revision: TransactionRevision) -> String {
    "\(revision.environment.rawValue)/\(revision.originalTransaction)"
  }

  private var events: [EntitlementEvent] {
    world.records.filter { $0.coordinates.topic == world.topics.name(.entitlements) }.map { Samples.event($0) }
  }

  private var owners: [String: String] {
    var owners: [String: String] = [:]
    for row in world.ownership.tables.unordered(.chain) {
      owners[row.key.values.compactMap(\.text).joined(separator: "/")] = row["account"].text
    }
    return owners
  }

  private var accounts: [AccountRow] {
    world.entitlements.tables.unordered(.account).compactMap { try? AccountRow($0) }
  }

  private static func text(_ environment: Environment, _ account: Account) -> String {
    "\(environment.rawValue)/\(account)"
  }

  // MARK: One effect per business key

  /// What events say was credited for a consumable, over all accounts, is what its newest statement leaves of it: once, whoever
  /// sent it and however often, and nothing while it is nobody's.
  func oneEffectPerKey() -> [String] {
    var credited: [String: Int64] = [:]
    for event in events {
      guard case .credit(let credit) = event.content, let transaction = credit.transaction else { continue }
      credited["\(event.environment.rawValue)/\(transaction)", default: 0] +=
        credit.isAddition ? credit.amount : -credit.amount
    }
    var wrong: [String] = []
    let owners = owners
    for revision in newest.values where revision.type == .consumable {
      let name = "\(revision.environment.rawValue)/\(revision.transaction)"
      let due = owners[chain(revision)] == nil ? 0 : left(revision)
      if credited[name, default: 0] != due { wrong.append("\(name): \(credited[name, default: 0]), and not \(due)") }
    }
    return wrong
  }

  /// By hand: the amount of the catalogue, times the pieces, without what was refunded.
  private func left(_ revision: TransactionRevision) -> Int64 {
    guard case .consumable(_, let amount) = world.catalogue.product(revision.product, as: .consumable)?.terms else {
      return 0
    }
    let worth = Double(amount * revision.quantity)
    guard revision.revocationDate != nil else { return Int64(worth) }
    return Int64(worth - (worth * Double(revision.revocationPercentage ?? 100_000) / 100_000).rounded())
  }

  // MARK: Conservation of credits

  /// Each balance is the sum of its lines and of its events, each line has two different sides, one of them the account's, and
  /// balances follow one another without a jump.
  func conservation() -> [String] {
    var wrong: [String] = []
    var lines: [String: Int64] = [:]
    for row in world.entitlements.tables.unordered(.ledger) {
      let name = row.key.values.prefix(3).compactMap(\.text).joined(separator: "/")
      let (debit, credit, amount) = (row["debit"].text, row["credit"].text, row["amount"].integer ?? 0)
      if amount <= 0 || debit == credit || (debit == "account") == (credit == "account") {
        wrong.append("\(name): a line moves \(amount) from \(debit ?? "-") to \(credit ?? "-")")
      }
      lines[name, default: 0] += credit == "account" ? amount : -amount
    }
    var said: [String: Int64] = [:]
    for event in events {
      guard case .credit(let credit) = event.content else { continue }
      let name = "\(Self.text(event.environment, event.account))/\(credit.unit)"
      if said[name, default: 0] != credit.balanceBefore {
        wrong.append("\(name): version \(event.version) begins at \(credit.balanceBefore), and not \(said[name] ?? 0)")
      }
      said[name] = credit.balanceAfter
    }
    for row in world.entitlements.tables.unordered(.balance) {
      let name = row.key.values.compactMap(\.text).joined(separator: "/")
      let balance = row["amount"].integer ?? 0
      if lines[name, default: 0] != balance || said[name, default: 0] != balance {
        wrong.append("\(name): balance \(balance), lines \(lines[name] ?? 0), events \(said[name] ?? 0)")
      }
      lines[name] = nil
    }
    return wrong + lines.filter { $0.value != 0 }.map { "\($0.key): lines without a balance" }
  }

  // MARK: At most one owner

  /// No record of `owned` gives a purchase to a second owner while the first one has it, and in the end the owner, and nobody
  /// else, holds what is known of it.
  func atMostOneOwner() -> [String] {
    var wrong: [String] = []
    var holder: [String: String] = [:]
    for record in world.records where record.coordinates.topic == world.topics.name(.owned) {
      guard let type = try? Envelope(reading: record.record).type,
        let event = try? OwnedEvent(type: type, data: record.record.value ?? [])
      else { continue }
      switch event {
      case .owned(let owned) where owned.basis != .share:
        let chain = "\(owned.environment.rawValue)/\(owned.originalTransaction)"
        if let known = holder[chain], known != owned.account.text { wrong.append("\(chain): \(known) has it already") }
        holder[chain] = owned.account.text
      case .transferred(let transfer):
        let chain = "\(transfer.environment.rawValue)/\(transfer.originalTransaction)"
        if transfer.account == transfer.from {
          holder[chain] = nil
        } else {
          if holder[chain] != nil { wrong.append("\(chain): transferred to a second owner") }
          holder[chain] = transfer.to.text
        }
      default: break
      }
    }
    let owners = owners
    for account in accounts {
      for purchase in account.state.facts.purchases {
        let chain = "\(account.environment.rawValue)/\(purchase.key.originalTransaction)"
        if owners[chain] != account.account.text { wrong.append("\(chain): \(account.account) holds it too") }
      }
    }
    // What was claimed before anybody has heard of it is not in the topic yet.
    let known = Set(newest.values.map { chain($0) })
    for (chain, owner) in owners where known.contains(chain) && holder[chain] != owner {
      wrong.append("\(chain): \(holder[chain] ?? "nobody")")
    }
    return wrong
  }

  // MARK: No access after a refund

  /// Where every purchase of an account was refunded, nothing is left to use, now or later, computed or published.
  func noAccessAfterRefund(at instant: Int64) -> [String] {
    var running: Set<String> = []
    var refunded: Set<String> = []
    let owners = owners
    for revision in newest.values where revision.type != .consumable {
      guard let owner = owners[chain(revision)] else { continue }
      let name = "\(revision.environment.rawValue)/\(owner)"
      if revision.revocationDate == nil { running.insert(name) } else { refunded.insert(name) }
    }
    var wrong: [String] = []
    for account in accounts where !hasOrders.contains(account.account.text) {
      let name = Self.text(account.environment, account.account)
      guard refunded.contains(name), !running.contains(name) else { continue }
      let active = Access.active(account.state.facts, world.catalogue, at: Instant(milliseconds: instant))
      if !active.isEmpty || !account.state.published.isEmpty { wrong.append("\(name): \(active.map(\.entitlement))") }
    }
    return wrong
  }

  /// How many accounts the check above has something to say about.
  func refundedAccounts() -> Int {
    Set(newest.values.filter { $0.revocationDate != nil }.compactMap { owners[chain($0)] }).count
  }
}
