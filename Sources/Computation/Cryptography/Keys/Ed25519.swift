import CPurchasesCrypto

/// An Ed25519 public key (RFC 8032).
public struct Ed25519PublicKey: Sendable, Hashable {
  public static let byteCount = 32
  public static let signatureByteCount = 64

  public let bytes: [UInt8]

  /// Nil unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  public func verify(signature: [UInt8], message: [UInt8]) -> Bool {
    guard signature.count == Self.signatureByteCount,
      let key = EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, bytes, bytes.count)
    else { return false }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    let valid =
      EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, key, nil) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    if !valid { clearOpenSSLErrors() }
    return valid
  }
}

/// An Ed25519 private key, which is its seed. Ed25519 signatures are repeatable by definition.
public struct Ed25519PrivateKey: Sendable {
  public static let seedByteCount = 32

  public let seed: [UInt8]
  public let publicKey: Ed25519PublicKey
  private let handle: KeyHandle

  /// Nil unless there are exactly 32 bytes.
  public init?(seed: [UInt8]) {
    guard seed.count == Self.seedByteCount else { return nil }
    guard let key = EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, seed, seed.count) else {
      preconditionFailure("OpenSSL offers no Ed25519")
    }
    let handle = KeyHandle(key)
    var bytes = [UInt8](repeating: 0, count: Ed25519PublicKey.byteCount)
    var length = bytes.count
    guard EVP_PKEY_get_raw_public_key(handle.pointer, &bytes, &length) == 1,
      let publicKey = Ed25519PublicKey(bytes: bytes)
    else { preconditionFailure("OpenSSL gave no public key") }
    self.seed = seed
    self.publicKey = publicKey
    self.handle = handle
  }

  /// 64 bytes.
  public func sign(_ message: [UInt8]) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    return [UInt8](unsafeUninitializedCapacity: Ed25519PublicKey.signatureByteCount) { buffer, initialised in
      var length = Ed25519PublicKey.signatureByteCount
      precondition(
        EVP_DigestSignInit_ex(context, nil, nil, nil, nil, handle.pointer, nil) == 1
          && EVP_DigestSign(context, buffer.baseAddress, &length, message, message.count) == 1,
        "OpenSSL could not sign")
      initialised = length
    }
  }
}
