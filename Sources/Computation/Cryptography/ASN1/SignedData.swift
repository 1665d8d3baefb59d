/// PKCS#7 SignedData as app receipts have it, taken apart but not judged. DER and BER alike.
public struct SignedData: Sendable {
  /// Digests that receipts are signed over; which of them, the receipt says.
  public enum Digest: String, Sendable, Hashable {
    case sha1 = "SHA-1"
    case sha256 = "SHA-256"
  }

  /// Apple sends three.
  public static let maximumCertificateCount = 8

  /// What was signed.
  public let content: [UInt8]
  /// The certificates as they were sent along.
  public let certificates: [[UInt8]]
  public let digest: Digest

  let signature: [UInt8]
  /// DER of the issuer's name in the signer's certificate, and the digits of its serial number in hex.
  let issuer: [UInt8]
  let serialHex: String
  /// Nil where the content itself is signed.
  private let attributes: BERValue?

  public init(parsing bytes: [UInt8]) throws(SignedDataFailure) {
    let outer: BERValue
    do { outer = try BERValue(parsing: bytes) } catch { throw .notASN1(error) }
    let info = outer.children
    guard outer.tag == BERValue.Tag.sequence, info.count == 2, info[0].isObject(OID.signedData),
      let body = info[1].inside(BERValue.Tag.context(0), BERValue.Tag.sequence)
    else { throw .notSignedData }
    var members = body.children[...]
    func take(_ tag: UInt8) -> BERValue? { members.first?.tag == tag ? members.removeFirst() : nil }
    guard take(BERValue.Tag.integer) != nil, take(BERValue.Tag.set) != nil,
      let inner = take(BERValue.Tag.sequence)?.children, let type = inner.first,
      type.tag == BERValue.Tag.objectIdentifier
    else { throw .malformed }
    guard type.isObject(OID.data) else { throw .contentNotData }
    guard inner.count == 2, inner[1].tag == BERValue.Tag.context(0), inner[1].children.count == 1,
      let content = inner[1].children[0].octets
    else { throw .contentAbsent }
    self.content = content
    let sent = take(BERValue.Tag.context(0))?.children ?? []
    guard sent.count <= Self.maximumCertificateCount else { throw .tooManyCertificates }
    certificates = sent.map { Array($0.encoding) }
    // Revocation lists say nothing here: whoever sends a receipt could leave them out.
    _ = take(BERValue.Tag.context(1))
    guard let signers = take(BERValue.Tag.set)?.children, members.isEmpty else { throw .malformed }
    guard signers.count == 1 else { throw .signerCount }
    let signer = try Self.signer(signers[0])
    (issuer, serialHex, digest) = (signer.issuer, signer.serialHex, signer.digest)
    (signature, attributes) = (signer.signature, signer.attributes)
  }

  private struct Signer {
    var issuer: [UInt8]
    var serialHex: String
    var digest: Digest
    var signature: [UInt8]
    var attributes: BERValue?
  }

  private static func signer(_ value: BERValue) throws(SignedDataFailure) -> Signer {
    var members = value.children[...]
    func take(_ tag: UInt8) -> BERValue? { members.first?.tag == tag ? members.removeFirst() : nil }
    guard value.tag == BERValue.Tag.sequence, take(BERValue.Tag.integer) != nil else { throw .malformed }
    // The other way to name a signer, by its key's identifier, has another tag; Apple doesn't use it.
    guard let name = take(BERValue.Tag.sequence)?.children, name.count == 2, name[0].tag == BERValue.Tag.sequence,
      name[1].tag == BERValue.Tag.integer
    else { throw .signerNotNamed }
    guard let algorithm = take(BERValue.Tag.sequence)?.children.first else { throw .malformed }
    let attributes = take(BERValue.Tag.context(0))
    guard let signing = take(BERValue.Tag.sequence)?.children.first,
      let signature = members.popFirst()?.octets
    else { throw .malformed }
    // Nobody signed these.
    _ = take(BERValue.Tag.context(1))
    guard members.isEmpty else { throw .malformed }
    let digest: Digest
    if algorithm.isObject(OID.sha256) {
      digest = .sha256
    } else if algorithm.isObject(OID.sha1) {
      digest = .sha1
    } else {
      throw .algorithm
    }
    let isSame = signing.isObject(digest == .sha256 ? OID.sha256WithRSA : OID.sha1WithRSA)
    guard isSame || signing.isObject(OID.rsa) else { throw .algorithm }
    let digits = Hex.encode(Array(name[1].content)).drop { $0 == "0" }
    return Signer(
      issuer: Array(name[0].encoding), serialHex: digits.isEmpty ? "0" : String(digits), digest: digest,
      signature: signature, attributes: attributes)
  }

