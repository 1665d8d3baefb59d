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
