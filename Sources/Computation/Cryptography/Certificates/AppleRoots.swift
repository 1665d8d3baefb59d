/// Apple's roots, embedded at build time so that a moved binary still has them.
public enum AppleRoots {
  /// Apple Root CA - G3: the root of StoreKit's signed transactions and notifications.
  public static let g3 = embedded(PackageResources.apple_root_ca_g3_der)

  /// Apple Root CA: the root of app receipts.
  public static let inc = embedded(PackageResources.apple_root_ca_der)

  /// What StoreKit JWS are judged under in production.
  public static let storeKit = TrustAnchors([g3])

  /// What app receipts are judged under in production.
  public static let receipts = TrustAnchors([inc])

  private static func embedded(_ der: [UInt8]) -> Certificate {
    do {
      return try Certificate(der: der)
    } catch {
      preconditionFailure("a root embedded at build time can't be read: \(error.rawValue)")
    }
  }
}
