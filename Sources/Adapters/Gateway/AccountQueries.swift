import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// What an account may use, as the store has it, with the instant that the answer speaks of.
struct AccountQueries: Sendable {
  let store: any StoreReader

  /// Entitlements and balances are as many as the catalogue has names; permits grow with the account's life.
  private static let maximumRows = 1000

  /// - Parameter withChains: also what Apple says of each purchase.
  func write(
    _ environment: Environment, _ account: Account, at instant: Instant, withChains: Bool
  ) throws(StoreFailure) -> Answer {
    // One that was merged into another is that other one now, and the answer names it.
    let account = try store.current(environment, account)
    let prefix: [Value] = [.text(environment.rawValue), .text(account.text)]
    let head = try store.row(RowKey(.account, prefix))
    let entitlements = try store.rows(.entitlement, prefix: prefix, after: nil, limit: Self.maximumRows)
    let balances = try store.rows(.balance, prefix: prefix, after: nil, limit: Self.maximumRows)
    let permits = try store.rows(.permit, prefix: prefix, after: nil, limit: Self.maximumRows)
    let chains = withChains ? try store.chains(environment, account, at: instant) : nil
    return .json(200) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account.text)
      json.field("at", instant.rfc3339)
      json.field("version", head?["version"].integer ?? 0)
      json.field("catalogueVersion", head?["catalogue_version"].text)
      json.field("waiting", head?["waiting"].integer == 1)
      json.field(
        "entitlements",
        array: { json in
          for row in entitlements { json.object { Self.write(row, at: instant, &$0) } }
        })
      json.field(
        "balances",
        array: { json in
          for row in balances {
            json.object { json in
              json.field("unit", row.key.values[2].text)
              let amount = row["amount"].integer ?? 0
              json.field("amount", amount)
              json.field("debt", amount < 0 ? -max(amount, -.max) : 0)
            }
          }
        })
      json.field(
        "permits",
        array: { json in
          for row in permits { json.object { PermitRow(row: row).write(&$0) } }
        })
      // More than the limit is told rather than cut in silence: each permit can be asked for by itself.
      json.field("permitsAreComplete", permits.count < Self.maximumRows)
      if let chains {
        json.field("chains", array: { json in for chain in chains.views { chain.write(&json) } })
        json.field("chainsAreComplete", chains.areComplete)
      }
    }
  }

  /// Lines of a greater version than `after`, as many as an answer holds.
  func ledger(_ environment: Environment, _ account: Account, after: Int64) throws(StoreFailure) -> Answer {
    let lines = try store.ledger(environment, account).filter { $0.version > after }
    let page = lines.prefix(Self.maximumRows)
    return .json(200) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account.text)
      json.field("lines", array: { json in for line in page { json.object { line.write(&$0) } } })
      json.field("next", lines.count > page.count ? page.last?.version : nil)
    }
  }

  private static func write(_ row: Row, at instant: Instant, _ json: inout JSONWriter) {
    let end = row["ends_at"].integer
    // Access holds for t < end. The tick that writes the expiry into the log may come a moment after the end.
    let active = row["active"].integer == 1 && (end.map { instant.milliseconds < $0 } ?? true)
    json.field("entitlement", row.key.values[2].text)
    json.field("active", active)
    json.field("endsAt", end.map { Instant(milliseconds: $0).rfc3339 })
    json.field("productId", row["product"].text)
    json.field("originalTransactionId", row["original_transaction"].text)
    json.field("catalogueVersion", row["catalogue_version"].text)
    json.field("version", row["version"].integer)
  }
}
