import CPurchasesCrypto

/// A private key that signs repeatably: the same key and message give the same bytes.
///
/// ECDSA takes its nonce from key and message (RFC 6979); RSA is PKCS#1 v1.5, which has none. Nothing here draws on
/// randomness: keys come from a seed or from their encoding.
public struct PrivateKey: Sendable {
  public enum Kind: String, Sendable, Hashable, CaseIterable { case p256, p384, rsa2048 }

  let handle: KeyHandle
  public let kind: KeyKind

  /// Derives a key. The same seed and label give the same key for ever; for tests and the local App Store, whose keys
  /// guard nothing, any seed will do; a key that guards something needs 32 bytes of real entropy.
  public init(_ kind: Kind, seed: [UInt8], label: String = "") {
    switch kind {
    case .p256: handle = Self.curveKey("P-256", byteCount: 32, seed: seed, label: label)
    case .p384: handle = Self.curveKey("P-384", byteCount: 48, seed: seed, label: label)
    case .rsa2048: handle = RSAKeyDerivation.key(seed: seed, label: label)
    }
    self.kind = handle.kind
  }

  /// PKCS#8, or the older encodings of a single EC or RSA key.
  public init(der: [UInt8]) throws(KeyError) {
    guard let handle = KeyHandle(privateDER: der) else { throw .malformed }
    self.handle = handle
    kind = handle.kind
  }

  /// One unencrypted PEM block.
  public init(pem: String) throws(KeyError) {
    guard let der = PEM.decode(pem, labels: ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"]) else {
      throw .malformed
    }
    try self.init(der: der)
  }

  /// PKCS#8.
  public var der: [UInt8] { handle.privateDER }

  /// PKCS#8 in PEM.
  public var pem: String { PEM.encode(der, label: "PRIVATE KEY") }

  /// DER SubjectPublicKeyInfo of the public half.
  public var spki: [UInt8] { handle.spki }

  /// A signature as X.509 and CMS hold it (ECDSA in DER, RSA PKCS#1 v1.5), over the SHA-256 of the message.
  public func sign(_ message: [UInt8]) -> [UInt8] { sign(message, "SHA256") }

  /// The same over another digest, as the older receipts have it.
  public func sign(_ message: [UInt8], digest: SignedData.Digest) -> [UInt8] {
    sign(message, digest == .sha1 ? "SHA1" : "SHA256")
  }

  private func sign(_ message: [UInt8], _ digest: String) -> [UInt8] {
    withSigningContext(digest: digest) { context in
      var length = 0
      precondition(
        EVP_DigestSign(context, nil, &length, message, message.count) == 1, "OpenSSL could not sign")
      return [UInt8](unsafeUninitializedCapacity: length) { buffer, initialised in
        precondition(
          EVP_DigestSign(context, buffer.baseAddress, &length, message, message.count) == 1,
          "OpenSSL could not sign")
        initialised = length
      }
    }
  }

  /// Lends a context ready for `EVP_DigestSign` or `X509_sign_ctx`.
  func withSigningContext<Result>(digest: String = "SHA256", _ body: (OpaquePointer) -> Result) -> Result {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    var keyContext: OpaquePointer?
    precondition(
      EVP_DigestSignInit_ex(context, &keyContext, digest, nil, nil, handle.pointer, nil) == 1,
      "OpenSSL could not start a signature")
    if kind == .p256 || kind == .p384 {
      // 1 is RFC 6979; 0 would be a random nonce.
      var nonceType: UInt32 = 1
      let done = OSSL_SIGNATURE_PARAM_NONCE_TYPE.withCString { name in
        withUnsafeMutablePointer(to: &nonceType) { value in
          var parameters = [OSSL_PARAM_construct_uint(name, value), OSSL_PARAM_construct_end()]
          return EVP_PKEY_CTX_set_params(keyContext, &parameters)
        }
      }
      precondition(done == 1, "this OpenSSL has no repeatable ECDSA")
    }
    return body(context)
  }

  /// A scalar from HKDF with sixteen bytes to spare, reduced to 1..<order: so close to uniform that no bias shows.
  private static func curveKey(_ curve: String, byteCount: Int, seed: [UInt8], label: String) -> KeyHandle {
    let material = HMACSHA256.derive(from: seed, info: "purchases key \(curve) \(label)", count: byteCount + 16)
    let group = EC_GROUP_new_by_curve_name(OBJ_txt2nid(curve == "P-256" ? "prime256v1" : "secp384r1"))
    guard let group, let context = BN_CTX_new(), let scalar = BN_new(), let bound = BN_new() else {
      preconditionFailure("out of memory")
    }
    defer {
      EC_GROUP_free(group)
      BN_CTX_free(context)
      BN_clear_free(scalar)
      BN_free(bound)
    }
    guard let wide = BN_bin2bn(material, Int32(material.count), nil), let point = EC_POINT_new(group) else {
      preconditionFailure("out of memory")
    }
    defer {
      BN_clear_free(wide)
      EC_POINT_free(point)
    }
    let done =
      BN_copy(bound, EC_GROUP_get0_order(group)) != nil && BN_sub_word(bound, 1) == 1
      && BN_div(nil, scalar, wide, bound, context) == 1 && BN_add_word(scalar, 1) == 1
      && EC_POINT_mul(group, point, scalar, nil, nil, context) == 1
    precondition(done, "OpenSSL could not derive a key")
    var encoded = [UInt8](repeating: 0, count: 1 + 2 * byteCount)
    precondition(
      EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &encoded, encoded.count, context)
        == encoded.count, "OpenSSL could not encode a point")
    let parameters = KeyParameters()
    parameters.add(OSSL_PKEY_PARAM_GROUP_NAME, text: curve)
    parameters.add(OSSL_PKEY_PARAM_PUB_KEY, bytes: encoded)
    parameters.add(OSSL_PKEY_PARAM_PRIV_KEY, number: scalar)
    return parameters.key(type: "EC")
  }
}

/// A private key on P-256 for JWS: raw signatures, and a public half of the matching type.
public struct P256PrivateKey: Sendable {
  /// The same key for certificates and CMS.
  public let key: PrivateKey
  public let publicKey: P256PublicKey

  /// See ``PrivateKey/init(_:seed:label:)``.
  public init(seed: [UInt8], label: String = "") {
    key = PrivateKey(.p256, seed: seed, label: label)
    publicKey = P256PublicKey(key.handle, spki: key.spki)
  }

  public init(der: [UInt8]) throws(KeyError) { try self.init(PrivateKey(der: der)) }

  /// Also the `.p8` files that App Store Connect hands out.
  public init(pem: String) throws(KeyError) { try self.init(PrivateKey(pem: pem)) }

  private init(_ key: PrivateKey) throws(KeyError) {
    guard key.kind == .p256 else { throw .wrongKind(expected: "P-256") }
    self.key = key
    publicKey = P256PublicKey(key.handle, spki: key.spki)
  }

  /// PKCS#8.
  public var der: [UInt8] { key.der }

  /// r and s, 32 bytes each, over the SHA-256 of the message; the same for the same key and message.
  public func sign(_ message: [UInt8]) -> [UInt8] {
    guard let raw = ECDSASignature.raw(der: key.sign(message)) else {
      preconditionFailure("OpenSSL made a signature of an unknown form")
    }
    return raw
  }
}
