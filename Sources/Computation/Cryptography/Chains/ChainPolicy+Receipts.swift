/// What app receipts must be signed with: RSA, from a certificate that is named in the receipt and sent along, through one
/// intermediate that is sent along too, to a configured anchor.
extension ChainPolicy {
  /// Apple signed receipts and the certificates below its root over SHA-1 until 2023. Dates decide how long that counts.
  static let receiptDigests = strongDigests.union(["SHA1"])
  /// Smaller keys are broken, larger ones only keep a verifier busy.
  private static let rsaBits = 2048...8192

  /// All of the judgement that doesn't depend on time; ``JudgedChain/failure(at:)`` is the rest.
  public static func inspect(_ receipt: SignedData, anchors: TrustAnchors) throws(ChainFailure) -> JudgedChain {
    let sent = try certificates(of: receipt)
    guard let leaf = sent.first(where: { receipt.isSigner($0) }) else { throw .wrongChainLength }
    let above = sent.filter { $0 != leaf && leaf.isIssued(byNameOf: $0) }
    guard !above.isEmpty else { throw sent.count == 1 ? .wrongChainLength : .namesDoNotChain }
    // Renewed intermediates keep their name: the one that signed counts.
    guard let intermediate = above.first(where: { leaf.isSigned(by: $0) }) else { throw .signatureInvalid }
    let matching = anchors.certificates.filter {
      intermediate.isIssued(byNameOf: $0) && intermediate.isSigned(by: $0)
    }
    guard !matching.isEmpty else { throw .untrustedRoot }
    try checkUses(leaf: leaf, intermediate: intermediate, digests: receiptDigests)
    try checkKey(leaf)
    return JudgedChain(
      leaf: leaf, intermediate: intermediate, anchors: matching, leafKey: nil,
      digest: JudgedChain.digest(of: receipt.certificates))
  }

  /// A receipt of Xcode's or of local testing carries one certificate, which must be, byte for byte, a configured one.
  public static func inspect(
    _ receipt: SignedData, pinned: PinnedCertificates
  ) throws(ChainFailure) -> JudgedChain {
    guard receipt.certificates.count == 1 else { throw .wrongChainLength }
    guard let certificate = pinned.certificates.first(where: { $0.der == receipt.certificates[0] }),
      receipt.isSigner(certificate)
    else { throw .notConfigured }
    try checkKey(certificate)
    return JudgedChain(
      leaf: certificate, intermediate: nil, anchors: [certificate], leafKey: nil,
      digest: JudgedChain.digest(of: receipt.certificates))
  }

  private static func certificates(of receipt: SignedData) throws(ChainFailure) -> [Certificate] {
    var certificates: [Certificate] = []
    for der in receipt.certificates { certificates.append(try certificate(der)) }
    return certificates
  }

  private static func checkKey(_ leaf: Certificate) throws(ChainFailure) {
    guard case .rsa(let bits) = leaf.keyKind, rsaBits.contains(bits) else { throw .keyNotRSA }
  }
}
