import PurchasesContracts
import PurchasesCore

/// Catalogues as people name them: by a file, or by a version that the store keeps.
public struct CatalogueReading {
  /// nil where there is no store, or nothing in it.
  public let kept: CatalogueHistory?

  public init(_ reader: (any StoreReader)?) throws(StoreFailure) { kept = try reader?.catalogueHistory() }

  public static func isFile(_ name: String) -> Bool { Files.exists(name) }

  public static func file(_ path: String) throws(UsageError) -> CatalogueFile {
    let document: [UInt8]
    do throws(Files.SystemFailure) { document = try Files.read(path) } catch {
      throw UsageError("\(path): can't be read: \(error.reason)")
    }
    do throws(CatalogueFailure) { return try CatalogueFile(parsing: document) } catch {
      throw UsageError("\(path): \(error)")
    }
  }

  /// The catalogue of that name as the newest of a history: with those before it, where the store keeps it.
  public func named(_ name: String) throws(UsageError) -> CatalogueHistory {
    if Files.exists(name) {
      let catalogue = try Self.file(name).catalogue
      if let known = kept?.upTo(catalogue.version), known.newest.all == catalogue.all { return known }
      return CatalogueHistory(catalogue)
    }
    guard let known = kept?.upTo(name) else {
      throw UsageError("\(name): is no file, and no version of the catalogue that the store keeps")
    }
    return known
  }

  /// Calls the body with what each account of the store would gain or lose, and answers how many there are.
  public static func forEachAccount(
    of reader: any StoreReader, _ diff: CatalogueDiff, _ body: (CatalogueDiff.Account) throws -> Void
  ) throws -> Int64 {
    var after: [Value]?
    var count: Int64 = 0
    while true {
      let rows = try reader.rows(.account, prefix: [], after: after, limit: StateReading.page)
      for row in rows {
        let account = diff.account(try AccountRow(row))
        count += 1
        if !account.isEmpty { try body(account) }
      }
      guard rows.count == StateReading.page, let last = rows.last else { return count }
      after = last.key.values
    }
  }
}
