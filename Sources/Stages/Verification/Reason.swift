import PurchasesCryptography

/// Why a proof was rejected: a closed list whose codes are stable, because they stand in events for ever.
/// `docs/verdicts.md` lists them all.
public enum Reason: Sendable, Hashable {
  /// The compact form, its header or its signature.
  case jws(JWSFailure)
  /// The certificates do not vouch for the signer.
  case chain(ChainFailure)
  /// The signature is good; what was signed is not acceptable here.
  case claim(ClaimFailure)

  public static let all: [Reason] =
    JWSFailure.allCases.map(Reason.jws) + ChainFailure.allCases.map(Reason.chain)
    + ClaimFailure.allCases.map(Reason.claim)

  public init?(code: String) {
    guard let reason = Self.byCode[code] else { return nil }
    self = reason
  }

  private static let byCode = Dictionary(uniqueKeysWithValues: all.map { ($0.code, $0) })

  public var code: String {
    switch self {
    case .jws(let failure): failure.code
    case .chain(.wrongChainLength): "chain-wrong-length"
    case .chain(let failure): "chain-" + failure.code
    case .claim(let failure): failure.rawValue
    }
  }

  /// Whether the signature was found to be Apple's (or a configured certificate's): such a proof is no forgery.
  public var isAuthentic: Bool {
    if case .claim = self { true } else { false }
  }
}

/// Reasons that come up only after the signature was found good.
public enum ClaimFailure: String, Sendable, Hashable, CaseIterable {
  case payloadNotJSON = "payload-not-json"
  case payloadDuplicateMember = "payload-duplicate-member"
  /// None of the four kinds of proof.
  case unknownKind = "unknown-kind"
  /// Another kind than the place it was sent to takes.
  case wrongKind = "wrong-kind"
  case missingField = "missing-field"
  case malformedField = "malformed-field"
  case wrongBundle = "wrong-bundle"
  case wrongAppAppleID = "wrong-app-apple-id"
  case unknownEnvironment = "unknown-environment"
  /// Known, but not one that this deployment takes.
  case environmentNotAccepted = "environment-not-accepted"
  /// An environment that the signer doesn't sign for.
  case environmentNotOfSigner = "environment-not-of-signer"
  case nestedEnvironmentMismatch = "nested-environment-mismatch"
  case nestedBundleMismatch = "nested-bundle-mismatch"
  case nestedTransactionMismatch = "nested-transaction-mismatch"
  case environmentMismatch = "environment-mismatch"
  case transactionMismatch = "transaction-mismatch"
  case originalTransactionMismatch = "original-transaction-mismatch"
  case productMismatch = "product-mismatch"
}
