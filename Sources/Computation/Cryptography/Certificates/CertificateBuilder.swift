import CPurchasesCrypto

/// Builds certificates for the local App Store and for tests. The same fields and keys give the same bytes.
public struct CertificateBuilder: Sendable {
  /// Attribute short names with their values, in order, such as `("CN", "Test Root")`.
  public var subject: [(attribute: String, value: String)]
  /// Unsigned, most significant byte first.
  public var serial: [UInt8]
  /// Milliseconds since 1970; certificates hold whole seconds, so both are rounded down.
  public var notBefore: Int64
  public var notAfter: Int64
  /// Nil leaves the basic constraints out.
  public var isCA: Bool?
  /// Nil leaves the key usage out.
  public var keyUsage: Certificate.KeyUsage?
  /// Extensions whose value is an ASN.1 NULL, which is how Apple marks its certificates.
  public var markers: [String]
  /// Marks that say they must be understood.
  public var criticalMarkers: [String] = []
  /// Where one may ask whether the certificate has been revoked.
  public var responder: String?
  /// Names and IPv4 addresses of a TLS server, as the subject's alternative names.
  public var hosts: [Host] = []
  /// Whether to write subject and authority key identifiers: strict verifiers ask for them, Apple's test chain has none.
  public var hasKeyIdentifiers = true

  public enum Host: Sendable, Hashable {
    case name(String)
    case address(UInt8, UInt8, UInt8, UInt8)

    /// A GeneralName: [2] IA5String, or [7] OCTET STRING.
    var der: [UInt8] {
      switch self {
      case .name(let name): BERValue.encode(0x82, Array(name.utf8)[...])
      case .address(let a, let b, let c, let d): BERValue.encode(0x87, [a, b, c, d])
      }
    }
  }

  public init(
    subject: [(attribute: String, value: String)], serial: [UInt8] = [1], notBefore: Int64, notAfter: Int64,
    isCA: Bool? = false, keyUsage: Certificate.KeyUsage? = nil, markers: [String] = []
  ) {
    self.subject = subject
    self.serial = serial
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.isCA = isCA
    self.keyUsage = keyUsage
    self.markers = markers
  }

  /// A root that signs itself.
  public func selfSigned(key: PrivateKey) -> Certificate {
    build(publicKey: key.handle, issuerName: nil, issuerKey: key)
  }

  /// A certificate for `publicKey` under an issuer. The issuer's key need not match its certificate, so that tests can
  /// forge.
  public func signed(publicKey: PrivateKey, issuer: Certificate, issuerKey: PrivateKey) -> Certificate {
    build(publicKey: publicKey.handle, issuerName: issuer, issuerKey: issuerKey)
  }

  private func build(publicKey: KeyHandle, issuerName: Certificate?, issuerKey: PrivateKey) -> Certificate {
    guard let certificate = X509_new(), let name = makeName() else { preconditionFailure("out of memory") }
    let handle = CertificateHandle(certificate)
    defer { X509_NAME_free(name) }
    let issuer = issuerName.map { X509_get_subject_name($0.handle.pointer) } ?? name
    require(X509_set_version(certificate, Int(X509_VERSION_3)) == 1)
    require(X509_set_subject_name(certificate, name) == 1)
    require(X509_set_issuer_name(certificate, issuer) == 1)
    require(X509_set_pubkey(certificate, publicKey.pointer) == 1)
    setSerial(certificate)
    require(setTime(notBefore) { X509_set1_notBefore(certificate, $0) })
    require(setTime(notAfter) { X509_set1_notAfter(certificate, $0) })
    addExtensions(to: certificate, issuer: issuerName)
    issuerKey.withSigningContext { context in
      require(X509_sign_ctx(certificate, context) > 0)
    }
    do {
      return try Certificate(der: encodedDER { i2d_X509(handle.pointer, $0) })
    } catch {
      preconditionFailure("a certificate built here can't be read: \(error.rawValue)")
    }
  }

  private func makeName() -> OpaquePointer? {
    let name = X509_NAME_new()
    for (attribute, value) in subject {
      let bytes = Array(value.utf8)
      require(
        X509_NAME_add_entry_by_txt(name, attribute, Int32(V_ASN1_UTF8STRING), bytes, Int32(bytes.count), -1, 0) == 1)
    }
    return name
  }

