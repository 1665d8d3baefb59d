import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// A proof as a client sends it, made when it is sent: signing gives the same bytes each time.
enum Proof: Sendable {
  case transaction(StoreTransaction, signed: Instant)
  case notification(StoreNotification)
  case renewal(StoreRenewal, signed: Instant)
  case forged(StoreTransaction, signed: Instant, Forgery)
  case garbage(String)

  enum Forgery: Int, Sendable, CaseIterable {
    /// Signed under a root that looks like ours.
    case foreignRoot
    /// Ours, with another payload put in.
    case swappedPayload
    case brokenSignature
    case noAlgorithm
    /// Self-signed, and says that Xcode did it.
    case xcode
  }

  /// A forger's store: same names, other keys.
  static let foreign = LocalAuthority(seed: Array("not the local app store".utf8))

  func text(_ authority: LocalAuthority) -> String {
    switch self {
    case .transaction(let transaction, let signed): authority.sign(transaction.payload(signed: signed))
    case .notification(let notification): authority.sign(notification.payload(authority))
    case .renewal(let renewal, let signed): authority.sign(renewal.payload(signed: signed))
    case .garbage(let text): text
    case .forged(let transaction, let signed, let forgery): Self.forge(transaction, signed, forgery, authority)
    }
  }

  func digest(_ authority: LocalAuthority) -> String { SHA256.digest(text(authority)).hex }

  private static func forge(
    _ transaction: StoreTransaction, _ signed: Instant, _ forgery: Forgery, _ authority: LocalAuthority
  ) -> String {
    let payload = transaction.payload(signed: signed)
    switch forgery {
    case .foreignRoot: return foreign.sign(payload)
    case .brokenSignature:
      let good = authority.sign(payload)
      // The first character of the signature: the last may hold bits that strict readers refuse for another reason.
      let dot = good.lastIndex(of: ".").map { good.index(after: $0) } ?? good.startIndex
      return String(good[..<dot]) + (good[dot] == "A" ? "B" : "A") + String(good[good.index(after: dot)...])
    case .swappedPayload:
      var other = transaction
      other.quantity = 1000
      let good = authority.sign(payload).split(separator: ".")
      return "\(good[0]).\(Base64URL.encode(other.payload(signed: signed))).\(good[2])"
    case .noAlgorithm:
      let header = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8))
      return "\(header).\(Base64URL.encode(payload)).\(Base64URL.encode([UInt8](repeating: 0, count: 64)))"
    case .xcode:
      var local = transaction
      local.environment = .xcode
      return authority.signLocally(local.payload(signed: signed))
    }
  }
}
