import PurchasesCryptography

extension Reason {
  /// One sentence for people. It holds nothing of the proof.
  public var explanation: String {
    switch self {
    case .jws(let failure): failure.explanation
    case .receipt(let failure): failure.explanation
    case .chain(let failure): failure.explanation
    case .claim(let failure): failure.explanation
    }
  }
}

extension JWSFailure {
  var explanation: String {
    switch self {
    case .tooLarge: "The proof is larger than anything the App Store signs."
    case .wrongSegmentCount: "A compact JWS has three segments; this has another number."
    case .emptySegment: "A segment of the JWS is empty."
    case .headerNotBase64URL: "The header is not strict base64url."
    case .payloadNotBase64URL: "The payload is not strict base64url."
    case .signatureNotBase64URL: "The signature is not strict base64url."
    case .wrongSignatureLength: "The signature does not have the 64 bytes of ES256."
    case .headerNotJSON: "The header is not a JSON object."
    case .headerDuplicateMember: "The header names a member twice."
    case .algorithmNotES256: "The header asks for another algorithm than ES256."
    case .criticalHeader: "The header demands extensions that this program does not know."
    case .chainAbsent: "The header carries no certificate chain (x5c)."
    case .chainEmpty: "The certificate chain (x5c) is empty."
    case .chainNotStrings: "The certificate chain (x5c) is not an array of strings."
    case .chainNotBase64: "A certificate of the chain (x5c) is not strict base64."
    case .signatureInvalid: "The signature does not fit what was signed."
    }
  }
}

extension ReceiptFailure {
  var explanation: String {
    switch self {
    case .empty: "There is no receipt: the text is empty."
    case .tooLarge: "The receipt is larger than any that the App Store makes."
    case .notBase64: "The receipt is not in strict base64."
    case .encodedTwice: "The receipt was encoded in base64 twice."
    case .isJWS: "A compact JWS stands where an app receipt belongs; signed transactions go into signedTransaction."
    case .notASN1: "The receipt is not one well-formed value in BER or DER."
    case .notSignedData: "The receipt is well-formed, but not the signed data of PKCS#7."
    case .signedDataMalformed: "The receipt's signed data does not have the parts of PKCS#7."
    case .contentNotData: "The receipt signs content of another type than data."
    case .contentAbsent: "The receipt signs content that is not in it."
    case .tooManyCertificates: "The receipt carries more certificates than any that the App Store makes."
    case .signerCount: "The receipt does not have exactly one signer."
    case .signerNotNamed: "The receipt does not name its signer by issuer and serial number."
    case .signedAttributes: "The receipt's signed attributes do not name content type and digest once each."
    case .algorithm: "The receipt is not signed with RSA over SHA-1 or SHA-256."
    case .signatureInvalid: "The signature does not fit the receipt's content."
    case .signedLocally:
      "The receipt is one of Xcode or local testing, an environment that this deployment does not take."
    case .notAuthentic: "The App Store could not authenticate the receipt."
    case .accountUnknown: "The App Store does not know the receipt's account, or has deleted it."
    case .oldestMalformed: "The receipt of the oldest kind is malformed."
    }
  }
}

extension ChainFailure {
  var explanation: String {
    switch self {
    case .wrongChainLength: "The chain does not have exactly three certificates."
    case .certificateMalformed: "A certificate of the chain is not well-formed DER."
    case .unordered: "The certificates come in the wrong order."
    case .namesDoNotChain: "The certificates' names do not form a chain."
    case .untrustedRoot: "The chain does not lead to a configured trust anchor."
    case .signatureInvalid: "A certificate of the chain is not signed by the one above it."
    case .weakSignature: "A certificate of the chain is signed with a weak digest."
    case .markerMissingLeaf: "The signing certificate lacks Apple's marker for App Store signing."
    case .markerMissingIntermediate: "The intermediate certificate lacks Apple's marker."
    case .notACA: "The intermediate certificate may not sign certificates."
    case .leafIsCA: "The signing certificate is a certificate authority."
    case .leafMayNotSign: "The signing certificate may not sign data."
    case .keyNotP256: "The signing certificate's key is not on P-256."
    case .keyNotRSA: "The receipt's signing certificate has no RSA key of 2048 bits or more."
    case .unhandledCriticalExtension: "A certificate has a critical extension that this program does not know."
    case .notYetValid: "The chain was not yet valid when the proof was signed."
    case .expired: "The chain was no longer valid when the proof was signed."
    case .revoked: "A certificate of the chain has been revoked."
    case .notConfigured: "The certificate is not one that this deployment configured for local testing."
    }
  }
}

extension ClaimFailure {
  var explanation: String {
    switch self {
    case .payloadNotJSON: "The signed payload is not a JSON object."
    case .payloadDuplicateMember: "The signed payload names a member twice."
    case .payloadNotReceipt: "The signed content is not the set of attributes that a receipt is."
    case .unknownKind: "The signed payload is no transaction, renewal info, notification or app transaction."
    case .wrongKind: "The proof is authentic, but of another kind than belongs here."
    case .missingField: "The proof is authentic, but lacks a field that is needed."
    case .malformedField: "The proof is authentic, but a field is not what it must be."
    case .wrongBundle: "The proof is for another app."
    case .wrongAppAppleID: "The proof is for another App Store app id."
    case .unknownEnvironment: "The proof names an environment that does not exist."
    case .environmentNotAccepted: "This deployment does not take proofs of the environment."
    case .environmentNotOfSigner: "The proof names an environment that its signer does not sign for."
    case .nestedEnvironmentMismatch: "A proof inside the notification is of another environment."
    case .nestedBundleMismatch: "A proof inside the notification is for another app."
    case .nestedTransactionMismatch: "Renewal info and transaction of the notification belong to different purchases."
    case .deviceMismatch: "The receipt was made for another device than the one supplied."
    case .environmentMismatch: "The report names another environment than the verified proof."
    case .transactionMismatch: "The report names another transaction than the verified proof."
    case .originalTransactionMismatch: "The report names another original transaction than the verified proof."
    case .productMismatch: "The report names another product than the verified proof."
    }
  }
}
