import PurchasesContracts
import PurchasesCore

/// Reads accounts from a store.
public struct StateReading {
  private let reader: any StoreReader
  private let history: CatalogueHistory

  static let page = 500

  public init(_ reader: any StoreReader, history: CatalogueHistory) {
    self.reader = reader
    self.history = history
  }

  /// An account in every environment that knows it, in one of them where it is named. One whose purchases have led to no
  /// event yet, since they wait or were over when they came, is known.
  /// - Parameter instant: what to speak of; nil: of now.
  public func views(
    _ account: Account, in environment: Environment?, at instant: Instant?, now: Instant, withChains: Bool = false
  ) throws -> [AccountView] {
    let question = AccountQuestion(at: instant, now: now, history: history, withChains: withChains)
    return try Environment.allCases.filter { environment == nil || environment == $0 }
      .map { try reader.answer($0, account, question) }.filter(\.isKnown)
  }

  /// The digest over all accounts at an instant.
  public func digest(at instant: Instant) throws -> StateDigest {
    var digest = StateDigest(at: instant)
    try forEach(at: instant) { digest.add($0) }
    return digest
  }

  /// Every account, in byte order of environment and account.
  public func forEach(at instant: Instant, _ body: (AccountView) throws -> Void) throws {
    var after: [Value]?
    while true {
      let rows = try reader.rows(.account, prefix: [], after: after, limit: Self.page)
      for row in rows { try body(try reader.view(row, history: history, at: instant)) }
      guard rows.count == Self.page, let last = rows.last else { return }
      after = last.key.values
    }
  }
}
