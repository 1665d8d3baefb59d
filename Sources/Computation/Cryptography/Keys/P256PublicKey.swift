import CPurchasesCrypto

/// A public key on P-256, ready to verify: contexts are kept and used again, so keep the key, not its bytes.
public struct P256PublicKey: Sendable, Hashable {
  let handle: KeyHandle
  /// DER SubjectPublicKeyInfo.
  public let spki: [UInt8]

  public init(spki der: [UInt8]) throws(KeyError) {
    guard let handle = KeyHandle(spki: der) else { throw .malformed }
    guard handle.kind == .p256 else { throw .wrongKind(expected: "P-256") }
    self.init(handle, spki: der)
  }

  init(_ handle: KeyHandle, spki: [UInt8]) {
    self.handle = handle
    self.spki = spki
  }

  /// Whether `signature` (r and s, 32 bytes each, as in a JWS) is this key's over the SHA-256 of `message`.
  public func verify(signature: [UInt8], message: [UInt8]) -> Bool {
    verify(signature: signature, digest: SHA256.digest(message))
  }

  public func verify(signature: [UInt8], message: ArraySlice<UInt8>) -> Bool {
    verify(signature: signature, digest: SHA256.digest(message))
  }

  public func verify(signature: [UInt8], digest: Hash256) -> Bool {
    guard signature.count == ECDSASignature.p256ByteCount else { return false }
    return withUnsafeTemporaryAllocation(byteCount: Hash256.byteCount, alignment: 8) { buffer in
      digest.store(into: buffer)
      return signature.withUnsafeBytes { raw in
        ECDSASignature.withDER(raw: raw) {
          handle.verify(derSignature: $0, digest: UnsafeRawBufferPointer(buffer))
        }
      }
    }
  }

  public static func == (left: Self, right: Self) -> Bool { left.spki == right.spki }

  public func hash(into hasher: inout Hasher) { hasher.combine(spki) }
}
