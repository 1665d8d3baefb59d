import PurchasesContracts
import PurchasesCryptography

/// Whose a receipt must be.
public enum ReceiptDevice: Sendable, Hashable {
  case identifier(DeviceIdentifier)
  /// As an evidence tells it: the hash that the receipt of that device has. The identifier itself stays in `received`.
  case recorded(hash: [UInt8])
  /// An evidence from before the hash stood there: that it was checked is known, and taken from there.
  case unrecorded

  /// What the receipt's hash must be; nil where that can't be told.
  func hash(for content: AppReceipt) -> [UInt8]? {
    switch self {
    case .identifier(let device):
      content.opaque.map { SHA1.digest(device.bytes + $0 + content.bundleIDBytes) }
    case .recorded(let hash): hash
    case .unrecorded: nil
    }
  }
}
