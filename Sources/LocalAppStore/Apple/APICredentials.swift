import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// The key that a client of the local Server API signs its tokens with, and the check of such a token.
public struct APICredentials: Sendable {
  public static let issuerID = "57246542-96fe-1a63-e053-0824d011072a"
  public static let keyID = "LOCALKEY01"
  static let audience = "appstoreconnect-v1"
  /// Apple's own limit on a token's life, and what two clocks may differ by, in seconds.
  static let longestLife: Int64 = 3600
  static let skew: Int64 = 60

  private let key: P256PrivateKey

  init(seed: [UInt8]) { key = P256PrivateKey(seed: seed, label: "server api key") }

  /// What App Store Connect would hand out as `AuthKey_LOCALKEY01.p8`.
  public var p8: String { key.key.pem }

  /// The app that the token is for; nil for a token that Apple would not take.
  func bundle(authorization: String?, now: Instant) -> String? {
    guard let authorization, authorization.hasPrefix("Bearer "),
      let jws = try? CompactJWS(parsing: String(authorization.dropFirst("Bearer ".count))),
      jws.isSigned(by: key.publicKey),
      let headerBytes = try? jws.header, let header = try? JSON(parsing: headerBytes),
      let claims = try? JSON(parsing: jws.payload)
    else { return nil }
    guard header["alg"]?.string == "ES256", header["kid"]?.string == Self.keyID, header["typ"]?.string == "JWT",
      claims["iss"]?.string == Self.issuerID, claims["aud"]?.string == Self.audience,
      let issued = claims["iat"]?.int64, let expires = claims["exp"]?.int64, let bundle = claims["bid"]?.string
    else { return nil }
    let seconds = now.milliseconds / 1000
    guard issued <= seconds + Self.skew, expires > seconds, expires - issued <= Self.longestLife, !bundle.isEmpty else {
      return nil
    }
    return bundle
  }
}
