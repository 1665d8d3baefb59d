/// What Apple's signed StoreKit data must be signed with. Pure: anchors and time are handed in.
///
/// Trust comes from the configured anchors alone. The third certificate of a chain only says which of them is meant: it
/// must have an anchor's name and key, and the signature under the intermediate is checked with the anchor. No authority
/// key identifier is asked for, since names and signatures already decide.
public enum ChainPolicy {
  /// Leaf, intermediate, root.
  public static let length = 3
  /// Marks a certificate that signs for the App Store.
  public static let leafMarker = "1.2.840.113635.100.6.11.1"
  /// Marks the intermediate of Apple's developer relations.
  public static let intermediateMarker = "1.2.840.113635.100.6.2.1"

  private static let understoodCritical: Set<String> = ["2.5.29.19", "2.5.29.15", leafMarker, intermediateMarker]
  static let strongDigests: Set<String> = ["SHA256", "SHA384", "SHA512"]

  /// Judges a chain for data signed at `time`, in milliseconds since 1970.
  public static func judge(
    x5c: [[UInt8]], anchors: TrustAnchors, at time: Int64
  ) -> Result<JudgedChain, ChainFailure> {
    do {
      let chain = try inspect(x5c: x5c, anchors: anchors)
      if let failure = chain.failure(at: time) { return .failure(failure) }
      return .success(chain)
    } catch {
      return .failure(error)
    }
  }

  /// All of the judgement that doesn't depend on time; ``JudgedChain/failure(at:)`` is the rest.
  public static func inspect(x5c: [[UInt8]], anchors: TrustAnchors) throws(ChainFailure) -> JudgedChain {
    guard x5c.count == length else { throw .wrongChainLength }
    let leaf = try certificate(x5c[0])
    let intermediate = try certificate(x5c[1])
    // Senders put the anchor itself last; reading it again for each chain is no use.
    let configured = anchors.certificates.first { $0.der == x5c[2] }
    let root = if let configured { configured } else { try certificate(x5c[2]) }

    guard leaf.isIssued(byNameOf: intermediate), intermediate.isIssued(byNameOf: root) else {
      let reversed = root.isIssued(byNameOf: intermediate) && intermediate.isIssued(byNameOf: leaf)
      throw reversed ? .unordered : .namesDoNotChain
    }
    let matching = anchors.certificates.filter { $0.hasSameSubject(as: root) && $0.spki == root.spki }
    guard let anchor = matching.first else { throw .untrustedRoot }

    try checkUses(leaf: leaf, intermediate: intermediate, digests: strongDigests)
    guard intermediate.isSigned(by: anchor), leaf.isSigned(by: intermediate) else { throw .signatureInvalid }
    return JudgedChain(
      leaf: leaf, intermediate: intermediate, anchors: matching, leafKey: try signingKey(of: leaf),
      digest: JudgedChain.digest(of: x5c))
  }

  /// What the certificates of a chain say that they are for.
  static func checkUses(
    leaf: Certificate, intermediate: Certificate, digests: Set<String>
  ) throws(ChainFailure) {
    guard intermediate.isCA, intermediate.keyUsage?.contains(.certificateSign) ?? true else { throw .notACA }
    guard !leaf.isCA else { throw .leafIsCA }
    guard leaf.keyUsage?.contains(.digitalSignature) ?? true else { throw .leafMayNotSign }
    guard leaf.hasExtension(leafMarker) else { throw .markerMissingLeaf }
    guard intermediate.hasExtension(intermediateMarker) else { throw .markerMissingIntermediate }
    for certificate in [leaf, intermediate] {
      guard certificate.extensions.allSatisfy({ !$0.isCritical || understoodCritical.contains($0.oid) }) else {
        throw .unhandledCriticalExtension
      }
      guard digests.contains(certificate.signatureDigest) else { throw .weakSignature }
    }
  }

  /// Judges the chain of one certificate that Xcode and local testing send: it must be, byte for byte, a configured one.
  public static func judge(
    x5c: [[UInt8]], pinned: PinnedCertificates, at time: Int64
  ) -> Result<JudgedChain, ChainFailure> {
    guard x5c.count == 1 else { return .failure(.wrongChainLength) }
    guard let certificate = pinned.certificates.first(where: { $0.der == x5c[0] }) else {
      return .failure(.notConfigured)
    }
    do {
      let chain = JudgedChain(
        leaf: certificate, intermediate: nil, anchors: [certificate], leafKey: try signingKey(of: certificate),
        digest: JudgedChain.digest(of: x5c))
      if let failure = chain.failure(at: time) { return .failure(failure) }
      return .success(chain)
    } catch {
      return .failure(error)
    }
  }

  static func certificate(_ der: [UInt8]) throws(ChainFailure) -> Certificate {
    do {
      return try Certificate(der: der)
    } catch {
      throw .certificateMalformed
    }
  }

  private static func signingKey(of leaf: Certificate) throws(ChainFailure) -> P256PublicKey {
    guard leaf.keyKind == .p256 else { throw .keyNotP256 }
    return P256PublicKey(leaf.key, spki: leaf.spki)
  }
}
