import PurchasesCryptography

/// Why a proof was rejected: a closed list whose codes are stable, because they stand in events for ever.
/// `docs/verdicts.md` lists them all.
public enum Reason: Sendable, Hashable {
  /// The compact form, its header or its signature.
  case jws(JWSFailure)
  /// The app receipt's form or its signature.
  case receipt(ReceiptFailure)
  /// The certificates do not vouch for the signer.
  case chain(ChainFailure)
  /// The signature is good; what was signed is not acceptable here.
  case claim(ClaimFailure)

  public static let all: [Reason] =
    JWSFailure.allCases.map(Reason.jws) + ChainFailure.allCases.map(Reason.chain)
    + ClaimFailure.allCases.map(Reason.claim) + ReceiptFailure.allCases.map(Reason.receipt)

  public init?(code: String) {
    guard let reason = Self.byCode[code] else { return nil }
    self = reason
  }

  private static let byCode = Dictionary(uniqueKeysWithValues: all.map { ($0.code, $0) })

  public var code: String {
    switch self {
    case .jws(let failure): failure.code
    case .receipt(let failure): failure.rawValue
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
  /// Of an app receipt: not the set of attributes that a receipt is.
  case payloadNotReceipt = "payload-not-receipt"
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
  /// The receipt's hash is not that of the device whose identifier was supplied.
  case deviceMismatch = "device-mismatch"
  case environmentMismatch = "environment-mismatch"
  case transactionMismatch = "transaction-mismatch"
  case originalTransactionMismatch = "original-transaction-mismatch"
  case productMismatch = "product-mismatch"
}

/// Reasons that come up before an app receipt's signature is found good.
public enum ReceiptFailure: String, Sendable, Hashable, CaseIterable {
  case empty = "receipt-empty"
  case tooLarge = "receipt-too-large"
  case notBase64 = "receipt-not-base64"
  case encodedTwice = "receipt-encoded-twice"
  /// A signed transaction in the place of a receipt.
  case isJWS = "receipt-is-jws"
  case notASN1 = "receipt-not-asn1"
  case notSignedData = "receipt-not-signed-data"
  case signedDataMalformed = "receipt-signed-data-malformed"
  case contentNotData = "receipt-content-not-data"
  case contentAbsent = "receipt-content-absent"
  case tooManyCertificates = "receipt-too-many-certificates"
  case signerCount = "receipt-signer-count"
  case signerNotNamed = "receipt-signer-not-named"
  case signedAttributes = "receipt-signed-attributes"
  case algorithm = "receipt-algorithm"
  case signatureInvalid = "receipt-signature-invalid"
  /// Of Xcode or local testing, which nobody signs for whom this deployment trusts.
  case signedLocally = "receipt-signed-locally"
  /// Of the oldest kind: what the App Store's verifyReceipt said (21003 and 21010).
  case notAuthentic = "receipt-not-authentic"
  case accountUnknown = "receipt-account-unknown"
  /// Of the oldest kind: the App Store calls it malformed (21002), and so do we.
  case oldestMalformed = "receipt-oldest-malformed"
}
