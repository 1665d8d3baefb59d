import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Synchronization

/// A key of App Store Connect for in-app purchases, and the app that it is used for. Shows its ids, never the key.
public struct APIKey: Sendable, CustomStringConvertible, CustomReflectable {
  public let issuerID: String
  public let keyID: String
  public let bundleID: String
  let key: P256PrivateKey

  /// - Parameter p8: the text of the file that App Store Connect hands out.
  public init(issuerID: String, keyID: String, bundleID: String, p8: String) throws(KeyError) {
    self.issuerID = issuerID
    self.keyID = keyID
    self.bundleID = bundleID
    key = try P256PrivateKey(pem: p8)
  }

  public var description: String { "API key \(keyID)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Makes the tokens that each request carries, and uses one again while it is fresh.
final class BearerTokens: Sendable {
  static let audience = "appstoreconnect-v1"
  /// Apple takes tokens of up to an hour. Less does as well, and less time is left to who comes by one.
  static let lifetime: Int64 = 20 * 60
  /// A token is renewed so many seconds before its end, so that neither a slow call nor a clock that is a little off
  /// meets an expired one.
  static let renewal: Int64 = 5 * 60

  private struct Made {
    let token: Secret
    let issued: Int64
  }

  private let key: APIKey
  private let made = Mutex<Made?>(nil)

  init(_ key: APIKey) { self.key = key }

  func token(_ now: Instant) -> Secret {
    let seconds = now.milliseconds / 1000
    return made.withLock { made in
      // A clock that was set back would make a token whose time has not come.
      if let made, seconds >= made.issued, seconds < made.issued + Self.lifetime - Self.renewal { return made.token }
      let token = sign(seconds)
      made = Made(token: token, issued: seconds)
      return token
    }
  }

  /// Apple did not take it: the next call makes another.
  func forget() { made.withLock { $0 = nil } }

  private func sign(_ seconds: Int64) -> Secret {
    let header = JSON.object(["alg": .string("ES256"), "kid": .string(key.keyID), "typ": .string("JWT")])
    let payload = JSON.object([
      "iss": .string(key.issuerID), "iat": .integer(seconds), "exp": .integer(seconds + Self.lifetime),
      "aud": .string(Self.audience), "bid": .string(key.bundleID),
    ])
    return Secret(CompactJWS.sign(header: header.bytes, payload: payload.bytes, key: key.key))
  }
}
