/// What identifiers may hold: visible ASCII but `/`, which separates the parts of a topic key. Beyond ASCII one text has
/// several spellings ("é" as one character or two) that Swift takes for equal and a database does not: two accounts
/// in one place would be one in the other. Apple's ids are decimal today; we don't insist on it for what Apple signs.
public enum IdentifierRule {
  /// Longer than anything Apple or a back end uses, short enough for a topic key and a database index.
  public static let maximumBytes = 128

  public static func accepts(_ text: String) -> Bool {
    let count = text.utf8.count
    guard count > 0, count <= maximumBytes else { return false }
    var text = text
    return text.withUTF8 { bytes in
      // A plain loop over the bytes: each record reads a dozen identifiers.
      var index = 0
      while index < count {
        let byte = bytes[index]
        guard byte > 0x20, byte != 0x7f, byte != 0x2f else { return false }
        index += 1
      }
      return true
    }
  }

  /// Transaction ids as Apple issues them: decimal digits.
  public static func isDecimal(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 64 && text.utf8.allSatisfy { $0 >= 48 && $0 <= 57 }
  }
}

/// A kind of identifier that can't be taken for another kind.
public protocol Identifier: Sendable, Hashable, Comparable, CustomStringConvertible {
  var text: String { get }
  init?(_ text: String)
}

extension Identifier {
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
  public var description: String { text }
}

/// One transaction of the App Store (`transactionId`).
public struct TransactionID: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// The first transaction of a chain of renewals or restores (`originalTransactionId`); names the purchase.
public struct OriginalTransactionID: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// A customer's download of the app (`appTransactionId`), the same for all that this customer buys in it.
public struct AppTransactionID: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// A product as the App Store knows it (`productId`).
public struct ProductID: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// What an account may use; named by the catalogue, not by Apple.
public struct EntitlementID: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// A unit of credits, such as coins; named by the catalogue.
public struct CreditUnit: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = text
  }
}

/// A user of the deployment. Apple's `appAccountToken` is a UUID whose case carries no meaning, so an account that looks
/// like a UUID is kept in lower case; any other is kept as it is.
public struct Account: Identifier {
  public let text: String
  public init?(_ text: String) {
    guard IdentifierRule.accepts(text) else { return nil }
    self.text = Account.isUUID(text) ? Account.inLowerCase(text) : text
  }

  /// The account that an `appAccountToken` names: nil for what is not a UUID and for the UUID of zeroes, which libraries
  /// send when they have none.
  public init?(token: String) {
    guard Account.isUUID(token), token != "00000000-0000-0000-0000-000000000000" else { return nil }
    self.text = Account.inLowerCase(token)
  }

  private static func inLowerCase(_ text: String) -> String {
    text.utf8.contains { $0 >= 65 && $0 <= 90 } ? text.lowercased() : text
  }

  public static func isUUID(_ text: String) -> Bool {
    guard text.utf8.count == 36 else { return false }
    var text = text
    return text.withUTF8 { bytes in
      var index = 0
      while index < 36 {
        let byte = bytes[index]
        switch index {
        case 8, 13, 18, 23: guard byte == 45 else { return false }
        default:
          let isHex = (byte >= 48 && byte <= 57) || (byte | 0x20 >= 97 && byte | 0x20 <= 102)
          guard isHex else { return false }
        }
        index += 1
      }
      return true
    }
  }
}
