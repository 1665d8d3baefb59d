extension SignedData {
  /// How a receipt is written, for whoever plays the App Store.
  public struct Form: Sendable {
    public var digest: Digest
    /// Lengths left open, as Xcode writes them, with the content in pieces; DER otherwise.
    public var isIndefinite: Bool
    /// Signs attributes that name the content's digest, rather than the content.
    public var hasAttributes: Bool
    /// How often the signer stands there; anything but once is wrong.
    public var signerCount = 1

    public init(digest: Digest = .sha256, isIndefinite: Bool = false, hasAttributes: Bool = false) {
      self.digest = digest
      self.isIndefinite = isIndefinite
      self.hasAttributes = hasAttributes
    }
  }

  /// Content in pieces of so many bytes where lengths are left open.
  private static let pieceByteCount = 1000

  /// Signs content as app receipts are signed. The key need not be the certificate's, so that tests can forge.
  public static func sign(
    _ content: [UInt8], certificates: [Certificate], signer: Certificate, key: PrivateKey, form: Form = Form()
  ) -> [UInt8] {
    let writer = Writer(isIndefinite: form.isIndefinite)
    let version: [UInt8] = [0x02, 0x01, 0x01]
    let hashing = algorithm(form.digest == .sha256 ? OID.sha256 : OID.sha1)
    var signer: [[UInt8]] = [
      version, Writer.der(BERValue.Tag.sequence, [signer.issuerDER, signer.serialDER]), hashing,
    ]
    var message = content
    if form.hasAttributes {
      let hash = form.digest == .sha256 ? SHA256.digest(content).bytes : SHA1.digest(content)
      let attributes = [
        attribute(OID.contentType, Writer.der(BERValue.Tag.objectIdentifier, [OID.data])),
        attribute(OID.messageDigest, Writer.der(BERValue.Tag.octetString, [hash])),
      ]
      // What is signed is the set, and what is sent is the member that holds it.
      message = Writer.der(BERValue.Tag.set, attributes)
      signer.append(Writer.der(BERValue.Tag.context(0), attributes))
    }
    signer.append(algorithm(OID.rsa))
    signer.append(Writer.der(BERValue.Tag.octetString, [key.sign(message, digest: form.digest)]))

    let wrapped = writer.value(BERValue.Tag.context(0), [writer.octets(content, pieceByteCount)])
    let inner = writer.value(
      BERValue.Tag.sequence, [Writer.der(BERValue.Tag.objectIdentifier, [OID.data]), wrapped])
    let body = writer.value(
      BERValue.Tag.sequence,
      [
        version, Writer.der(BERValue.Tag.set, [hashing]), inner,
        Writer.der(BERValue.Tag.context(0), certificates.map(\.der)),
        Writer.der(
          BERValue.Tag.set, Array(repeating: Writer.der(BERValue.Tag.sequence, signer), count: form.signerCount)),
      ])
    return writer.value(
      BERValue.Tag.sequence,
      [
        Writer.der(BERValue.Tag.objectIdentifier, [OID.signedData]), writer.value(BERValue.Tag.context(0), [body]),
      ])
  }

  private static func algorithm(_ oid: [UInt8]) -> [UInt8] {
    let null: [UInt8] = [0x05, 0x00]
    return Writer.der(BERValue.Tag.sequence, [Writer.der(BERValue.Tag.objectIdentifier, [oid]), null])
  }

  private static func attribute(_ oid: [UInt8], _ value: [UInt8]) -> [UInt8] {
    Writer.der(
      BERValue.Tag.sequence,
      [Writer.der(BERValue.Tag.objectIdentifier, [oid]), Writer.der(BERValue.Tag.set, [value])])
  }

  private struct Writer {
    let isIndefinite: Bool

    static func der(_ tag: UInt8, _ inside: [[UInt8]]) -> [UInt8] { BERValue.encode(tag, Array(inside.joined())[...]) }

    func value(_ tag: UInt8, _ inside: [[UInt8]]) -> [UInt8] {
      isIndefinite ? [tag, 0x80] + inside.joined() + [0, 0] : Self.der(tag, inside)
    }

    func octets(_ bytes: [UInt8], _ size: Int) -> [UInt8] {
      guard isIndefinite else { return Self.der(BERValue.Tag.octetString, [bytes]) }
      let pieces = stride(from: 0, to: bytes.count, by: size).map { start in
        Self.der(BERValue.Tag.octetString, [Array(bytes[start..<min(start + size, bytes.count)])])
      }
      return value(BERValue.Tag.constructedOctetString, pieces)
    }
  }
}

extension Certificate {
  /// The serial number as DER INTEGER.
  fileprivate var serialDER: [UInt8] {
    let padded = serialHex.count % 2 == 0 ? serialHex : "0" + serialHex
    guard var bytes = Hex.decode(padded) else { preconditionFailure("a certificate with a negative serial number") }
    if bytes[0] >= 0x80 { bytes.insert(0, at: 0) }
    return BERValue.encode(BERValue.Tag.integer, bytes[...])
  }
}
