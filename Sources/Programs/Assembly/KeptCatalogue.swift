import PurchasesContracts
import PurchasesCore

/// The catalogues that entitlements stages have worked by, as they leave them in the store.
public enum KeptCatalogue {
  /// A newer catalogue comes into force so long after it was handed in that all processes that share the store have read
  /// of it before: each looks once a second.
  public static let leadMilliseconds: Int64 = 5_000

  /// Keeps the catalogue with the time from which on it is in force, once: not before now, since what is decided stays. The
  /// first one in a store holds from the beginning.
  /// - Parameter lead: how long other processes may take to hear of it.
  public static func keep(
    _ file: CatalogueFile, at now: Instant, lead: Int64, in store: any Store, group: String
  ) throws -> CatalogueHistory {
    let reader = try store.reader()
    defer { reader.close() }
    while true {
      if let history = try reader.catalogueHistory(), let known = history[file.catalogue.version] {
        try check(file.catalogue, known, history, at: now)
        return history
      }
      let from = max(file.from ?? .distantPast, now.advanced(byMilliseconds: lead))
      let books = try store.stage(StageName.entitlements.rawValue, group: group)
      defer { books.close() }
      let row = Row(
        RowKey(.catalogue, [.text(file.catalogue.version)]),
        [.integer(now.milliseconds), .bytes(file.document), .integer(from.milliseconds)])
      do throws(StoreFailure) { try books.amend([.insert(row)], epochs: [:]) } catch {
        // Another process was first with it: then it is there now.
        guard error.kind == .conflict else { throw error }
      }
    }
  }

  private static func check(
    _ catalogue: Catalogue, _ known: CatalogueHistory.Version, _ history: CatalogueHistory, at now: Instant
  ) throws(UsageError) {
    let version = catalogue.version
    guard known.catalogue.all == catalogue.all else {
      throw UsageError(
        "--catalogue: version \(version) is in the store already and says something else: another content needs another "
          + "version")
    }
    // One that was kept and waits to come into force, or the one that is in force until then.
    guard version != history.newest.version, version != history.inForce(at: now).version else { return }
    throw UsageError(
      "--catalogue: version \(version) was followed by \(history.newest.version): to go back to it, hand it in under a "
        + "new version")
  }
}
