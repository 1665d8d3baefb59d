import PurchasesContracts
import PurchasesCore

/// Answers what can be bought, by the catalogues that the entitlements stage keeps in the store.
struct ProductQueries: Sendable {
  let catalogues: RememberedCatalogues

  /// nil while no stage has kept a catalogue.
  func answer(
    _ ids: [String]?, in environment: Environment, at instant: Instant
  ) throws(StoreFailure) -> ProductsAnswer? {
    guard let history = try catalogues.history(instant) else { return nil }
    return ProductsAnswer(history.inForce(at: instant), ids: ids, in: environment, at: instant)
  }
}
