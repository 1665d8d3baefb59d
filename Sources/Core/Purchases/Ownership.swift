/// Why a chain is an account's.
public enum OwnershipBasis: String, Sendable, Hashable, CaseIterable {
  /// The newest verified revision that names an account.
  case token
  /// The first authenticated caller, in recorded order.
  case claim
  /// An operator's transfer.
  case order
  /// Another account's chain, shared by policy: access, no credits, not the owner.
  case share
  /// Nobody's yet.
  case none
}

/// What a restore by another account does to a purchase that no token binds.
public enum RestorePolicy: String, Sendable, Hashable, CaseIterable {
  case keep, transfer, share
}

/// The restore policy, and how often it may move one purchase.
public struct RestoreRules: Sendable, Hashable {
  public var policy: RestorePolicy
  /// After a move the purchase stays where it is for this long, however many accounts pull at it; nil: no damping.
  public var damping: CalendarDuration?

  public init(_ policy: RestorePolicy, damping: CalendarDuration? = nil) {
    self.policy = policy
    self.damping = damping
  }
}

/// Whose a chain is: what Apple says folds in any order, claims and orders are decided once, in recorded order.
public struct Ownership: Sendable, Hashable {
  /// The account that Apple's newest statement names.
  public private(set) var token: Account?
  public private(set) var tokenRank: RevisionRank?
  public private(set) var claimant: Account?
  /// Claims that were decided, newest last: one that comes again has no second effect.
  public private(set) var claims: [Claim]
  public private(set) var order: Order?
  /// Accounts that share the chain, in order.
  public private(set) var sharers: [Account]

  /// A claim and the source's own name of it: a proof's digest or an attempt.
  public struct Claim: Sendable, Hashable {
    public var account: Account
    public var source: String

    /// An attempt is decided once and for all; the same proof may be restored again another day.
    var isAttempt: Bool { source.hasPrefix("attempt:") }

    public init(account: Account, source: String) {
      self.account = account
      self.source = source
    }
  }

  public struct Order: Sendable, Hashable {
    public var to: Account
    public var orderID: String
    /// Log time of the order. A statement of Apple's signed later, and naming another account than then, overrides it.
    public var at: Instant
    public var overToken: Account?

    public init(to: Account, orderID: String, at: Instant, overToken: Account?) {
      self.to = to
      self.orderID = orderID
      self.at = at
      self.overToken = overToken
    }
  }

  /// The last time that the restore policy moved the chain from one account to another: log time.
  public private(set) var movedAt: Instant?

  /// Claims that are remembered: older ones are forgotten, and one of those that came again would be a new one.
  public static let maximumClaims = 64

  /// A purchase shared by more accounts than this is handed around rather than restored.
  public static let maximumSharers = 64

  public init(
    token: Account? = nil, tokenRank: RevisionRank? = nil, claimant: Account? = nil, claims: [Claim] = [],
    order: Order? = nil, sharers: [Account] = [], movedAt: Instant? = nil
  ) {
    self.token = token
    self.tokenRank = tokenRank
    self.claimant = claimant
    self.claims = claims
    self.order = order
    self.sharers = sharers
    self.movedAt = movedAt
  }

  // MARK: State

  /// The owner before accounts that were merged into others are looked up; nil while nobody owns the chain.
  public var owner: (account: Account, basis: OwnershipBasis)? {
    if let order {
      guard let token, let tokenRank, token != order.overToken, tokenRank.signedDate > order.at else {
        return (order.to, .order)
      }
      return (token, .token)
    }
    if let token { return (token, .token) }
    return claimant.map { ($0, .claim) }
  }

  /// Who has access beside the owner. Sharing is for what only claims decide: a token or an order binds it to one account.
  public func sharers(isRestorable: Bool) -> [Account] {
    isRestorable && token == nil && order == nil ? sharers : []
  }

  // MARK: Evolve

  /// Takes in what a verified revision says; without an account it says nothing.
  public mutating func note(_ account: Account?, _ rank: RevisionRank) {
    guard let account else { return }
    if let tokenRank, !(tokenRank < rank) { return }
    (token, tokenRank) = (account, rank)
  }

  // MARK: Decide

  /// An authenticated caller says that the chain is an account's. The first one has it, unless the restore policy says
  /// otherwise. Where a token or an order decides, no policy moves anything.
  ///
  /// - Parameters:
  ///   - instant: log time of the claim.
  ///   - isRestore: whether the restore policy applies: a restore or an explicit claim, but not a purchase.
  ///   - isRestorable: whether the chain is known to be of a kind that can be restored: credits move by no policy.
  /// - Returns: false for a claim that would have moved the chain, had it not been moved too short a time before.
  public mutating func claim(
    _ claim: Claim, at instant: Instant, isRestore: Bool, isRestorable: Bool, _ rules: RestoreRules
  ) -> Bool {
    guard let claimant else {
      self.claimant = claim.account
      remember(claim)
      return true
    }
    guard isRestore, isRestorable, token == nil, order == nil else { return true }
    switch rules.policy {
    case .keep: return true
    case .transfer:
      let isKnown = claims.contains(claim)
      guard claim.account != claimant else {
        if !isKnown { remember(claim) }
        return true
      }
      if isKnown && (claim.isAttempt || rules.damping == nil) { return true }
      if let movedAt, let damping = rules.damping, instant < damping.end(from: movedAt, times: 1) {
        if claim.isAttempt { remember(claim) }
        return false
      }
      (self.claimant, movedAt) = (claim.account, instant)
      if !isKnown { remember(claim) }
    case .share:
      guard claim.account != claimant, !sharers.contains(claim.account), sharers.count < Self.maximumSharers else {
        return true
      }
      sharers.append(claim.account)
      sharers.sort()
    }
    return true
  }

  private mutating func remember(_ claim: Claim) {
    claims.append(claim)
    if claims.count > Self.maximumClaims { claims.removeFirst() }
  }

  /// An operator transfers the chain. False if that order was decided before.
  public mutating func transfer(to account: Account, orderID: String, at instant: Instant) -> Bool {
    let source = "order:\(orderID)"
    guard !claims.contains(where: { $0.source == source }) else { return false }
    remember(Claim(account: account, source: source))
    order = Order(to: account, orderID: orderID, at: instant, overToken: token)
    return true
  }
}
