import PurchasesCore

extension StoreReader {
  /// All catalogues that entitlements stages have worked by, or will; nil while there is none.
  /// - Throws: `corrupt` for one that can't be read.
  public func catalogueHistory() throws(StoreFailure) -> CatalogueHistory? {
    var versions: [(catalogue: Catalogue, from: Instant)] = []
    var after: [Value]?
    // Documents are some kilobytes each.
    let page = 1_000
    while true {
      let rows = try rows(.catalogue, prefix: [], after: after, limit: page)
      for row in rows {
        // Kept by an older program: that which started with it last is the best that is known.
        guard let document = row["document"].bytes, let from = row["valid_from"].integer ?? row["kept_at"].integer
        else {
          throw StoreFailure(.corrupt, "a catalogue in the store has a column that is not what it must be")
        }
        do throws(CatalogueFailure) {
          versions.append((try Catalogue(parsing: document), Instant(milliseconds: from)))
        } catch {
          throw StoreFailure(.corrupt, "a catalogue in the store: \(error)")
        }
      }
      guard rows.count == page, let last = rows.last else { break }
      after = last.key.values
    }
    return CatalogueHistory(versions)
  }
}
