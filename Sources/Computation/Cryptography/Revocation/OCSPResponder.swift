import CPurchasesCrypto

/// Answers as a certificate authority's responder does: for the local App Store and for tests. The same question and times
/// give the same bytes.
public struct OCSPResponder: Sendable {
  public let issuer: Certificate
  private let key: PrivateKey

  public init(issuer: Certificate, key: PrivateKey) {
    self.issuer = issuer
    self.key = key
  }

  /// The hexadecimal serial numbers that a request asks about; nil where it is none.
  public static func serials(in request: [UInt8]) -> [String]? {
    guard let request = readingDER(request, free: { OCSP_REQUEST_free($0) }, { d2i_OCSP_REQUEST(nil, $0, $1) }) else {
      return nil
    }
    defer { OCSP_REQUEST_free(request) }
    return (0..<max(0, OCSP_request_onereq_count(request))).compactMap { index in
      var serial: UnsafeMutablePointer<ASN1_INTEGER>?
      guard let one = OCSP_request_onereq_get0(request, index), let id = OCSP_onereq_get0_id(one),
        OCSP_id_get0_info(nil, nil, nil, &serial, id) == 1
      else { return nil }
      return Certificate.digits(of: serial)
    }
  }

  /// - Parameters: times in milliseconds since 1970, whole seconds of which count.
  public func answer(
    about certificate: Certificate, _ status: RevocationAnswer.Status, thisUpdate: Int64, nextUpdate: Int64
  ) -> [UInt8] {
    guard let basic = OCSP_BASICRESP_new(), let id = OCSP.identity(of: certificate, issuer) else {
      preconditionFailure("out of memory")
    }
    defer {
      OCSP_BASICRESP_free(basic)
      OCSP_CERTID_free(id)
    }
    let code: Int32
    var revokedAt: UnsafeMutablePointer<ASN1_TIME>?
    switch status {
    case .good: code = V_OCSP_CERTSTATUS_GOOD
    case .unknown: code = V_OCSP_CERTSTATUS_UNKNOWN
    case .revoked(let since):
      code = V_OCSP_CERTSTATUS_REVOKED
      revokedAt = ASN1_GENERALIZEDTIME_set(nil, Int(since / 1000))
    }
    let from = ASN1_GENERALIZEDTIME_set(nil, Int(thisUpdate / 1000))
    let until = ASN1_GENERALIZEDTIME_set(nil, Int(nextUpdate / 1000))
    defer {
      ASN1_GENERALIZEDTIME_free(revokedAt)
      ASN1_GENERALIZEDTIME_free(from)
      ASN1_GENERALIZEDTIME_free(until)
    }
    precondition(
      OCSP_basic_add1_status(basic, id, code, -1, revokedAt, from, until) != nil, "OpenSSL could not add a status")
    // Of the time that it is from, and not the clock's.
    precondition(purchases_ocsp_set_time(basic, thisUpdate / 1000) == 1, "out of memory")
    key.withSigningContext { context in
      precondition(
        OCSP_basic_sign_ctx(basic, issuer.handle.pointer, context, nil, UInt(OCSP_NOTIME)) == 1,
        "OpenSSL could not sign an answer")
    }
    return Self.response(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
  }

  /// An answer that says nothing but that there is none now.
  public static let tryLater = response(OCSP_RESPONSE_STATUS_TRYLATER, nil)

  private static func response(_ status: Int32, _ basic: OpaquePointer?) -> [UInt8] {
    guard let response = OCSP_response_create(status, basic) else { preconditionFailure("out of memory") }
    defer { OCSP_RESPONSE_free(response) }
    return encodedDER { i2d_OCSP_RESPONSE(response, $0) }
  }
}
