/// The catalogues that have been in force, one after the other. Which of them counts is told by the time of what is decided,
/// and not by when a process was started: so a replay years later decides the same.
public struct CatalogueHistory: Sendable, Hashable {
  public struct Version: Sendable, Hashable {
    /// As it stood while it was in force: it knows what consumables were worth under those before it.
    public let catalogue: Catalogue
    /// Log time from which on it is in force; of the first one `distantPast`, whenever it came.
    public let from: Instant
  }

  /// In the order in which they came into force; never empty.
  public let versions: [Version]

  /// One catalogue for all time.
  public init(_ catalogue: Catalogue) { self.init(first: catalogue, later: []) }

  /// - Parameter later: those after the first one with the time from which on each is in force, in whatever order. Two of one
  ///   instant come in order of their names.
  public init(first: Catalogue, later: [(catalogue: Catalogue, from: Instant)]) {
    var inOrder: [(catalogue: Catalogue, from: Instant)] = [(catalogue: first, from: .distantPast)]
    inOrder += Self.inOrder(later)
    var versions: [Version] = []
    for (catalogue, from) in inOrder {
      versions.append(
        Version(catalogue: Catalogue(catalogue, after: versions.last?.catalogue, from: from), from: from))
    }
    self.versions = versions
  }

  /// Of catalogues in whatever order: the earliest is the first one. nil without any.
  public init?(_ versions: [(catalogue: Catalogue, from: Instant)]) {
    let inOrder = Self.inOrder(versions)
    guard let first = inOrder.first else { return nil }
    self.init(first: first.catalogue, later: Array(inOrder.dropFirst()))
  }

  private static func inOrder(
    _ versions: [(catalogue: Catalogue, from: Instant)]
  ) -> [(catalogue: Catalogue, from: Instant)] {
    versions.sorted { $0.from == $1.from ? $0.catalogue.version < $1.catalogue.version : $0.from < $1.from }
  }

  /// The history as far as a version of that name; nil without one.
  public func upTo(_ version: String) -> CatalogueHistory? {
    guard let last = versions.lastIndex(where: { $0.catalogue.version == version }) else { return nil }
    return CatalogueHistory(versions[...last], next: [])
  }

  /// As it would go on with another catalogue that came into force then.
  public func followed(by next: Catalogue, from instant: Instant) -> CatalogueHistory {
    CatalogueHistory(versions[...place(at: instant)], next: [(catalogue: next, from: instant)])
  }

  private init(_ known: ArraySlice<Version>, next: [(catalogue: Catalogue, from: Instant)]) {
    let later = known.dropFirst().map { (catalogue: $0.catalogue, from: $0.from) }
    self.init(first: known[0].catalogue, later: later + next)
  }

  /// The newest one, in force or not yet.
  public var newest: Catalogue { versions[versions.count - 1].catalogue }

  public subscript(_ version: String) -> Version? { versions.first { $0.catalogue.version == version } }

  /// The catalogue in force at that log time.
  /// - Parameter notBefore: the version that an account was decided by last. Records are not in order of time to the
  ///   millisecond, and no account goes back to a catalogue that it has left.
  public func inForce(at instant: Instant, notBefore version: String? = nil) -> Catalogue {
    let place = place(at: instant)
    let catalogue = versions[place].catalogue
    guard let version, version != catalogue.version,
      let last = versions.lastIndex(where: { $0.catalogue.version == version }), last > place
    else { return catalogue }
    return versions[last].catalogue
  }

  /// The catalogue in force at that time, as far as it had come to an account: what waits to be settled by a newer one still
  /// stands as the older one had it.
  public func inForce(at instant: Instant, notAfter version: String) -> Catalogue {
    let place = place(at: instant)
    guard let last = versions.lastIndex(where: { $0.catalogue.version == version }), last < place else {
      return versions[place].catalogue
    }
    return versions[last].catalogue
  }

  /// Sweeps of all accounts end long before so many more catalogues have come.
  public static let maximumOutdated = 16

  /// The names of those before the one in force at that time, the newest first: accounts that were decided by one of them
  /// last are to be settled anew.
  public func outdated(at instant: Instant) -> [String] {
    versions[..<place(at: instant)].suffix(Self.maximumOutdated).reversed().map(\.catalogue.version)
  }

  private func place(at instant: Instant) -> Int {
    // Nearly always the newest.
    versions.lastIndex { $0.from <= instant } ?? 0
  }
}
