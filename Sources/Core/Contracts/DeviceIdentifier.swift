import PurchasesCryptography

/// The identifier of the device that a receipt was made for, in the bytes that its hash is taken over.
public struct DeviceIdentifier: Sendable, Hashable {
  public let bytes: [UInt8]
  /// As it was given.
  public let text: String

  /// Nobody's identifier is longer.
  public static let maximumBytes = 64

  /// The UUID of `identifierForVendor` (iOS), or a network address in hex with or without colons (macOS).
  public init?(_ text: String) {
    let digits = text.filter { $0 != "-" && $0 != ":" }
    guard let bytes = Hex.decode(digits), !bytes.isEmpty, bytes.count <= Self.maximumBytes else { return nil }
    self.bytes = bytes
    self.text = text
  }
}
