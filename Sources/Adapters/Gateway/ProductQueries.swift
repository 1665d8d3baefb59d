import PurchasesContracts
import PurchasesCore
import Synchronization

/// Answers what can be bought, by the catalogues that the entitlements stage keeps in the store.
final class ProductQueries: Sendable {
  private let store: any StoreReader
  private let kept = Mutex<(history: CatalogueHistory, at: Instant)?>(nil)

  /// Catalogues come into force seconds after they are kept: so old an answer misses none.
  private static let freshMilliseconds: Int64 = 1_000

  init(store: any StoreReader) { self.store = store }

  /// nil while no stage has kept a catalogue.
  func answer(
    _ ids: [String]?, in environment: Environment, at instant: Instant
  ) throws(StoreFailure) -> ProductsAnswer? {
    guard let history = try history(instant) else { return nil }
    return ProductsAnswer(history.inForce(at: instant), ids: ids, in: environment, at: instant)
  }

  private func history(_ now: Instant) throws(StoreFailure) -> CatalogueHistory? {
    if let kept = kept.withLock({ $0 }), kept.at <= now, now < kept.at.advanced(byMilliseconds: Self.freshMilliseconds)
    {
      return kept.history
    }
    guard let history = try store.catalogueHistory() else { return nil }
    kept.withLock { $0 = (history, now) }
    return history
  }
}
