extension CatalogueProduct {
  /// When and where a product is offered.
  public struct Sale: Sendable, Hashable {
    public let isWithdrawn: Bool
    public let from: Instant?
    /// Not offered any more from then on.
    public let until: Instant?
    /// nil: in all of them.
    public let environments: Set<Environment>?

    public static let always = Sale()
    public static let withdrawn = Sale(isWithdrawn: true)

    public init(from: Instant? = nil, until: Instant? = nil, environments: Set<Environment>? = nil) {
      self.init(isWithdrawn: false, from: from, until: until, environments: environments)
    }

    private init(
      isWithdrawn: Bool, from: Instant? = nil, until: Instant? = nil, environments: Set<Environment>? = nil
    ) {
      self.isWithdrawn = isWithdrawn
      self.from = from
      self.until = until
      self.environments = environments
    }
  }

  /// Why a product can't be bought.
  public enum Obstacle: String, Sendable, Hashable, CaseIterable {
    /// The catalogue doesn't know it.
    case unknown
    case withdrawn
    case notYet = "not-yet"
    case noLonger = "no-longer"
    case otherEnvironment = "other-environment"
  }

  /// All that is in the way of buying it there and then; empty: nothing.
  public func obstacles(in environment: Environment, at instant: Instant) -> [Obstacle] {
    var obstacles: [Obstacle] = []
    if sale.isWithdrawn { obstacles.append(.withdrawn) }
    if let from = sale.from, instant < from { obstacles.append(.notYet) }
    if let until = sale.until, until <= instant { obstacles.append(.noLonger) }
    if let environments = sale.environments, !environments.contains(environment) { obstacles.append(.otherEnvironment) }
    return obstacles
  }
}
