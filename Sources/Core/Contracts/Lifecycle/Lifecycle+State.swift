extension Lifecycle {
  /// Where a purchase stands when the notification comes: facts that don't hang on one another, as they meet in practice.
  public enum State: String, Sendable, Hashable, CaseIterable {
    case unknown, running, ending, changing, grace, retry, expired, refunded, upgraded
    case lifetime
    case lifetimeRefunded = "lifetime refunded"
    case credited
    case creditsRefunded = "credits refunded"

    /// Whether the account has a subscription of which the notification speaks. Where not, one about a subscription is the
    /// first that is heard of it.
    public var hasSubscription: Bool {
      switch self {
      case .running, .ending, .changing, .grace, .retry, .expired, .refunded, .upgraded: true
      case .unknown, .lifetime, .lifetimeRefunded, .credited, .creditsRefunded: false
      }
    }

    public var meaning: String {
      switch self {
      case .unknown: "Nothing is known of the purchase."
      case .running: "A subscription's period runs."
      case .ending: "A period runs, and the customer turned auto-renew off."
      case .changing: "A period runs, and the next one is to be of another product."
      case .grace: "The period is over, the charge failed, and Apple's grace runs."
      case .retry: "The period is over, the charge failed, and Apple still tries, without grace."
      case .expired: "The period is over, and Apple said that nothing follows."
      case .refunded: "The period would still run, and was given back."
      case .upgraded: "A higher level replaced the period of which the notification speaks, and runs."
      case .lifetime: "A non-consumable was bought."
      case .lifetimeRefunded: "A non-consumable was bought and given back."
      case .credited: "A consumable was bought."
      case .creditsRefunded: "A consumable was bought and given back."
      }
    }

    /// What is known of it, one thing beside the other.
    public var facts: Facts {
      switch self {
      case .unknown: Facts()
      case .running: Facts(isPaid: true, renews: true)
      case .ending: Facts(isPaid: true, renews: false)
      case .changing: Facts(isPaid: true, renews: true, changesProduct: true)
      case .grace: Facts(renews: true, isInRetry: true, isInGrace: true)
      case .retry: Facts(renews: true, isInRetry: true)
      case .expired: Facts(renews: false)
      case .refunded: Facts(isPaid: true, renews: true, isRevoked: true)
      case .upgraded: Facts(isPaid: true, renews: true, isReplaced: true)
      case .lifetime, .credited: Facts(isPaid: true)
      case .lifetimeRefunded, .creditsRefunded: Facts(isPaid: true, isRevoked: true)
      }
    }
  }

  /// What is known of a purchase, each by itself; together they are where it stands.
  public struct Facts: Sendable, Hashable {
    /// Paid for a time that isn't over, or for ever.
    public var isPaid = false
    /// Auto-renew; nil where nothing renews or nobody said.
    public var renews: Bool?
    /// The next period is of another product.
    public var changesProduct = false
    /// Apple still tries to charge.
    public var isInRetry = false
    public var isInGrace = false
    public var isRevoked = false
    /// A later period of another product took its place.
    public var isReplaced = false
  }
}
