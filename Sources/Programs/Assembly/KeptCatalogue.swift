import PurchasesContracts
import PurchasesCore

/// A catalogue's file that others have followed: whoever wants it back hands it in under a new version.
public struct SupersededCatalogue: Error, Sendable, CustomStringConvertible {
  public let description: String
}

/// The catalogues that entitlements stages work by: published to the log, and kept in the store for who decides and who reads.
public enum KeptCatalogue {
  /// A newer catalogue comes into force so long after it was handed in that all processes that share the log have read
  /// of it before: each looks once a second.
  public static let leadMilliseconds: Int64 = 5_000

  /// Brings into the store what the log has; and into the log a catalogue that is handed in, with the time from which on it is
  /// in force, once: not before now, since what is decided stays. The first one holds from the beginning, whatever it says.
  /// - Parameters:
  ///   - file: nil for who goes by what was published.
  ///   - lead: how long other processes may take to hear of it.
  /// - Throws: ``SupersededCatalogue`` for a file that is known and was followed.
  public static func keep(
    _ file: CatalogueFile?, clock: any Clock, lead: Int64, in store: any Store, group: String,
    _ log: inout CatalogueLog
  ) throws -> CatalogueHistory {
    let reader = try store.reader()
    defer { reader.close() }
    var sent: Set<String> = []
    func publish(_ event: CataloguePublished) throws {
      // What can't be read back must not be written again and again to a topic that is kept for ever.
      guard sent.insert(event.catalogue.version).inserted else {
        throw LogFailure(.unavailable, "version \(event.catalogue.version) was published and is not to be read yet")
      }
      try log.publish(event)
    }
    while true {
      let published = try log.published()
      let kept = try reader.catalogueHistory()
      try enter(published.filter { kept?[$0.event.catalogue.version] == nil }, in: store, group: group)
      for publication in published {
        guard let known = kept?[publication.event.catalogue.version] else { continue }
        try compare(publication.event, known)
      }
      guard let history = try reader.catalogueHistory() else {
        guard let file else {
          throw UsageError(
            "--catalogue: is missing, and the log has none (`purchases catalogue publish`): without it no purchase grants "
              + "anything")
        }
        try publish(CataloguePublished(catalogue: file.catalogue, from: clock.now()))
        continue
      }
      // Kept by an older program, or by one that ended before it could publish.
      let unpublished = history.versions.filter { version in
        !published.contains { $0.event.catalogue.version == version.catalogue.version }
      }
      if !unpublished.isEmpty {
        for version in unpublished {
          let from =
            version.from == .distantPast ? try first(reader, version.catalogue.version) ?? clock.now() : version.from
          try publish(CataloguePublished(catalogue: version.catalogue, from: from))
        }
        continue
      }
      guard let file else { return history }
      if let known = history[file.catalogue.version] {
        try check(file.catalogue, known, history, at: clock.now())
        return history
      }
      try publish(event(file, at: clock.now(), lead: lead))
    }
  }

  /// Publishes a catalogue for all services that go by the log; answers the time from which on it is in force, and whether it
  /// was published before.
  public static func publish(
    _ file: CatalogueFile, clock: any Clock, by operatorName: String, _ log: inout CatalogueLog
  ) throws -> (from: Instant, wasPublished: Bool) {
    func known() throws -> Instant? {
      let version = file.catalogue.version
      guard let history = try log.history(), let known = history[version] else { return nil }
      do { try check(file.catalogue, known, history, at: clock.now()) } catch let error as SupersededCatalogue {
        throw UsageError(error.description)
      }
      // As it was published: in the history the first one holds from the beginning.
      return try log.published().first { $0.event.catalogue.version == version }?.event.from
    }
    if let from = try known() { return (from, true) }
    var event = event(file, at: clock.now(), lead: leadMilliseconds, by: operatorName)
    if try log.published().isEmpty { event.from = clock.now() }
    try log.publish(event)
    guard let from = try known() else {
      throw LogFailure(.unavailable, "version \(file.catalogue.version) was published and is not to be read yet")
    }
    return (from, false)
  }

  private static func event(
    _ file: CatalogueFile, at now: Instant, lead: Int64, by operatorName: String? = nil
  ) -> CataloguePublished {
    CataloguePublished(
      catalogue: file.catalogue, from: max(file.from ?? .distantPast, now.advanced(byMilliseconds: lead)),
      operatorName: operatorName)
  }

  /// When the first one came, which holds from the beginning.
  private static func first(_ reader: any StoreReader, _ version: String) throws -> Instant? {
    let row = try reader.row(RowKey(.catalogue, [.text(version)]))
    return (row?["valid_from"].integer ?? row?["kept_at"].integer).map { Instant(milliseconds: $0) }
  }

  private static func enter(
    _ publications: [CatalogueLog.Publication], in store: any Store, group: String
  ) throws {
    guard !publications.isEmpty else { return }
    let books = try store.stage(StageName.entitlements.rawValue, group: group)
    defer { books.close() }
    for publication in publications {
      let event = publication.event
      let row = Row(
        RowKey(.catalogue, [.text(event.catalogue.version)]),
        [.integer(publication.at.milliseconds), .bytes(event.catalogue.json), .integer(event.from.milliseconds)])
      do throws(StoreFailure) { try books.amend([.insert(row)], epochs: [:]) } catch {
        // Another process was first with it: then it is there now.
        guard error.kind == .conflict else { throw error }
      }
    }
  }

  /// What log and store say of one version.
  private static func compare(_ event: CataloguePublished, _ known: CatalogueHistory.Version) throws(UsageError) {
    let isSame = known.catalogue.all == event.catalogue.all
    // The first one of a store holds from the beginning, whenever it came.
    guard !isSame || known.from != .distantPast && known.from != event.from else { return }
    throw UsageError(
      "--store: its catalogue \(event.catalogue.version) \(isSame ? "is in force from \(known.from)" : "says something else")"
        + ", and not \(isSame ? "from \(event.from)" : "") as the one that was published to the log: the store belongs to "
        + "another log, or was made by other catalogues. Rebuild it with `purchases replay`.")
  }

  private static func check(
    _ catalogue: Catalogue, _ known: CatalogueHistory.Version, _ history: CatalogueHistory, at now: Instant
  ) throws {
    let version = catalogue.version
    guard known.catalogue.all == catalogue.all else {
      throw UsageError(
        "--catalogue: version \(version) is known already and says something else: another content needs another version"
      )
    }
    // One that was kept and waits to come into force, or the one that is in force until then.
    guard version != history.newest.version, version != history.inForce(at: now).version else { return }
    throw SupersededCatalogue(
      description:
        "--catalogue: version \(version) was followed by \(history.newest.version): to go back to it, hand it "
        + "in under a new version")
  }
}
