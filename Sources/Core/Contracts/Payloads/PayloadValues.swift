/// `inAppOwnershipType`: how the customer came to the purchase.
public enum OwnershipType: String, Sendable, Hashable, CaseIterable {
  case purchased = "PURCHASED"
  case familyShared = "FAMILY_SHARED"
  /// A seat of somebody else's purchase.
  case assigned = "ASSIGNED"
}

public enum RevocationType: String, Sendable, Hashable, CaseIterable {
  case refundFull = "REFUND_FULL"
  case refundProrated = "REFUND_PRORATED"
  case familyRevoke = "FAMILY_REVOKE"
  /// An organisation took the seat back.
  case assignmentRevoke = "ASSIGNMENT_REVOKE"
}

public enum RevocationReason: Int64, Sendable, Hashable, CaseIterable {
  case other = 0
  case issueInTheApp = 1
}

public enum TransactionReason: String, Sendable, Hashable, CaseIterable {
  case purchase = "PURCHASE"
  case renewal = "RENEWAL"
}

/// Why a period is represented by more than one transaction.
public enum AdditionalTransactionReason: String, Sendable, Hashable, CaseIterable {
  case seatAddition = "SEAT_ADDITION"
}

public enum OfferType: Int64, Sendable, Hashable, CaseIterable {
  case introductory = 1
  case promotional = 2
  case code = 3
  case winBack = 4
  case retention = 5
}

public enum OfferDiscountType: String, Sendable, Hashable, CaseIterable {
  case freeTrial = "FREE_TRIAL"
  case payAsYouGo = "PAY_AS_YOU_GO"
  case payUpFront = "PAY_UP_FRONT"
  case oneTime = "ONE_TIME"
}

public enum BillingPlanType: String, Sendable, Hashable, CaseIterable {
  case billedUpFront = "BILLED_UPFRONT"
  case monthly = "MONTHLY"
}

/// Who invites people to the seats of a purchase for several.
public enum InvitationManagement: String, Sendable, Hashable, CaseIterable {
  case apple = "APPLE"
  case developer = "DEVELOPER"
}

public enum AutoRenewStatus: Int64, Sendable, Hashable, CaseIterable {
  case off = 0
  case on = 1
}

public enum ExpirationIntent: Int64, Sendable, Hashable, CaseIterable {
  case cancelledByCustomer = 1
  case billingError = 2
  case noConsentToPriceIncrease = 3
  case productNotAvailable = 4
  case other = 5
}

public enum PriceIncreaseStatus: Int64, Sendable, Hashable, CaseIterable {
  case notAnswered = 0
  case consentedOrNotified = 1
}

/// `status` in a notification's data.
public enum SubscriptionStatus: Int64, Sendable, Hashable, CaseIterable {
  case active = 1
  case expired = 2
  case billingRetry = 3
  case gracePeriod = 4
  case revoked = 5
}

public enum ConsumptionRequestReason: String, Sendable, Hashable, CaseIterable {
  case unintendedPurchase = "UNINTENDED_PURCHASE"
  case fulfilmentIssue = "FULFILLMENT_ISSUE"
  case unsatisfied = "UNSATISFIED_WITH_PURCHASE"
  case legal = "LEGAL"
  case other = "OTHER"
}

public enum PurchasePlatform: String, Sendable, Hashable, CaseIterable {
  case iOS
  case macOS
  case tvOS
  case visionOS
}

/// `tokenType` of an external purchase token for custom links.
public enum TokenType: String, Sendable, Hashable, CaseIterable {
  case acquisition = "ACQUISITION"
  case services = "SERVICES"
  case inApp = "IN_APP"
  case linkOut = "LINK_OUT"
}

public enum AdvancedCommerceRefundType: String, Sendable, Hashable, CaseIterable {
  case full = "FULL"
  case prorated = "PRORATED"
  case custom = "CUSTOM"
}

public enum AdvancedCommerceRefundReason: String, Sendable, Hashable, CaseIterable {
  case unintendedPurchase = "UNINTENDED_PURCHASE"
  case fulfilmentIssue = "FULFILLMENT_ISSUE"
  case unsatisfied = "UNSATISFIED_WITH_PURCHASE"
  case legal = "LEGAL"
  case other = "OTHER"
  case modifyItemsRefund = "MODIFY_ITEMS_REFUND"
  case simulateRefundDecline = "SIMULATE_REFUND_DECLINE"
}

public enum AdvancedCommercePriceIncreaseStatus: String, Sendable, Hashable, CaseIterable {
  case scheduled = "SCHEDULED"
  case pending = "PENDING"
  case accepted = "ACCEPTED"
}

public enum AdvancedCommerceOfferReason: String, Sendable, Hashable, CaseIterable {
  case acquisition = "ACQUISITION"
  case winBack = "WIN_BACK"
  case retention = "RETENTION"
}
