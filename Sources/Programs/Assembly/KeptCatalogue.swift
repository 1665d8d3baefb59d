import PurchasesContracts
import PurchasesCore

/// The catalogue as the entitlements stage leaves it in the store when it starts.
public enum KeptCatalogue {
  /// More versions than anybody has.
  static let maximumVersions = 100_000

  public static func keep(_ file: CatalogueFile, at now: Instant, in store: any Store, group: String) throws {
    let books = try store.stage(StageName.entitlements.rawValue, group: group)
    defer { books.close() }
    let key = RowKey(.catalogue, [.text(file.catalogue.version)])
    try books.amend([.put(Row(key, [.integer(now.milliseconds), .bytes(file.document), .null]))], epochs: [:])
  }

  /// The one that a stage started with last.
  public static func newest(_ reader: any StoreReader) throws -> Catalogue? {
    let rows = try reader.rows(.catalogue, prefix: [], after: nil, limit: maximumVersions)
    guard let row = rows.max(by: { ($0["kept_at"].integer ?? 0) < ($1["kept_at"].integer ?? 0) }),
      let document = row["document"].bytes
    else { return nil }
    do { return try Catalogue(parsing: document) } catch {
      throw StoreFailure(.corrupt, "the catalogue in the store: \(error)")
    }
  }
}
