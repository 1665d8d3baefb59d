import PurchasesCore

/// What an app receipt's signed content says: the attributes that Apple documents, and those of its in-app purchases.
/// Reading judges nothing; the caller has verified the signature, or uses what it reads for nothing that matters.
public struct AppReceipt: Sendable, Hashable {
  /// Consumables stay in a receipt only until they are finished: more purchases than this are nobody's.
  public static let maximumPurchaseCount = 10_000

  /// Attribute 0, as it stands: `Production`, `ProductionSandbox`, `Xcode`, …
  public var environmentName: String?
  /// Attribute 2, and its bytes as they were encoded: the hash is taken over those.
  public var bundleID: String?
  public var bundleIDBytes: [UInt8] = []
  /// Attribute 3.
  public var version: String?
  /// Attribute 4, part of what the hash is taken over.
  public var opaque: [UInt8]?
  /// Attribute 5: SHA-1 over device identifier, opaque value and bundle id.
  public var hash: [UInt8]?
  /// Attribute 12.
  public var creationDate: Instant?
  /// Attribute 19: the version that was bought first.
  public var originalVersion: String?
  /// Attribute 21, of apps bought in volume: when the receipt runs out.
  public var expirationDate: Instant?
  /// Attribute 17, once for each purchase, in the order in which they stand.
  public var purchases: [Purchase] = []
  /// Attributes that Apple reserves for itself.
  public var unknownCount = 0

  public init() {}

  public var environment: Environment? { environmentName.flatMap { Environment(receipt: $0) } }

  /// One in-app purchase.
  public struct Purchase: Sendable, Hashable {
    /// 1701
    public var quantity: Int64?
    /// 1702
    public var product: String?
    /// 1703
    public var transaction: String?
    /// 1704
    public var purchaseDate: Instant?
    /// 1705; Xcode leaves it out.
    public var originalTransaction: String?
    /// 1706
    public var originalPurchaseDate: Instant?
    /// 1707: see ``type``. Apple doesn't document it, and signs it.
    public var productType: Int64?
    /// 1708
    public var expiresDate: Instant?
    /// 1711; zero where there is none.
    public var webOrderLineItem: UInt64?
    /// 1712
    public var cancellationDate: Instant?
    /// 1713
    public var isTrial: Bool?
    /// 1719
    public var isIntroductory: Bool?
    /// 1721
    public var promotionalOffer: String?
    public var unknownCount = 0

    public init() {}

    /// What was bought: as the receipt tells it, and where it doesn't, a subscription by its end. Of the rest a signed
    /// transaction or the catalogue tells.
    public var type: ProductType {
      switch productType {
      case 0: return .nonConsumable
      case 1: return .consumable
      case 2: return .nonRenewing
      // A subscription without an end is none that access could be computed from.
      case 3 where expiresDate != nil: return .autoRenewable
      case nil where expiresDate != nil: return .autoRenewable
      default: return .untold
      }
    }
  }
}

extension Environment {
  /// The names that receipts have for environments; apps bought in volume have their own.
  public init?(receipt name: String) {
    switch name {
    case "Production", "ProductionVPP": self = .production
    case "Sandbox", "ProductionSandbox", "ProductionVPPSandbox": self = .sandbox
    case "Xcode": self = .xcode
    case "LocalTesting": self = .localTesting
    default: return nil
    }
  }
}
