import CPurchasesCrypto

/// An X.509 certificate, read once. Reading is strict (one DER value, nothing behind it) and judges nothing:
/// what a certificate is good for is ``ChainPolicy``'s matter.
///
/// An object, so that handing it on copies none of its parts: cores that judge under one chain would else count the same
/// dozen references up and down against each other.
public final class Certificate: Sendable, Hashable {
  /// Apple's certificates are about a kilobyte.
  public static let maximumByteCount = 16 * 1024

  public let der: [UInt8]
  /// SHA-256 of the DER.
  public let fingerprint: Hash256
  /// DER of the names.
  public let subjectDER: [UInt8]
  public let issuerDER: [UInt8]
  /// The names for people, as in `CN=Root,O=Example`. Never compare these.
  public let subject: String
  public let issuer: String
  /// The serial number's digits as OpenSSL prints them, in lower case, without leading zeros.
  public let serialHex: String
  /// Milliseconds since 1970. A certificate is valid from `notBefore` through `notAfter`, both included.
  public let notBefore: Int64
  public let notAfter: Int64
  /// DER SubjectPublicKeyInfo, as it stands in the certificate.
  public let spki: [UInt8]
  public let keyKind: KeyKind
  /// Whether the basic constraints say so; absent constraints say no.
  public let isCA: Bool
  /// Key usages; nil where the extension is absent and nothing is forbidden.
  public let keyUsage: KeyUsage?
  /// Digest of the signature under this certificate, such as `SHA256`; empty where the algorithm has none of its own.
  public let signatureDigest: String
  public let extensions: [Extension]

  let handle: CertificateHandle
  let key: KeyHandle

  public struct Extension: Sendable, Hashable {
    /// Dotted.
    public let oid: String
    public let isCritical: Bool
    /// The content of the extension's octet string.
    public let value: [UInt8]
  }

  public struct KeyUsage: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let digitalSignature = KeyUsage(rawValue: UInt32(X509v3_KU_DIGITAL_SIGNATURE))
    public static let certificateSign = KeyUsage(rawValue: UInt32(X509v3_KU_KEY_CERT_SIGN))
  }

  public init(der: [UInt8]) throws(CertificateError) {
    guard der.count <= Self.maximumByteCount else { throw .tooLarge }
    guard let handle = CertificateHandle(der: der) else { throw .notDER }
    let certificate = handle.pointer
    // Asking for the flags makes OpenSSL decode the extensions it knows.
    let flags = X509_get_extension_flags(certificate)
    guard flags & UInt32(EXFLAG_INVALID) == 0 else {
      clearOpenSSLErrors()
      throw .malformedExtension
    }
    let extensions = Self.extensions(of: certificate)
    guard Set(extensions.map(\.oid)).count == extensions.count else { throw .malformedExtension }
    // Only version 3 has extensions; what says another and has some was made by nobody's authority.
    guard extensions.isEmpty || X509_get_version(certificate) == X509_VERSION_3 else { throw .malformedExtension }
    guard let notBefore = epochMilliseconds(X509_get0_notBefore(certificate)),
      let notAfter = epochMilliseconds(X509_get0_notAfter(certificate))
    else { throw .malformedDate }
    guard let key = handle.publicKey else { throw .unreadableKey }

    self.handle = handle
    self.key = key
    self.der = der
    self.extensions = extensions
    self.notBefore = notBefore
    self.notAfter = notAfter
    fingerprint = SHA256.digest(der)
    subjectDER = encodedDER { i2d_X509_NAME(X509_get_subject_name(certificate), $0) }
    issuerDER = encodedDER { i2d_X509_NAME(X509_get_issuer_name(certificate), $0) }
    subject = Self.text(of: X509_get_subject_name(certificate))
    issuer = Self.text(of: X509_get_issuer_name(certificate))
    serialHex = Self.serial(of: certificate)
    spki = handle.spki
    keyKind = key.kind
    isCA = flags & UInt32(EXFLAG_CA) != 0 && flags & UInt32(EXFLAG_BCONS) != 0
    keyUsage =
      flags & UInt32(EXFLAG_KUSAGE) != 0 ? KeyUsage(rawValue: X509_get_key_usage(certificate)) : nil
    signatureDigest = Self.signatureDigest(of: certificate)
    clearOpenSSLErrors()
  }

  public func hasExtension(_ oid: String) -> Bool { extensions.contains { $0.oid == oid } }

  /// Whether the time, in milliseconds since 1970, lies within the validity.
  public func isValid(at time: Int64) -> Bool { time >= notBefore && time <= lastValidMillisecond }

  /// Certificates count whole seconds, so the last second is valid to its end.
  var lastValidMillisecond: Int64 { notAfter + 999 }

  /// Whether the issuer named here is `other`'s subject, compared as RFC 5280 has it.
  public func isIssued(byNameOf other: Certificate) -> Bool {
    X509_NAME_cmp(X509_get_issuer_name(handle.pointer), X509_get_subject_name(other.handle.pointer)) == 0
  }

  public func hasSameSubject(as other: Certificate) -> Bool {
    X509_NAME_cmp(X509_get_subject_name(handle.pointer), X509_get_subject_name(other.handle.pointer)) == 0
  }

  /// Whether `other`'s key made the signature under this certificate. Says nothing of names, dates and uses.
  public func isSigned(by other: Certificate) -> Bool { handle.isSigned(by: other.key) }

  public static func == (left: Certificate, right: Certificate) -> Bool { left.der == right.der }

  public func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }
}

