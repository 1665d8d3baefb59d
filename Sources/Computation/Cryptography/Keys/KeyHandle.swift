import CPurchasesCrypto
import Synchronization

/// Owns one OpenSSL key.
///
/// `@unchecked Sendable`: the key is never changed after it was made, and OpenSSL allows an unchanging key to be used
/// from several threads. What is not shareable, the contexts of running operations, is lent out under a lock, one user
/// at a time.
final class KeyHandle: @unchecked Sendable {
  /// Contexts kept for reuse. More threads than this may verify at once; their contexts are then freed after use.
  private static let maximumIdleContexts = 64

  private struct Context: @unchecked Sendable { let pointer: OpaquePointer }

  let pointer: OpaquePointer
  private let idle = Mutex<[Context]>([])

  /// Takes over the caller's reference.
  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit {
    idle.withLock { contexts in
      for context in contexts { EVP_PKEY_CTX_free(context.pointer) }
    }
    EVP_PKEY_free(pointer)
  }

  /// Reads a SubjectPublicKeyInfo; nil for anything but exactly one.
  convenience init?(spki: [UInt8]) {
    let found = readingDER(spki, free: { EVP_PKEY_free($0) }, { d2i_PUBKEY(nil, $0, $1) })
    guard let found else { return nil }
    self.init(found)
  }

  /// Reads a private key in PKCS#8 or in the older form of its own type; nil for anything but exactly one.
  convenience init?(privateDER der: [UInt8]) {
    let found = readingDER(der, free: { EVP_PKEY_free($0) }, { d2i_AutoPrivateKey(nil, $0, $1) })
    guard let found else { return nil }
    self.init(found)
  }

  var spki: [UInt8] { encodedDER { i2d_PUBKEY(pointer, $0) } }

  /// PKCS#8.
  var privateDER: [UInt8] {
    guard let information = EVP_PKEY2PKCS8(pointer) else { preconditionFailure("OpenSSL could not export a key") }
    defer { PKCS8_PRIV_KEY_INFO_free(information) }
    return encodedDER { i2d_PKCS8_PRIV_KEY_INFO(information, $0) }
  }

  var kind: KeyKind {
    if EVP_PKEY_is_a(pointer, "RSA") == 1 { return .rsa(bits: Int(EVP_PKEY_get_bits(pointer))) }
    if EVP_PKEY_is_a(pointer, "ED25519") == 1 { return .ed25519 }
    if EVP_PKEY_is_a(pointer, "EC") == 1 {
      var name = [CChar](repeating: 0, count: 80)
      var length = 0
      guard EVP_PKEY_get_group_name(pointer, &name, name.count, &length) == 1 else {
        clearOpenSSLErrors()
        return .other
      }
      switch String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) {
      case "prime256v1", "P-256": return .p256
      case "secp384r1", "P-384": return .p384
      default: return .other
      }
    }
    return .other
  }

  /// Whether the DER signature is this key's over the digest. A context is set up once and used again: setting one up
  /// takes a measurable part of an ECDSA verification.
  func verify(derSignature: UnsafeRawBufferPointer, digest: UnsafeRawBufferPointer) -> Bool {
    let context = idle.withLock { $0.popLast() } ?? makeVerifyingContext()
    guard let context else { return false }
    let answer = EVP_PKEY_verify(
      context.pointer, derSignature.assumingMemoryBound(to: UInt8.self).baseAddress, derSignature.count,
      digest.assumingMemoryBound(to: UInt8.self).baseAddress, digest.count)
    if answer != 1 { clearOpenSSLErrors() }
    let kept = idle.withLock { contexts in
      guard contexts.count < Self.maximumIdleContexts else { return false }
      contexts.append(context)
      return true
    }
    if !kept { EVP_PKEY_CTX_free(context.pointer) }
    return answer == 1
  }

  /// Whether the PKCS#1 v1.5 signature is this key's over the message; false for a key that is not RSA.
  func verifyRSA(signature: [UInt8], message: [UInt8], digest: SignedData.Digest) -> Bool {
    guard case .rsa = kind, let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    let algorithm = digest == .sha1 ? EVP_sha1() : EVP_sha256()
    let valid =
      EVP_DigestVerifyInit(context, nil, algorithm, nil, pointer) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    if !valid { clearOpenSSLErrors() }
    return valid
  }

  private func makeVerifyingContext() -> Context? {
    guard let made = EVP_PKEY_CTX_new(pointer, nil) else { return nil }
    guard EVP_PKEY_verify_init(made) == 1 else {
      EVP_PKEY_CTX_free(made)
      clearOpenSSLErrors()
      return nil
    }
    return Context(pointer: made)
  }
}

/// What sort of public key a certificate holds.
public enum KeyKind: Sendable, Hashable, CustomStringConvertible {
  case p256
  case p384
  case rsa(bits: Int)
  case ed25519
  case other

  public var description: String {
    switch self {
    case .p256: "P-256"
    case .p384: "P-384"
    case .rsa(let bits): "RSA \(bits)"
    case .ed25519: "Ed25519"
    case .other: "other"
    }
  }
}

/// Why a key could not be read. Never holds key material.
public enum KeyError: Error, Sendable, Hashable, CustomStringConvertible {
  case malformed
  case wrongKind(expected: String)

  public var description: String {
    switch self {
    case .malformed: "not a key in the expected encoding"
    case .wrongKind(let expected): "not a \(expected) key"
    }
  }
}
