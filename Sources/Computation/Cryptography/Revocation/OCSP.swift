import CPurchasesCrypto

/// The Online Certificate Status Protocol (RFC 6960): what to ask about a certificate, and what an answer says of it. Pure:
/// who asks, when and how often is another room's matter.
public enum OCSP {
  /// Answers of Apple's responders are about two kilobytes.
  public static let maximumAnswerBytes = 64 * 1024

  /// Where a certificate says that one may ask about it: its `http` addresses, in order.
  public static func responders(of certificate: Certificate) -> [String] {
    guard let found = X509_get1_ocsp(certificate.handle.pointer) else {
      clearOpenSSLErrors()
      return []
    }
    defer { X509_email_free(found) }
    return (0..<purchases_string_count(found)).compactMap { index in
      purchases_string_at(found, index).map { String(cString: $0) }
    }.filter { $0.hasPrefix("http://") }
  }

  /// The request about a certificate, in DER. The same certificate gives the same bytes: there is no nonce, since responders
  /// sign their answers ahead of time and the answer's own validity bounds its age.
  public static func request(about certificate: Certificate, issuer: Certificate) -> [UInt8] {
    guard let request = OCSP_REQUEST_new(), let id = identity(of: certificate, issuer) else {
      preconditionFailure("OpenSSL can't ask about a certificate that it has read")
    }
    defer { OCSP_REQUEST_free(request) }
    // The request takes the identity over.
    precondition(OCSP_request_add0_id(request, id) != nil, "out of memory")
    return encodedDER { i2d_OCSP_REQUEST(request, $0) }
  }

  /// SHA-1 is what responders know certificates by (RFC 5019); nothing is signed with it.
  static func identity(of certificate: Certificate, _ issuer: Certificate) -> OpaquePointer? {
    OCSP_cert_to_id(EVP_sha1(), certificate.handle.pointer, issuer.handle.pointer)
  }
}

/// What a responder said of a certificate, once its signature was found good.
public struct RevocationAnswer: Sendable, Hashable {
  public enum Status: Sendable, Hashable {
    case good
    /// Since when, in milliseconds since 1970.
    case revoked(since: Int64)
    /// The responder does not know the certificate.
    case unknown
  }

  public let status: Status
  /// From when on this is so, in milliseconds since 1970.
  public let thisUpdate: Int64
  /// Until when it may be used.
  public let nextUpdate: Int64

  /// - Parameters:
  ///   - answer: DER, as the responder sent it.
  ///   - at: milliseconds since 1970. The answer must be in force then, and its signer's certificate valid.
  ///   - skewMilliseconds: what the responder's clock may be ahead of ours.
  public init(
    reading answer: [UInt8], about certificate: Certificate, issuer: Certificate, at: Int64,
    skewMilliseconds: Int64 = 300_000
  ) throws(RevocationFailure) {
    guard answer.count <= OCSP.maximumAnswerBytes else { throw .tooLarge }
    guard let response = readingDER(answer, free: { OCSP_RESPONSE_free($0) }, { d2i_OCSP_RESPONSE(nil, $0, $1) }) else {
      throw .malformed
    }
    defer { OCSP_RESPONSE_free(response) }
    switch OCSP_response_status(response) {
    case OCSP_RESPONSE_STATUS_SUCCESSFUL: break
    case OCSP_RESPONSE_STATUS_TRYLATER: throw .tryLater
    case OCSP_RESPONSE_STATUS_INTERNALERROR: throw .responderFailed
    default: throw .responderRefused
    }
    guard let basic = OCSP_response_get1_basic(response) else {
      clearOpenSSLErrors()
      throw .malformed
    }
    defer { OCSP_BASICRESP_free(basic) }
    guard Self.isSigned(basic, by: issuer, at: at) else { throw .signatureInvalid }
    guard let id = OCSP.identity(of: certificate, issuer) else { throw .malformed }
    defer { OCSP_CERTID_free(id) }
    var status: Int32 = 0
    var reason: Int32 = 0
    var revokedAt: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    var from: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    var until: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    guard OCSP_resp_find_status(basic, id, &status, &reason, &revokedAt, &from, &until) == 1 else {
      clearOpenSSLErrors()
      throw .otherCertificate
    }
    // Without an end it could be shown again for ever.
    guard let thisUpdate = epochMilliseconds(from), let nextUpdate = epochMilliseconds(until) else { throw .undated }
    guard thisUpdate <= at + skewMilliseconds else { throw .notYetValid }
    guard at <= nextUpdate else { throw .expired }
    switch status {
    case V_OCSP_CERTSTATUS_GOOD: self.status = .good
    case V_OCSP_CERTSTATUS_REVOKED:
      guard let since = epochMilliseconds(revokedAt) else { throw .undated }
      self.status = .revoked(since: since)
    default: self.status = .unknown
    }
    self.thisUpdate = thisUpdate
    self.nextUpdate = nextUpdate
  }

  /// By the issuer itself, or by a certificate that the issuer made for signing such answers, valid at the time.
  private static func isSigned(_ basic: OpaquePointer, by issuer: Certificate, at: Int64) -> Bool {
    guard let store = X509_STORE_new(), let known = purchases_certificates(issuer.handle.pointer) else {
      preconditionFailure("out of memory")
    }
    defer {
      X509_STORE_free(store)
      purchases_certificates_free(known)
      clearOpenSSLErrors()
    }
    guard X509_STORE_add_cert(store, issuer.handle.pointer) == 1, let parameters = X509_STORE_get0_param(store) else {
      return false
    }
    // The issuer is trusted for itself: how it came to be trusted was judged with the chain. Time is handed in.
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    X509_VERIFY_PARAM_set_time(parameters, Int(at / 1000))
    return OCSP_basic_verify(basic, known, store, 0) == 1
  }
}

/// Why an answer tells nothing. None of these says anything about the certificate: whoever asked has to ask again.
public enum RevocationFailure: String, Error, Sendable, Hashable, CaseIterable {
  case tooLarge = "too-large"
  case malformed
  case tryLater = "try-later"
  case responderFailed = "responder-failed"
  case responderRefused = "responder-refused"
  case signatureInvalid = "signature-invalid"
  /// It speaks of another certificate than the one that was asked about.
  case otherCertificate = "other-certificate"
  case undated
  case notYetValid = "not-yet-valid"
  case expired
}
