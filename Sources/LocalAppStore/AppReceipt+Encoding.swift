import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

extension AppReceipt {
  /// The receipt's content as the App Store writes it: a set of attributes in DER.
  public var encoded: [UInt8] {
    var attributes: [[UInt8]] = []
    func add(_ type: UInt64, _ value: [UInt8]?) {
      if let value { attributes.append(Attribute.encode(type, value)) }
    }
    add(0, environmentName.map { Attribute.text($0) })
    add(2, bundleID.map { Attribute.text($0) })
    add(3, version.map { Attribute.text($0) })
    add(4, opaque)
    add(5, hash)
    add(12, creationDate.map { Attribute.date($0) })
    for purchase in purchases { add(17, purchase.encoded) }
    add(19, originalVersion.map { Attribute.text($0) })
    add(21, expirationDate.map { Attribute.date($0) })
    // Attributes that Apple keeps to itself, which every receipt has.
    for type in 0..<UInt64(unknownCount) { add(9000 + type, [0xDE, 0xAD]) }
    return BERValue.encode(BERValue.Tag.set, Array(attributes.joined())[...])
  }

  /// Ties the receipt to a device.
  public mutating func bind(to device: DeviceIdentifier, opaque: [UInt8]) {
    self.opaque = opaque
    bundleIDBytes = bundleID.map { Attribute.text($0) } ?? []
    hash = SHA1.digest(device.bytes + opaque + bundleIDBytes)
  }
}

extension AppReceipt.Purchase {
  var encoded: [UInt8] {
    var attributes: [[UInt8]] = []
    func add(_ type: UInt64, _ value: [UInt8]?) {
      if let value { attributes.append(Attribute.encode(type, value)) }
    }
    add(1701, quantity.map { Attribute.number(UInt64(clamping: $0)) })
    add(1702, product.map { Attribute.text($0) })
    add(1703, transaction.map { Attribute.text($0) })
    add(1704, purchaseDate.map { Attribute.date($0) })
    add(1705, originalTransaction.map { Attribute.text($0) })
    add(1706, originalPurchaseDate.map { Attribute.date($0) })
    add(1707, productType.map { Attribute.number(UInt64(clamping: $0)) })
    // Apple writes an empty text where there is no date.
    add(1708, expiresDate.map { Attribute.date($0) } ?? Attribute.empty)
    add(1711, webOrderLineItem.map { Attribute.number($0) })
    add(1712, cancellationDate.map { Attribute.date($0) } ?? Attribute.empty)
    add(1713, isTrial.map { Attribute.number($0 ? 1 : 0) })
    add(1719, isIntroductory.map { Attribute.number($0 ? 1 : 0) })
    add(1721, promotionalOffer.map { Attribute.text($0) })
    for type in 0..<UInt64(unknownCount) { add(1780 + type, [0x05, 0x00]) }
    return BERValue.encode(BERValue.Tag.set, Array(attributes.joined())[...])
  }
}

private enum Attribute {
  /// `SEQUENCE { type, version 1, value }`
  static func encode(_ type: UInt64, _ value: [UInt8]) -> [UInt8] {
    let members = number(type) + number(1) + BERValue.encode(BERValue.Tag.octetString, value[...])
    return BERValue.encode(BERValue.Tag.sequence, members[...])
  }

  static func number(_ value: UInt64) -> [UInt8] {
    var digits: [UInt8] = []
    var rest = value
    repeat {
      digits.insert(UInt8(rest & 0xFF), at: 0)
      rest >>= 8
    } while rest > 0
    if digits[0] >= 0x80 { digits.insert(0, at: 0) }
    return BERValue.encode(BERValue.Tag.integer, digits[...])
  }

  static func text(_ text: String) -> [UInt8] { BERValue.encode(BERValue.Tag.utf8String, Array(text.utf8)[...]) }

  /// Whole seconds, as Apple writes them.
  static func date(_ instant: Instant) -> [UInt8] {
    let text = instant.rfc3339.prefix(19) + "Z"
    return BERValue.encode(BERValue.Tag.ia5String, Array(text.utf8)[...])
  }

  static let empty = BERValue.encode(BERValue.Tag.ia5String, [])
}
