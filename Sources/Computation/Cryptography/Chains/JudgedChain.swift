/// A chain that was found to lead from its leaf to a configured anchor, with what is needed to verify under it.
public struct JudgedChain: Sendable, Hashable {
  public let leaf: Certificate
  /// Nil for a pinned certificate, which has no issuer to speak of.
  public let intermediate: Certificate?
  /// The configured anchors with the root's name and key: one, or a renewed root beside its older form.
  public let anchors: [Certificate]
  /// The leaf's key, ready to use; nil for the RSA key of who signs receipts.
  public let leafKey: P256PublicKey?
  /// Digest of the certificates as presented; evidence of the verdict.
  public let digest: Hash256

  /// Nil where the whole chain is valid at the time (milliseconds since 1970); judged by the anchors' own dates, not
  /// by those of the presented root.
  public func failure(at time: Int64) -> ChainFailure? {
    if time < validFrom { return .notYetValid }
    if time > validThrough { return .expired }
    if anchors.contains(where: { $0.isValid(at: time) }) { return nil }
    return anchors.contains { time < $0.notBefore } ? .notYetValid : .expired
  }

  /// First millisecond at which leaf and intermediate are both valid.
  public var validFrom: Int64 { max(leaf.notBefore, intermediate?.notBefore ?? leaf.notBefore) }

  /// Last millisecond at which leaf and intermediate are both valid.
  public var validThrough: Int64 {
    min(leaf.lastValidMillisecond, intermediate?.lastValidMillisecond ?? leaf.lastValidMillisecond)
  }

  /// Digest of a presented chain: each certificate with its length before it.
  public static func digest(of x5c: [[UInt8]]) -> Hash256 {
    let hasher = SHA256.Hasher()
    for der in x5c {
      hasher.update(bigEndian: UInt32(clamping: der.count))
      hasher.update(der)
    }
    return hasher.finish()
  }
}