  private func setSerial(_ certificate: OpaquePointer) {
    guard let number = BN_bin2bn(serial, Int32(serial.count), nil) else { preconditionFailure("out of memory") }
    defer { BN_free(number) }
    require(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil)
  }

  private func setTime(_ milliseconds: Int64, _ set: (UnsafePointer<ASN1_TIME>) -> Int32) -> Bool {
    guard let time = ASN1_TIME_set(nil, Int(milliseconds.flooredToSeconds)) else { return false }
    defer { ASN1_TIME_free(time) }
    return set(time) == 1
  }

  private func addExtensions(to certificate: OpaquePointer, issuer: Certificate?) {
    if hasKeyIdentifiers {
      let own = Self.keyIdentifier(of: certificate)
      let identifier = issuer.map { Self.keyIdentifier(of: $0.handle.pointer) } ?? own
      add("2.5.29.14", critical: false, value: [0x04, UInt8(own.count)] + own, to: certificate)
      // SEQUENCE { [0] the issuer's identifier }
      let length = UInt8(identifier.count)
      add("2.5.29.35", critical: false, value: [0x30, length + 2, 0x80, length] + identifier, to: certificate)
    }
    if let isCA {
      // SEQUENCE { BOOLEAN TRUE } or the empty sequence: DER leaves the default out.
      add("2.5.29.19", critical: true, value: isCA ? [0x30, 0x03, 0x01, 0x01, 0xFF] : [0x30, 0x00], to: certificate)
    }
    if let keyUsage {
      // Only the first eight usages can be set here; bit 0 of the BIT STRING is the topmost.
      let bits = UInt8(truncatingIfNeeded: keyUsage.rawValue)
      add(
        "2.5.29.15", critical: true, value: [0x03, 0x02, UInt8(bits.trailingZeroBitCount & 7), bits], to: certificate)
    }
    if let responder { add("1.3.6.1.5.5.7.1.1", critical: false, value: Self.access(responder), to: certificate) }
    if !hosts.isEmpty {
      let names = hosts.flatMap(\.der)
      add("2.5.29.17", critical: false, value: BERValue.encode(BERValue.Tag.sequence, names[...]), to: certificate)
    }
    for oid in markers { add(oid, critical: false, value: [0x05, 0x00], to: certificate) }
    for oid in criticalMarkers { add(oid, critical: true, value: [0x05, 0x00], to: certificate) }
  }

  /// Authority information access: one OCSP responder.
  private static func access(_ responder: String) -> [UInt8] {
    let ocsp: [UInt8] = [0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01]
    // [6], a URI, primitive.
    let description = ocsp + BERValue.encode(0x86, Array(responder.utf8)[...])
    let one = BERValue.encode(BERValue.Tag.sequence, description[...])
    return BERValue.encode(BERValue.Tag.sequence, one[...])
  }

  /// The first 160 bits of the SHA-256 of the public key's bits (RFC 7093).
  private static func keyIdentifier(of certificate: OpaquePointer) -> [UInt8] {
    guard let bits = X509_get0_pubkey_bitstr(certificate) else { preconditionFailure("a certificate without a key") }
    let buffer = UnsafeRawBufferPointer(start: ASN1_STRING_get0_data(bits), count: Int(ASN1_STRING_length(bits)))
    return Array(SHA256.digest(of: buffer).bytes.prefix(20))
  }

  private func add(_ oid: String, critical: Bool, value: [UInt8], to certificate: OpaquePointer) {
    guard let object = OBJ_txt2obj(oid, 1), let data = ASN1_OCTET_STRING_new() else {
      preconditionFailure("not an object identifier: \(oid)")
    }
    defer {
      ASN1_OBJECT_free(object)
      ASN1_OCTET_STRING_free(data)
    }
    require(ASN1_OCTET_STRING_set(data, value, Int32(value.count)) == 1)
    guard let made = X509_EXTENSION_create_by_OBJ(nil, object, critical ? 1 : 0, data) else {
      preconditionFailure("out of memory")
    }
    defer { X509_EXTENSION_free(made) }
    require(X509_add_ext(certificate, made, -1) == 1)
  }

  /// The fields come from our own code: a refusal is misuse, or memory ran out.
  private func require(_ done: Bool) {
    precondition(done, "OpenSSL refused a field of a certificate to build")
  }
}

extension Int64 {
  fileprivate var flooredToSeconds: Int64 { self >= 0 ? self / 1000 : (self - 999) / 1000 }
}
