import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

extension AppReceipt {
  /// Reads what a person wrote: `environment` (as receipts name it, such as `ProductionSandbox`), `bundleId`,
  /// `applicationVersion`, `originalApplicationVersion`, `receiptCreationDate` and `expirationDate` (RFC 3339), `deviceId`,
  /// and `inApp`, an array of purchases.
  public init(_ fields: Fields) throws(FieldFailure) {
    self.init()
    environmentName = try fields.text("environment") ?? "Production"
    bundleID = try fields.requiredText("bundleId")
    version = try fields.text("applicationVersion") ?? "1"
    originalVersion = try fields.text("originalApplicationVersion") ?? "1"
    creationDate = try fields.instant("receiptCreationDate")
    expirationDate = try fields.instant("expirationDate")
    unknownCount = 2
    for element in fields.member("inApp")?.elements ?? [] {
      purchases.append(try Purchase(Fields(element, path: fields.name("inApp"))))
    }
    if let text = try fields.text("deviceId") {
      guard let device = DeviceIdentifier(text) else { throw fields.failure("deviceId", "must be a UUID or hex") }
      bind(to: device, opaque: Array("opaque".utf8))
    }
  }
}

extension AppReceipt.Purchase {
  /// Members are named as in signed transactions; dates are RFC 3339, `type` is Apple's word for it.
  public init(_ fields: Fields) throws(FieldFailure) {
    self.init()
    quantity = try fields.integer("quantity") ?? 1
    product = try fields.requiredText("productId")
    let id = try fields.requiredText("transactionId")
    transaction = id
    originalTransaction = try fields.text("originalTransactionId") ?? id
    purchaseDate = try fields.instant("purchaseDate")
    originalPurchaseDate = try fields.instant("originalPurchaseDate") ?? purchaseDate
    expiresDate = try fields.instant("expiresDate")
    cancellationDate = try fields.instant("cancellationDate")
    if let line = try fields.text("webOrderLineItemId") {
      guard let number = UInt64(line) else { throw fields.failure("webOrderLineItemId", "must be decimal digits") }
      webOrderLineItem = number
    }
    isTrial = try fields.flag("isTrialPeriod")
    isIntroductory = try fields.flag("isInIntroOfferPeriod")
    promotionalOffer = try fields.text("promotionalOfferId")
    guard let type = try fields.text("type") else { return }
    switch ProductType(apple: type) {
    case .nonConsumable: productType = 0
    case .consumable: productType = 1
    case .nonRenewing: productType = 2
    case .autoRenewable: productType = 3
    case .unknown: throw fields.failure("type", "is not one of Apple's")
    }
  }
}
