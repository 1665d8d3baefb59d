import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// What an account may use, as the store has it, with the instant that the answer speaks of.
struct AccountQueries: Sendable {
  let store: any StoreReader
  let catalogues: RememberedCatalogues

  /// Lines of the ledger grow with the account's life.
  private static let maximumRows = 1000

  /// - Parameter instant: what to speak of; nil: of now.
  func write(
    _ environment: Environment, _ account: Account, at instant: Instant?, now: Instant, withChains: Bool
  ) throws(StoreFailure) -> Answer {
    let question = AccountQuestion(
      at: instant, now: now, history: try catalogues.history(now), withChains: withChains)
    let view = try store.answer(environment, account, question)
    return .json(200) { view.writeMembers(&$0) }
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
}
