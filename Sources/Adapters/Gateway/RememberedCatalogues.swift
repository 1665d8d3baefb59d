import PurchasesContracts
import PurchasesCore
import Synchronization

/// The catalogues of the store, read again when what was read is old.
final class RememberedCatalogues: Sendable {
  private let store: any StoreReader
  private let read = Mutex<(history: CatalogueHistory, at: Instant)?>(nil)

  /// Catalogues come into force seconds after they are kept: so old an answer misses none.
  private static let freshMilliseconds: Int64 = 1_000

  init(store: any StoreReader) { self.store = store }

  /// nil while no stage has kept a catalogue.
  func history(_ now: Instant) throws(StoreFailure) -> CatalogueHistory? {
    if let read = read.withLock({ $0 }), read.at <= now, now < read.at.advanced(byMilliseconds: Self.freshMilliseconds)
    {
      return read.history
    }
    guard let history = try store.catalogueHistory() else { return nil }
    read.withLock { $0 = (history, now) }
    return history
  }
}
