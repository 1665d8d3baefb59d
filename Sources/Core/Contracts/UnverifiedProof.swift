import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// What a proof says of itself before anybody has verified it. Good for one thing only: to choose the partition that its
/// record goes to, so that facts about one purchase meet. Nothing here is a fact, a grant, a look-up key or a log line.
public struct UnverifiedProof: Sendable, Hashable {
  public private(set) var environment: Environment?
  public private(set) var originalTransaction: OriginalTransactionID?
  public private(set) var notificationUUID: String?

  /// Never fails: of what can't be read, nothing is said.
  public init(_ jws: String) {
    guard let payload = Self.payload(of: jws) else { return }
    read(payload.root)
  }

  /// A receipt says where it is from. It speaks of many purchases, so that it belongs with its account.
  public init(receipt text: String) {
    guard let bytes = Base64.decode(text.utf8.filter { $0 != 0x0A && $0 != 0x0D }),
      let signed = try? SignedData(parsing: bytes)
    else { return }
    environment = try? AppReceipt(content: signed.content).environment
  }

  private mutating func read(_ root: JSONView) {
    environment = (root["environment"] ?? root["receiptType"])?.string.flatMap { Environment(rawValue: $0) }
    originalTransaction = root["originalTransactionId"]?.string.flatMap { OriginalTransactionID($0) }
    guard let uuid = root["notificationUUID"]?.string else { return }
    if Account.isUUID(uuid) { notificationUUID = uuid.lowercased() }
    for name in ["data", "summary", "appData"] {
      guard let part = root[name] else { continue }
      environment = environment ?? part["environment"]?.string.flatMap { Environment(rawValue: $0) }
      for nested in ["signedTransactionInfo", "signedRenewalInfo"] where originalTransaction == nil {
        guard let jws = part[nested]?.string, let payload = Self.payload(of: jws) else { continue }
        originalTransaction = payload.root["originalTransactionId"]?.string.flatMap { OriginalTransactionID($0) }
      }
    }
    if let purchase = root["externalPurchaseToken"]?["externalPurchaseId"]?.string {
      environment = environment ?? (purchase.hasPrefix("SANDBOX") ? .sandbox : .production)
    }
  }

  private static func payload(of jws: String) -> JSONDocument? {
    let parts = jws.utf8.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = Base64URL.decode(Array(parts[1])) else { return nil }
    return try? JSONDocument(parsing: bytes)
  }
}
