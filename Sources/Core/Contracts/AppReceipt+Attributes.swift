import PurchasesCore
import PurchasesCryptography

/// Why signed content can't be read as a receipt.
public enum AppReceiptFailure: Error, Sendable, Hashable {
  /// Not a set of attributes, each of a type, a version and a value.
  case notAttributes(String)
  /// An attribute that is not what it must be.
  case field(FieldFailure)
}

extension AppReceipt {
  /// Reads the content of a receipt. Attributes of unknown types are counted and otherwise left alone.
  public init(content: [UInt8]) throws(AppReceiptFailure) {
    self.init()
    var seen: Set<UInt64> = []
    for attribute in try ReceiptAttribute.list(content) {
      do throws(FieldFailure) { try take(attribute, &seen) } catch { throw .field(error) }
    }
  }

  private mutating func take(_ attribute: ReceiptAttribute, _ seen: inout Set<UInt64>) throws(FieldFailure) {
    switch attribute.type {
    case 0: environmentName = try attribute.text("environment", &seen)
    case 2:
      bundleID = try attribute.text("bundleId", &seen)
      bundleIDBytes = attribute.value
    case 3: version = try attribute.text("applicationVersion", &seen)
    case 4: opaque = try attribute.bytes("opaque value", &seen)
    case 5: hash = try attribute.bytes("hash", &seen)
    case 12: creationDate = try attribute.date("receiptCreationDate", &seen)
    case 17:
      guard purchases.count < Self.maximumPurchaseCount else {
        throw FieldFailure("inApp", "holds more than \(Self.maximumPurchaseCount) purchases")
      }
      purchases.append(try Purchase(content: attribute.value))
    case 19: originalVersion = try attribute.text("originalApplicationVersion", &seen)
    case 21: expirationDate = try attribute.date("expirationDate", &seen)
    default: unknownCount += 1
    }
  }
}

extension AppReceipt.Purchase {
  init(content: [UInt8]) throws(FieldFailure) {
    self.init()
    let attributes: [ReceiptAttribute]
    do { attributes = try ReceiptAttribute.list(content) } catch {
      throw FieldFailure("inApp", "is not a set of attributes")
    }
    var seen: Set<UInt64> = []
    for attribute in attributes {
      switch attribute.type {
      case 1701: quantity = try attribute.integer("quantity", &seen)
      case 1702: product = try attribute.text("productId", &seen)
      case 1703: transaction = try attribute.text("transactionId", &seen)
      case 1704: purchaseDate = try attribute.date("purchaseDate", &seen)
      case 1705: originalTransaction = try attribute.text("originalTransactionId", &seen)
      case 1706: originalPurchaseDate = try attribute.date("originalPurchaseDate", &seen)
      case 1707: productType = try attribute.integer("productType", &seen)
      case 1708: expiresDate = try attribute.date("expiresDate", &seen)
      case 1711: webOrderLineItem = try attribute.unsigned("webOrderLineItemId", &seen)
      case 1712: cancellationDate = try attribute.date("cancellationDate", &seen)
      case 1713: isTrial = try attribute.flag("isTrialPeriod", &seen)
      case 1719: isIntroductory = try attribute.flag("isInIntroOfferPeriod", &seen)
      case 1721: promotionalOffer = try attribute.text("promotionalOfferId", &seen)
      default: unknownCount += 1
      }
    }
  }
}

/// One attribute: `SEQUENCE { type INTEGER, version INTEGER, value OCTET STRING }`.
struct ReceiptAttribute {
  let type: UInt64
  let value: [UInt8]

  static func list(_ content: [UInt8]) throws(AppReceiptFailure) -> [ReceiptAttribute] {
    let set: BERValue
    do { set = try BERValue(parsing: content) } catch { throw .notAttributes("\(error)") }
    guard set.tag == BERValue.Tag.set else { throw .notAttributes("is no set") }
    var attributes: [ReceiptAttribute] = []
    for member in set.children {
      let parts = member.children
      guard member.tag == BERValue.Tag.sequence, parts.count == 3 else {
        throw .notAttributes("an attribute has not the three members")
      }
      guard let type = parts[0].unsigned, parts[1].tag == BERValue.Tag.integer, let value = parts[2].octets else {
        throw .notAttributes("an attribute's member is not what it must be")
      }
      attributes.append(ReceiptAttribute(type: type, value: value))
    }
    return attributes
  }

  /// Two readers of an attribute that stands twice could take one each.
  private func note(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) {
    guard seen.insert(type).inserted else { throw FieldFailure(name, "stands there twice") }
  }

  private func inner(_ name: String) throws(FieldFailure) -> BERValue {
    do { return try BERValue(parsing: value) } catch { throw FieldFailure(name, "is not ASN.1") }
  }

  func bytes(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> [UInt8]? {
    try note(name, &seen)
    return value.isEmpty ? nil : value
  }

  /// An empty text is how a receipt says that there is none.
  func text(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> String? {
    try note(name, &seen)
    guard !value.isEmpty else { return nil }
    guard let text = try inner(name).text else { throw FieldFailure(name, "must be a string") }
    guard text.utf8.count <= Self.maximumTextBytes else {
      throw FieldFailure(name, "is longer than \(Self.maximumTextBytes) bytes")
    }
    guard !text.hasZeroByte else { throw FieldFailure(name, "must not hold U+0000") }
    return text.isEmpty ? nil : text
  }

  /// As of every text in the payloads that Apple signs.
  private static let maximumTextBytes = 1024

  func date(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> Instant? {
    guard let text = try text(name, &seen) else { return nil }
    guard let instant = Instant(rfc3339: text) else {
      throw FieldFailure(name, "must be a time as RFC 3339 writes it")
    }
    return instant
  }

  func unsigned(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> UInt64? {
    try note(name, &seen)
    guard !value.isEmpty else { return nil }
    guard let number = try inner(name).unsigned else {
      throw FieldFailure(name, "must be a whole number of at most 64 bits")
    }
    return number
  }

  func integer(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> Int64? {
    guard let number = try unsigned(name, &seen) else { return nil }
    guard let value = Int64(exactly: number) else { throw FieldFailure(name, "is too large") }
    return value
  }

  func flag(_ name: String, _ seen: inout Set<UInt64>) throws(FieldFailure) -> Bool? {
    guard let number = try unsigned(name, &seen) else { return nil }
    guard number <= 1 else { throw FieldFailure(name, "must be 0 or 1") }
    return number == 1
  }
}
