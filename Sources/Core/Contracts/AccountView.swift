import PurchasesCore
import PurchasesJSON

/// A row of the table `permit`.
public struct PermitRow: Sendable, Hashable {
  public var permit: Permit
  /// The id of the event that told of it.
  public var event: String?
  /// Log time.
  public var decidedAt: Instant

  public init(permit: Permit, event: String? = nil, decidedAt: Instant) {
    self.permit = permit
    self.event = event
    self.decidedAt = decidedAt
  }

  public static func key(_ environment: Environment, _ account: Account, proof: String) -> RowKey {
    RowKey(.permit, [.text(environment.rawValue), .text(account.text), .text(proof)])
  }

  /// - Throws: for a row that neither this program nor an older one wrote.
  public init(_ row: Row) throws(FieldFailure) {
    guard case .text(let proof) = row.key.values[2], let status = row["status"].text.flatMap(Permit.Status.init),
      let content = row["content"].text.flatMap(Permit.Content.init), let reason = row["reason"].text,
      let decidedAt = row["decided_at"].integer
    else { throw FieldFailure("permit", "has a column that is not what it must be") }
    let attempt = proof.hasPrefix("attempt:") ? String(proof.dropFirst(8)) : nil
    self.init(
      permit: Permit(
        proof: proof, status: status, content: content, reason: reason,
        transaction: row["transaction"].text.flatMap { TransactionID($0) },
        product: row["product"].text.flatMap { ProductID($0) }, attempt: attempt),
      event: row["event"].text, decidedAt: Instant(milliseconds: decidedAt))
  }

  public func writeMembers(_ json: inout JSONWriter) {
    json.field("proof", permit.proof)
    json.field("status", permit.status.rawValue)
    json.field("content", permit.content.rawValue)
    json.field("reason", permit.reason)
    json.field("transactionId", permit.transaction?.text)
    json.field("productId", permit.product?.text)
    json.field("attemptId", permit.attempt)
    json.field("event", event)
    json.field("decidedAt", rfc3339: decidedAt)
  }
}

/// What an account may use at an instant, computed from what its row in the store holds: for people and HTTP answers.
public struct AccountView: Sendable {
  public var environment: Environment
  public var account: Account
  public var at: Instant
  /// How far the entitlements stage had come in the account's partition of `owned` when this was read: the next record. nil
  /// for an account that nothing is known of, and where that wasn't asked.
  public var position: Coordinates?
  /// Of the account's newest event; 0 while there is none.
  public var version: Int64
  /// The catalogue that the account was settled by last; nil for an account that nothing is known of.
  public var catalogueVersion: String?
  /// Those active at the instant, in order.
  public var entitlements: [(entitlement: EntitlementID, state: EntitlementState)]
  /// In order of unit.
  public var balances: [Balance]
  /// In order of proof.
  public var permits: [PermitRow]
  /// False where there are more than an answer holds: each can be asked for by itself.
  public var permitsAreComplete = true
  /// Products that the catalogue doesn't know and that purchases wait for.
  public var waitingFor: [ProductID]
  /// What Apple says of each purchase; nil where it was not asked for.
  public var chains: [ChainView]?
  public var chainsAreComplete = true

  /// Whether the store has anything of it: an account of which all proofs were refused has their permits only.
  public var isKnown: Bool { catalogueVersion != nil || !permits.isEmpty }

  /// By the catalogue in force at the instant, as far as the account has been settled by it.
  public init(_ row: AccountRow, permits: [PermitRow], history: CatalogueHistory, at instant: Instant) {
    environment = row.environment
    account = row.account
    at = instant
    version = row.version
    catalogueVersion = row.catalogueVersion
    entitlements = Access.active(
      row.state.facts, history.inForce(at: instant, notAfter: row.catalogueVersion), at: instant)
    balances = row.state.balances
    self.permits = permits
    // What waits, waits now, whatever instant is asked for.
    let catalogue = history[row.catalogueVersion]?.catalogue ?? history.newest
    waitingFor = row.state.facts.missing(catalogue).sorted()
  }

  /// An account that nothing is known of.
  public init(_ environment: Environment, _ account: Account, at instant: Instant) {
    self.environment = environment
    self.account = account
    at = instant
    version = 0
    entitlements = []
    balances = []
    permits = []
    waitingFor = []
  }

  public var json: [UInt8] {
    var writer = JSONWriter()
    write(&writer)
    return writer.bytes
  }

  public func write(_ json: inout JSONWriter) { json.object { writeMembers(&$0) } }

  public func writeMembers(_ json: inout JSONWriter) {
    json.field("environment", environment.rawValue)
    json.field("account", account.text)
    json.field("at", rfc3339: at)
    json.field("position", position?.description)
    json.field("version", version)
    json.field("catalogueVersion", catalogueVersion)
    json.field(
      "entitlements",
      array: { json in
        for (entitlement, state) in entitlements {
          json.object { json in
            json.field("entitlement", entitlement.text)
            state.write(&json)
          }
        }
      })
    json.field(
      "balances",
      array: { json in
        for balance in balances {
          json.object { json in
            json.field("unit", balance.unit.text)
            json.field("amount", balance.amount)
            json.field("debt", balance.debt)
          }
        }
      })
    json.field("permits", array: { json in for permit in permits { json.object { permit.writeMembers(&$0) } } })
    json.field("permitsAreComplete", permitsAreComplete)
    json.field("waitingFor", array: { json in for product in waitingFor { json.element(product.text) } })
    if let chains {
      json.field("chains", array: { json in for chain in chains { chain.write(&json) } })
      json.field("chainsAreComplete", chainsAreComplete)
    }
  }
}

extension StoreReader {
  /// An account's row as the store has it now.
  /// - Parameter most: permits that it holds at most; nil: all.
  /// - Throws: `corrupt` for rows that can't be read.
  public func view(
    _ row: Row, history: CatalogueHistory, at instant: Instant, most: Int? = nil
  ) throws(StoreFailure) -> AccountView {
    let account: AccountRow
    do throws(FieldFailure) { account = try AccountRow(row) } catch { throw StoreFailure(.corrupt, "\(error)") }
    let permits = try permits(of: row.key.values, most: most)
    var view = AccountView(account, permits: permits.rows, history: history, at: instant)
    view.permitsAreComplete = permits.areComplete
    return view
  }

  /// - Parameter prefix: environment and account.
  func permits(of prefix: [Value], most: Int?) throws(StoreFailure) -> (rows: [PermitRow], areComplete: Bool) {
    // Pages of a size that bounds memory whoever asks for how many permits; one more than wanted tells whether there are more.
    let page = most.map { $0 + 1 } ?? 1_000
    var permits: [PermitRow] = []
    var after: [Value]?
    while true {
      let rows = try rows(.permit, prefix: prefix, after: after, limit: page)
      for row in rows {
        do throws(FieldFailure) { permits.append(try PermitRow(row)) } catch {
          throw StoreFailure(.corrupt, "\(error)")
        }
      }
      guard rows.count == page, let last = rows.last, most == nil else { break }
      after = last.key.values
    }
    guard let most, permits.count > most else { return (permits, true) }
    return (Array(permits.prefix(most)), false)
  }
}
