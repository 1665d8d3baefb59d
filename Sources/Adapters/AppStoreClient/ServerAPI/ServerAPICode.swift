/// An error code of the App Store Server API. Open: a code that is not in the table is kept as it came.
public struct ServerAPICode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: Int64

  public init(rawValue: Int64) { self.rawValue = rawValue }

  public static let invalidTransactionID = ServerAPICode(rawValue: 4_000_006)
  public static let startDateTooFarInPast = ServerAPICode(rawValue: 4_000_012)
  public static let invalidPaginationToken = ServerAPICode(rawValue: 4_000_014)
  public static let paginationTokenExpired = ServerAPICode(rawValue: 4_000_017)
  public static let invalidCustomerConsented = ServerAPICode(rawValue: 4_000_035)
  public static let originalTransactionIDNotFound = ServerAPICode(rawValue: 4_040_005)
  public static let testNotificationNotFound = ServerAPICode(rawValue: 4_040_008)
  public static let transactionIDNotFound = ServerAPICode(rawValue: 4_040_010)
  public static let rateLimitExceeded = ServerAPICode(rawValue: 4_290_000)
  public static let generalInternal = ServerAPICode(rawValue: 5_000_000)
  public static let generalInternalRetryable = ServerAPICode(rawValue: 5_000_001)

  /// Whether Apple lists it among the errors to try again. 5000000 is not in that list, but the pages of the calls that
  /// answer it say "try again later".
  public var isRetryable: Bool {
    [4_040_002, 4_040_004, 4_040_006, 4_290_000, 5_000_000, 5_000_001].contains(rawValue)
  }

  /// Apple's name of it; nil for one that is not in the table.
  public var name: String? { Self.names[rawValue] }

  public var description: String { "\(rawValue) \(name ?? "(a code that this program does not know)")" }

  /// Codes with Apple's names, in order of the code.
  public static var known: [ServerAPICode] { names.keys.sorted().map { ServerAPICode(rawValue: $0) } }

  private static let names: [Int64: String] = [
    4_000_000: "GeneralBadRequest", 4_000_002: "InvalidAppIdentifier", 4_000_005: "InvalidRequestRevision",
    4_000_006: "InvalidTransactionId", 4_000_008: "InvalidOriginalTransactionId", 4_000_009: "InvalidExtendByDays",
    4_000_010: "InvalidExtendReasonCode", 4_000_011: "InvalidRequestIdentifier", 4_000_012: "StartDateTooFarInPast",
    4_000_013: "StartDateAfterEndDate", 4_000_014: "InvalidPaginationToken", 4_000_015: "InvalidStartDate",
    4_000_016: "InvalidEndDate", 4_000_017: "PaginationTokenExpired", 4_000_018: "InvalidNotificationType",
    4_000_019: "MultipleFiltersSupplied", 4_000_020: "InvalidTestNotificationToken", 4_000_021: "InvalidSort",
    4_000_022: "InvalidProductType", 4_000_023: "InvalidProductId", 4_000_024: "InvalidSubscriptionGroupIdentifier",
    4_000_025: "InvalidExcludeRevoked", 4_000_026: "InvalidInAppOwnershipType",
    4_000_027: "InvalidEmptyStorefrontCountryCodeList", 4_000_028: "InvalidStorefrontCountryCode",
    4_000_030: "InvalidRevoked", 4_000_031: "InvalidStatus", 4_000_032: "InvalidAccountTenure",
    4_000_033: "InvalidAppAccountToken", 4_000_034: "InvalidConsumptionStatus",
    4_000_035: "InvalidCustomerConsented", 4_000_036: "InvalidDeliveryStatus",
    4_000_037: "InvalidLifetimeDollarsPurchased", 4_000_038: "InvalidLifetimeDollarsRefunded",
    4_000_039: "InvalidPlatform", 4_000_040: "InvalidPlayTime", 4_000_041: "InvalidSampleContentProvided",
    4_000_042: "InvalidUserStatus", 4_000_043: "InvalidTransactionNotConsumable",
    4_000_047: "InvalidTransactionTypeNotSupported", 4_000_048: "AppTransactionIdNotSupported",
    4_000_183: "InvalidAppAccountTokenUUID", 4_000_185: "FamilyTransactionNotSupported",
    4_000_187: "TransactionIdIsNotOriginalTransactionId",
    4_000_209: "ConsumptionPercentageAutoRenewableSubscription", 4_000_225: "InvalidGroupId",
    4_000_227: "InvalidAssignedTransactionNotSupported", 4_030_004: "SubscriptionExtensionIneligible",
    4_030_005: "SubscriptionMaxExtension", 4_030_007: "FamilySharedSubscriptionExtensionIneligible",
    4_040_001: "AccountNotFound", 4_040_002: "AccountNotFoundRetryable", 4_040_003: "AppNotFound",
    4_040_004: "AppNotFoundRetryable", 4_040_005: "OriginalTransactionIdNotFound",
    4_040_006: "OriginalTransactionIdNotFoundRetryable", 4_040_007: "ServerNotificationUrlNotFound",
    4_040_008: "TestNotificationNotFound", 4_040_009: "StatusRequestNotFound", 4_040_010: "TransactionIdNotFound",
    4_040_019: "AppTransactionDoesNotExist", 4_290_000: "RateLimitExceeded", 5_000_000: "GeneralInternal",
    5_000_001: "GeneralInternalRetryable",
  ]
}
