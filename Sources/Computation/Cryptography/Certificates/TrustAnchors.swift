/// The roots a deployment trusts: the only source of trust there is.
public struct TrustAnchors: Sendable, Hashable {
  /// In the order they were given, without repetitions.
  public let certificates: [Certificate]
  /// Digest of the set, whatever its order; part of the identity of everything judged under it.
  public let identity: Hash256

  /// Reads DER roots. An expired root is allowed: it judges what was signed in its time.
  /// `label` names the file or setting in the error.
  public init(_ sources: [(label: String, der: [UInt8])]) throws(TrustAnchorError) {
    guard !sources.isEmpty else { throw TrustAnchorError(label: "", reason: .emptySet) }
    var certificates: [Certificate] = []
    for source in sources {
      let certificate = try CertificateFile.read(source.der, label: source.label)
      guard certificate.isIssued(byNameOf: certificate), certificate.isSigned(by: certificate) else {
        throw TrustAnchorError(label: source.label, reason: .notARoot)
      }
      if !certificates.contains(certificate) { certificates.append(certificate) }
    }
    self.init(certificates)
  }

  init(_ certificates: [Certificate]) {
    self.certificates = certificates
    let hasher = SHA256.Hasher()
    for fingerprint in certificates.map(\.fingerprint).sorted() { hasher.update(fingerprint) }
    identity = hasher.finish()
  }

  public static func == (left: Self, right: Self) -> Bool { left.identity == right.identity }

  public func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

/// Certificates that are trusted themselves, byte for byte, and vouch for no other: the one Xcode saves for StoreKit
/// testing.
public struct PinnedCertificates: Sendable, Hashable {
  public let certificates: [Certificate]

  public init(_ sources: [(label: String, der: [UInt8])]) throws(TrustAnchorError) {
    guard !sources.isEmpty else { throw TrustAnchorError(label: "", reason: .emptySet) }
    var certificates: [Certificate] = []
    for source in sources {
      let certificate = try CertificateFile.read(source.der, label: source.label)
      if !certificates.contains(certificate) { certificates.append(certificate) }
    }
    self.certificates = certificates
  }
}

/// Why a configured certificate can't be used; a reason to refuse to start.
public struct TrustAnchorError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Reason: String, Sendable, Hashable {
    case emptySet = "no trust anchors are configured"
    case pem = "is PEM text; DER is expected (openssl x509 -outform der converts)"
    case text = "is text (a web page?); a DER certificate is expected"
    case empty = "is empty"
    case truncated = "ends before the certificate does"
    case trailing = "holds more than one DER certificate"
    case malformed = "is not a certificate in DER"
    case notARoot = "is not a root: it is not signed by its own key"
  }

  /// The file or setting, as the caller named it; empty for the set as a whole.
  public let label: String
  public let reason: Reason

  public init(label: String, reason: Reason) {
    self.label = label
    self.reason = reason
  }

  public var description: String { label.isEmpty ? reason.rawValue : "\(label) \(reason.rawValue)" }
}

/// Tells apart the ways in which a certificate file goes wrong, for the operator who has to put it right.
enum CertificateFile {
  static func read(_ bytes: [UInt8], label: String) throws(TrustAnchorError) -> Certificate {
    do {
      return try Certificate(der: bytes)
    } catch {
      throw TrustAnchorError(label: label, reason: reason(bytes))
    }
  }

  private static func reason(_ bytes: [UInt8]) -> TrustAnchorError.Reason {
    let text = bytes.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    if text.isEmpty { return .empty }
    if text.starts(with: "-----BEGIN".utf8) { return .pem }
    if text.first != 0x30 || text.prefix(64).allSatisfy({ $0 >= 0x09 && $0 < 0x7F }) {
      return text.prefix(64).allSatisfy { $0 >= 0x09 && $0 < 0x7F } ? .text : .malformed
    }
    guard let length = outerLength(bytes) else { return .malformed }
    if bytes.count < length { return .truncated }
    if bytes.count > length { return .trailing }
    return .malformed
  }

  /// Header and content of the outer DER value; nil for a length no certificate has.
  private static func outerLength(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 2 else { return nil }
    if bytes[1] < 0x80 { return 2 + Int(bytes[1]) }
    let size = Int(bytes[1] & 0x7F)
    guard (1...3).contains(size), bytes.count >= 2 + size else { return nil }
    return 2 + size + bytes[2..<(2 + size)].reduce(0) { $0 << 8 | Int($1) }
  }
}
