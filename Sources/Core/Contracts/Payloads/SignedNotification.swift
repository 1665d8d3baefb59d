import PurchasesCore

/// The payload of a signed notification (`responseBodyV2DecodedPayload`). Apple sends one of its four bodies.
public struct SignedNotification: PayloadModel {
  public let uuid: String?
  public let type: Stated<NotificationType>?
  public let subtype: Stated<NotificationSubtype>?
  public let version: String?
  public let signedDate: Instant?
  public let data: NotificationData?
  public let summary: NotificationSummary?
  public let appData: NotificationAppData?
  public let externalPurchaseToken: ExternalPurchaseToken?

  public init(_ reader: inout PayloadReader) {
    uuid = reader.id("notificationUUID")
    type = reader.listed("notificationType")
    subtype = reader.listed("subtype")
    version = reader.text("version")
    signedDate = reader.date("signedDate")
    data = reader.object("data")
    summary = reader.object("summary")
    appData = reader.object("appData")
    externalPurchaseToken = reader.object("externalPurchaseToken")
  }
}

public struct NotificationData: PayloadModel {
  public let appAppleID: Int64?
  public let bundleID: String?
  public let bundleVersion: String?
  public let environment: Stated<Environment>?
  public let status: Stated<SubscriptionStatus>?
  public let consumptionRequestReason: Stated<ConsumptionRequestReason>?
  public let signedTransactionInfo: String?
  public let signedRenewalInfo: String?

  public init(_ reader: inout PayloadReader) {
    appAppleID = reader.integer("appAppleId")
    bundleID = reader.text("bundleId")
    bundleVersion = reader.text("bundleVersion")
    environment = reader.environment("environment")
    status = reader.listed("status")
    consumptionRequestReason = reader.listed("consumptionRequestReason")
    signedTransactionInfo = reader.proof("signedTransactionInfo")
    signedRenewalInfo = reader.proof("signedRenewalInfo")
  }
}

/// What became of a renewal date that was extended for all subscribers of a product.
public struct NotificationSummary: PayloadModel {
  public let requestIdentifier: String?
  public let appAppleID: Int64?
  public let bundleID: String?
  public let environment: Stated<Environment>?
  public let productID: String?
  public let storefrontCountryCodes: [String]?
  public let succeededCount: Int64?
  public let failedCount: Int64?

  public init(_ reader: inout PayloadReader) {
    requestIdentifier = reader.id("requestIdentifier")
    appAppleID = reader.integer("appAppleId")
    bundleID = reader.text("bundleId")
    environment = reader.environment("environment")
    productID = reader.text("productId")
    storefrontCountryCodes = reader.texts("storefrontCountryCodes")
    succeededCount = reader.integer("succeededCount")
    failedCount = reader.integer("failedCount")
  }
}

public struct NotificationAppData: PayloadModel {
  public let appAppleID: Int64?
  public let bundleID: String?
  public let environment: Stated<Environment>?
  public let signedAppTransactionInfo: String?

  public init(_ reader: inout PayloadReader) {
    appAppleID = reader.integer("appAppleId")
    bundleID = reader.text("bundleId")
    environment = reader.environment("environment")
    signedAppTransactionInfo = reader.proof("signedAppTransactionInfo")
  }
}

/// A token under which purchases outside the App Store are reported to Apple.
public struct ExternalPurchaseToken: PayloadModel {
  /// Begins with `SANDBOX` in the sandbox; the token has no other environment.
  public let externalPurchaseID: String?
  public let appAppleID: Int64?
  public let bundleID: String?
  public let tokenCreationDate: Instant?
  /// Only of custom links, like ``tokenType``.
  public let tokenExpirationDate: Instant?
  public let tokenType: Stated<TokenType>?

  public init(_ reader: inout PayloadReader) {
    externalPurchaseID = reader.id("externalPurchaseId")
    appAppleID = reader.integer("appAppleId")
    bundleID = reader.text("bundleId")
    tokenCreationDate = reader.date("tokenCreationDate")
    tokenExpirationDate = reader.date("tokenExpirationDate")
    tokenType = reader.listed("tokenType")
  }
}