  /// Whether the certificate is the one that the signer is named by.
  func isSigner(_ certificate: Certificate) -> Bool {
    certificate.serialHex == serialHex && certificate.issuerDER == issuer
  }

  /// Checks that the certificate's key, RSA, signed the content. Says nothing of who the certificate is.
  public func verify(by certificate: Certificate) throws(SignedDataFailure) {
    var message = content
    if let attributes {
      let hash = digest == .sha256 ? SHA256.digest(content).bytes : SHA1.digest(content)
      guard try attributes.isFor(hash) else { throw .signatureInvalid }
      // What is signed is the set itself, not the member that holds it.
      message = attributes.definite
      message[0] = BERValue.Tag.set
    }
    guard certificate.key.verifyRSA(signature: signature, message: message, digest: digest) else {
      throw .signatureInvalid
    }
  }
}

/// Why bytes are not a receipt's PKCS#7 SignedData, or not signed as they must be.
public enum SignedDataFailure: Error, Sendable, Hashable {
  case notASN1(BERFailure)
  case notSignedData
  case malformed
  case contentNotData
  case contentAbsent
  case tooManyCertificates
  case signerCount
  case signerNotNamed
  case signedAttributes
  case algorithm
  case signatureInvalid
}

/// Object identifiers in their encoding.
enum OID {
  /// 1.2.840.113549.1.7.1 and .2
  static let data: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
  static let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
  /// 1.2.840.113549.1.9.3 and .4
  static let contentType: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x03]
  static let messageDigest: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x04]
  /// 1.2.840.113549.1.1.1, .5 and .11
  static let rsa: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
  static let sha1WithRSA: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x05]
  static let sha256WithRSA: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B]
  /// 1.3.14.3.2.26
  static let sha1: [UInt8] = [0x2B, 0x0E, 0x03, 0x02, 0x1A]
  /// 2.16.840.1.101.3.4.2.1
  static let sha256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
}

extension BERValue {
  fileprivate func isObject(_ oid: [UInt8]) -> Bool {
    tag == Tag.objectIdentifier && content.elementsEqual(oid)
  }

  /// The one value inside, where both tags are the expected ones.
  fileprivate func inside(_ outer: UInt8, _ inner: UInt8) -> BERValue? {
    let children = children
    return tag == outer && children.count == 1 && children[0].tag == inner ? children[0] : nil
  }

  /// Whether the signed attributes speak of content of the type `data` with that digest. Each of the two must be there
  /// once, with one value; what else is signed makes no difference.
  fileprivate func isFor(_ digest: [UInt8]) throws(SignedDataFailure) -> Bool {
    var types: [BERValue] = []
    var digests: [BERValue] = []
    for attribute in children {
      let members = attribute.children
      guard attribute.tag == Tag.sequence, members.count == 2, members[0].tag == Tag.objectIdentifier,
        members[1].tag == Tag.set
      else { throw .signedAttributes }
      if members[0].isObject(OID.contentType) { types += members[1].children }
      if members[0].isObject(OID.messageDigest) { digests += members[1].children }
    }
    guard types.count == 1, types[0].isObject(OID.data), digests.count == 1, let signed = digests[0].octets else {
      throw .signedAttributes
    }
    return signed == digest
  }
}
