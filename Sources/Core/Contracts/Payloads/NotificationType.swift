/// What a notification (version 2) is about, as Apple documents it today. `docs/payloads.md` says what each one means to us;
/// a test holds that page to this list.
public enum NotificationType: String, Sendable, Hashable, CaseIterable {
  case consumptionRequest = "CONSUMPTION_REQUEST"
  case didChangeRenewalPreference = "DID_CHANGE_RENEWAL_PREF"
  case didChangeRenewalStatus = "DID_CHANGE_RENEWAL_STATUS"
  case didFailToRenew = "DID_FAIL_TO_RENEW"
  case didRenew = "DID_RENEW"
  case expired = "EXPIRED"
  case externalPurchaseToken = "EXTERNAL_PURCHASE_TOKEN"
  case gracePeriodExpired = "GRACE_PERIOD_EXPIRED"
  case metadataUpdate = "METADATA_UPDATE"
  case migration = "MIGRATION"
  case offerRedeemed = "OFFER_REDEEMED"
  case oneTimeCharge = "ONE_TIME_CHARGE"
  case priceChange = "PRICE_CHANGE"
  case priceIncrease = "PRICE_INCREASE"
  case refund = "REFUND"
  case refundDeclined = "REFUND_DECLINED"
  case refundReversed = "REFUND_REVERSED"
  case renewalExtended = "RENEWAL_EXTENDED"
  case renewalExtension = "RENEWAL_EXTENSION"
  case rescindConsent = "RESCIND_CONSENT"
  case revoke = "REVOKE"
  case subscribed = "SUBSCRIBED"
  case test = "TEST"
}

/// The further word beside some types. Which words go with which type is Apple's affair and changes: none is refused for the
/// type it came with.
public enum NotificationSubtype: String, Sendable, Hashable, CaseIterable {
  case accepted = "ACCEPTED"
  case activeTokenReminder = "ACTIVE_TOKEN_REMINDER"
  case autoRenewDisabled = "AUTO_RENEW_DISABLED"
  case autoRenewEnabled = "AUTO_RENEW_ENABLED"
  case billingRecovery = "BILLING_RECOVERY"
  case billingRetry = "BILLING_RETRY"
  case created = "CREATED"
  case decreaseQuantity = "DECREASE_QUANTITY"
  case downgrade = "DOWNGRADE"
  case failure = "FAILURE"
  case gracePeriod = "GRACE_PERIOD"
  case increaseQuantity = "INCREASE_QUANTITY"
  case initialBuy = "INITIAL_BUY"
  case pending = "PENDING"
  case priceIncrease = "PRICE_INCREASE"
  case productNotForSale = "PRODUCT_NOT_FOR_SALE"
  case resubscribe = "RESUBSCRIBE"
  case seats = "SEATS"
  case summary = "SUMMARY"
  case unreported = "UNREPORTED"
  case upgrade = "UPGRADE"
  case voluntary = "VOLUNTARY"
}

extension NotificationFacts {
  public var statedType: Stated<NotificationType> { Stated(type) }
  public var statedSubtype: Stated<NotificationSubtype>? { subtype.map(Stated.init) }
}
