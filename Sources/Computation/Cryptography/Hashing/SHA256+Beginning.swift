import CPurchasesCrypto

extension SHA256 {
  /// What many inputs begin with, hashed once: of two thousand proofs under one chain, two thirds of the bytes are the same
  /// header.
  ///
  /// `@unchecked Sendable`: the context is never fed again after `init`; OpenSSL only reads it when it is copied.
  public final class Beginning: @unchecked Sendable {
    private let context: OpaquePointer

    public init(_ bytes: ArraySlice<UInt8>) {
      guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
      self.context = context
      precondition(
        EVP_DigestInit_ex2(context, DigestAlgorithm.sha256.pointer, nil) == 1, "OpenSSL could not start a hash")
      Self.feed(context, bytes)
    }

    deinit { EVP_MD_CTX_free(context) }

    /// The hash of the beginning with `middle`, and that of both with `end`.
    public func digests(_ middle: ArraySlice<UInt8>, _ end: ArraySlice<UInt8>) -> (middle: Hash256, end: Hash256) {
      guard let first = EVP_MD_CTX_dup(context) else { preconditionFailure("out of memory") }
      defer { EVP_MD_CTX_free(first) }
      Self.feed(first, middle)
      guard let second = EVP_MD_CTX_dup(first) else { preconditionFailure("out of memory") }
      defer { EVP_MD_CTX_free(second) }
      Self.feed(second, end)
      return (Self.finish(first), Self.finish(second))
    }

    private static func feed(_ context: OpaquePointer, _ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { buffer in
        precondition(EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1, "OpenSSL could not hash")
      }
    }

    private static func finish(_ context: OpaquePointer) -> Hash256 {
      withUnsafeTemporaryAllocation(byteCount: Hash256.byteCount, alignment: 8) { output in
        precondition(
          EVP_DigestFinal_ex(context, output.assumingMemoryBound(to: UInt8.self).baseAddress, nil) == 1,
          "OpenSSL could not hash")
        return Hash256(loading: UnsafeRawBufferPointer(output))
      }
    }
  }
}
