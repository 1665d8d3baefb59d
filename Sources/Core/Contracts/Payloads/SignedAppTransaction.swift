import PurchasesCore

/// The payload of a signed app transaction (`JWSAppTransactionDecodedPayload`): that a customer has the app.
public struct SignedAppTransaction: PayloadModel {
  public let appTransactionID: String?
  public let appAppleID: Int64?
  public let bundleID: String?
  public let receiptType: Stated<Environment>?
  public let receiptCreationDate: Instant?
  public let applicationVersion: String?
  public let versionExternalIdentifier: Int64?
  public let originalPurchaseDate: Instant?
  public let originalApplicationVersion: String?
  public let originalPlatform: Stated<PurchasePlatform>?
  public let preorderDate: Instant?
  public let deviceVerification: String?
  public let deviceVerificationNonce: String?

  public init(_ reader: inout PayloadReader) {
    appTransactionID = reader.id("appTransactionId")
    appAppleID = reader.integer("appAppleId")
    bundleID = reader.text("bundleId")
    receiptType = reader.environment("receiptType")
    receiptCreationDate = reader.date("receiptCreationDate")
    applicationVersion = reader.text("applicationVersion")
    versionExternalIdentifier = reader.integer("versionExternalIdentifier")
    originalPurchaseDate = reader.date("originalPurchaseDate")
    originalApplicationVersion = reader.text("originalApplicationVersion")
    originalPlatform = reader.listed("originalPlatform")
    preorderDate = reader.date("preorderDate")
    deviceVerification = reader.text("deviceVerification")
    deviceVerificationNonce = reader.text("deviceVerificationNonce")
  }
}