/// Why bytes are not a certificate this module reads.
public enum CertificateError: String, Error, Sendable, Hashable {
  case notDER = "not-der"
  case tooLarge = "too-large"
  case malformedExtension = "malformed-extension"
  case malformedDate = "malformed-date"
  case unreadableKey = "unreadable-key"
}

extension Certificate {
  private static func extensions(of certificate: OpaquePointer) -> [Extension] {
    (0..<max(0, X509_get_ext_count(certificate))).compactMap { index in
      guard let found = X509_get_ext(certificate, index), let data = X509_EXTENSION_get_data(found) else { return nil }
      let bytes = UnsafeBufferPointer(
        start: ASN1_STRING_get0_data(data), count: Int(ASN1_STRING_length(data)))
      return Extension(
        oid: dottedOID(X509_EXTENSION_get_object(found)), isCritical: X509_EXTENSION_get_critical(found) == 1,
        value: Array(bytes))
    }
  }

  private static func text(of name: OpaquePointer?) -> String {
    guard let output = BIO_new(BIO_s_mem()) else { preconditionFailure("out of memory") }
    defer { BIO_free(output) }
    guard X509_NAME_print_ex(output, name, 0, purchases_readable_names()) >= 0 else {
      clearOpenSSLErrors()
      return ""
    }
    var start: UnsafeMutablePointer<CChar>?
    let count = purchases_bio_memory(output, &start)
    return String(decoding: UnsafeRawBufferPointer(start: start, count: max(0, count)), as: UTF8.self)
  }

  private static func serial(of certificate: OpaquePointer) -> String {
    digits(of: X509_get0_serialNumber(certificate))
  }

  static func digits(of serial: UnsafePointer<ASN1_INTEGER>?) -> String {
    guard let number = ASN1_INTEGER_to_BN(serial, nil) else {
      clearOpenSSLErrors()
      return ""
    }
    defer { BN_free(number) }
    guard let text = BN_bn2hex(number) else { return "" }
    defer { purchases_openssl_free(text) }
    let digits = String(cString: text).lowercased()
    let negative = digits.hasPrefix("-")
    let significant = digits.drop { $0 == "0" || $0 == "-" }
    return (negative ? "-" : "") + (significant.isEmpty ? "0" : significant)
  }

  private static func signatureDigest(of certificate: OpaquePointer) -> String {
    var digest: Int32 = 0
    guard X509_get_signature_info(certificate, &digest, nil, nil, nil) == 1, digest != NID_undef,
      let name = OBJ_nid2sn(digest)
    else {
      clearOpenSSLErrors()
      return ""
    }
    return String(cString: name)
  }
}
