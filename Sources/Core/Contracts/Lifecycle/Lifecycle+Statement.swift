extension Lifecycle {
  /// What the proofs inside a notification say, as Apple sends them with that type and subtype.
  public enum Statement: String, Sendable, Hashable, CaseIterable {
    case nothing
    case asItStands = "as it stands"
    case period = "a period"
    case upgrade = "an upgrade"
    case changes = "another product next"
    case keepsProduct = "the same product next"
    case stops = "auto-renew off"
    case renews = "auto-renew on"
    case grace = "grace"
    case retries = "no grace"
    case over
    case revoked
    case notRevoked = "not revoked"
    case extended = "a later end"
    case charged = "a one-time purchase"

    public var meaning: String {
      switch self {
      case .nothing: "No transaction and no renewal info."
      case .asItStands: "Transaction and renewal info as they were, signed anew."
      case .period: "The transaction of a further period, and renewal info with auto-renew on."
      case .upgrade: "The transaction of a period of a higher level that begins now, and renewal info for it."
      case .changes: "The transaction as it was, renewal info with another product for the next period."
      case .keepsProduct: "The transaction as it was, renewal info with the present product for the next period."
      case .stops: "The transaction as it was, renewal info with auto-renew off."
      case .renews: "The transaction as it was, renewal info with auto-renew on."
      case .grace: "The transaction as it was, renewal info in billing retry with a grace date."
      case .retries: "The transaction as it was, renewal info in billing retry without a grace date."
      case .over: "The transaction as it was, renewal info with auto-renew off, no retry and no grace date."
      case .revoked: "The transaction with a revocation date."
      case .notRevoked: "The transaction without a revocation date, signed anew."
      case .extended: "The transaction with a later end of its period."
      case .charged: "The transaction of a new purchase of a product that doesn't renew."
      }
    }
  }

  /// What is inside by the rule of the type, unless the subtype says more about that type. So every pair has its
  /// statement, also one that no page of Apple's names.
  public static func statement(
    _ type: Stated<NotificationType>, _ subtype: Stated<NotificationSubtype>?
  ) -> Statement {
    // A verified transaction in what nobody knows yet counts like any other.
    guard let type = type.known else { return .asItStands }
    return subtype?.known.flatMap { statement($0, with: type) } ?? statement(type)
  }

  private static func statement(_ type: NotificationType) -> Statement {
    switch type {
    case .consumptionRequest, .didChangeRenewalStatus, .metadataUpdate, .migration, .offerRedeemed, .priceChange,
      .priceIncrease, .refundDeclined:
      .asItStands
    case .didChangeRenewalPreference: .keepsProduct
    case .didFailToRenew, .gracePeriodExpired: .retries
    case .didRenew, .subscribed: .period
    case .expired: .over
    case .oneTimeCharge: .charged
    case .refund, .revoke: .revoked
    case .refundReversed: .notRevoked
    case .renewalExtended: .extended
    // Of many subscriptions at once, of the app, or of no purchase at all.
    case .renewalExtension, .rescindConsent, .externalPurchaseToken, .test: .nothing
    }
  }

  /// nil where the subtype says nothing more about that type.
  private static func statement(_ subtype: NotificationSubtype, with type: NotificationType) -> Statement? {
    func only(with types: NotificationType..., say statement: Statement) -> Statement? {
      types.contains(type) ? statement : nil
    }
    return switch subtype {
    case .autoRenewDisabled: only(with: .didChangeRenewalStatus, say: .stops)
    case .autoRenewEnabled: only(with: .didChangeRenewalStatus, say: .renews)
    case .downgrade: only(with: .didChangeRenewalPreference, .offerRedeemed, say: .changes)
    case .upgrade: only(with: .didChangeRenewalPreference, .offerRedeemed, say: .upgrade)
    case .initialBuy, .resubscribe: only(with: .offerRedeemed, say: .period)
    case .gracePeriod: only(with: .didFailToRenew, say: .grace)
    case .failure: only(with: .renewalExtension, say: .asItStands)
    // Some seats of several were given back; the transaction stays valid.
    case .seats: only(with: .refund, say: .asItStands)
    case .accepted, .activeTokenReminder, .billingRecovery, .billingRetry, .created, .decreaseQuantity,
      .increaseQuantity, .pending, .priceIncrease, .productNotForSale, .summary, .unreported, .voluntary:
      nil
    }
  }
}
