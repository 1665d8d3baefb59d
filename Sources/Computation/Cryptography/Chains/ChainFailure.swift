/// Why a certificate chain does not vouch for its leaf. The raw values are stable codes: they stand in events.
public enum ChainFailure: String, Error, Sendable, Hashable, CaseIterable {
  /// Not exactly as many certificates as the policy asks for.
  case wrongChainLength = "wrong-chain-length"
  /// A certificate that is not one DER certificate, or whose extensions or dates don't decode.
  case certificateMalformed = "certificate-malformed"
  /// The right certificates, the root first.
  case unordered = "unordered"
  /// A certificate's issuer is not the subject of the next.
  case namesDoNotChain = "names-do-not-chain"
  /// The last certificate names no configured anchor, or has an anchor's name with another key.
  case untrustedRoot = "untrusted-root"
  case signatureInvalid = "signature-invalid"
  /// Signed over a digest that is not collision resistant, or one this policy doesn't know.
  case weakSignature = "weak-signature"
  case markerMissingLeaf = "marker-missing-leaf"
  case markerMissingIntermediate = "marker-missing-intermediate"
  /// The intermediate has no CA flag, or its key usage doesn't allow signing certificates.
  case notACA = "not-a-ca"
  case leafIsCA = "leaf-is-ca"
  /// The leaf's key usage doesn't allow signing data.
  case leafMayNotSign = "leaf-may-not-sign"
  case keyNotP256 = "key-not-p256"
  /// Of a receipt's signer: not RSA, or of a size that nobody should trust or compute with.
  case keyNotRSA = "key-not-rsa"
  /// An extension that says it must be understood, and isn't.
  case unhandledCriticalExtension = "unhandled-critical-extension"
  case notYetValid = "not-yet-valid"
  case expired = "expired"
  /// The authority has taken back a certificate: told by a responder, not by the chain itself.
  case revoked = "revoked"
  /// Not one of the certificates the deployment configured.
  case notConfigured = "not-configured"

  public var code: String { rawValue }
}
