/// An operator's order about one entitlement. Decided once, in recorded order.
public struct ManualOrder: Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    /// Access from the order on, until then; nil: without end.
    case grant(until: Instant?)
    /// Ends whatever began before the order, bought or granted. What is left of it then goes on at that instant; nil: never.
    /// A later purchase or period grants again in any case.
    case revoke(until: Instant?)
  }

  public var entitlement: EntitlementID
  public var kind: Kind
  /// Log time of the order.
  public var at: Instant
  public var orderID: String
  /// The account that it was given about, where that one was merged into this one. A revocation of such an account takes
  /// nothing from what this one had of its own: only grants to that account.
  public var origin: Account?
  /// Log time at which another order took it back, or the account's merge took it elsewhere.
  public var ended: Instant?

  public init(
    entitlement: EntitlementID, kind: Kind, at: Instant, orderID: String, origin: Account? = nil,
    ended: Instant? = nil
  ) {
    self.entitlement = entitlement
    self.kind = kind
    self.at = at
    self.orderID = orderID
    self.origin = origin
    self.ended = ended
  }

  /// Ended before the end that it was given.
  var isCutShort: Bool { ended == end }

  public var isGrant: Bool { if case .grant = kind { true } else { false } }

  /// When it ends, whoever says so; `distantFuture`: never.
  public var end: Instant {
    switch kind {
    case .grant(let until), .revoke(let until): min(until ?? .distantFuture, ended ?? .distantFuture)
    }
  }
}
