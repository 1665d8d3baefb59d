/// A whole chain of App Store kind under a root of its own, from a seed: what the local App Store signs with.
public struct SigningAuthority: Sendable {
  public let root: Certificate
  public let intermediate: Certificate
  public let leaf: Certificate
  public let rootKey: PrivateKey
  public let intermediateKey: PrivateKey
  public let leafKey: P256PrivateKey

  /// The same arguments give the same bytes. Times are milliseconds since 1970.
  ///
  /// - Parameter responder: where leaf and intermediate say that one may ask whether they were revoked.
  public init(seed: [UInt8], name: String, notBefore: Int64, notAfter: Int64, responder: String? = nil) {
    rootKey = PrivateKey(.p256, seed: seed, label: "root")
    intermediateKey = PrivateKey(.p256, seed: seed, label: "intermediate")
    leafKey = P256PrivateKey(seed: seed, label: "leaf")
    root = CertificateBuilder(
      subject: [("CN", name + " Root CA"), ("O", name)], serial: [1], notBefore: notBefore, notAfter: notAfter,
      isCA: true, keyUsage: [.certificateSign]
    ).selfSigned(key: rootKey)
    var middle = CertificateBuilder(
      subject: [("CN", name + " Developer Relations"), ("O", name)], serial: [2], notBefore: notBefore,
      notAfter: notAfter, isCA: true, keyUsage: [.certificateSign], markers: [ChainPolicy.intermediateMarker])
    middle.responder = responder
    intermediate = middle.signed(publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
    var last = CertificateBuilder(
      subject: [("CN", name + " Store Signing"), ("O", name)], serial: [3], notBefore: notBefore, notAfter: notAfter,
      isCA: false, keyUsage: [.digitalSignature], markers: [ChainPolicy.leafMarker])
    last.responder = responder
    leaf = last.signed(publicKey: leafKey.key, issuer: intermediate, issuerKey: intermediateKey)
  }

  /// Leaf, intermediate, root in DER.
  public var x5c: [[UInt8]] { [leaf.der, intermediate.der, root.der] }

  public var anchors: TrustAnchors { TrustAnchors([root]) }
}
