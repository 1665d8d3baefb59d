extension SHA256 {
  /// What many inputs begin with, hashed once: of two thousand proofs under one chain, two thirds of the bytes are the same
  /// header.
  ///
  /// `@unchecked Sendable`: the hasher is never fed again after `init`; OpenSSL only reads it when it is copied.
  public final class Beginning: @unchecked Sendable {
    private let hasher = Hasher()

    public init(_ bytes: ArraySlice<UInt8>) { hasher.update(bytes) }

    /// The hash of the beginning with `middle`, and that of both with `end`.
    public func digests(_ middle: ArraySlice<UInt8>, _ end: ArraySlice<UInt8>) -> (middle: Hash256, end: Hash256) {
      let first = Hasher(copying: hasher)
      first.update(middle)
      let second = Hasher(copying: first)
      second.update(end)
      return (first.end(), second.end())
    }
  }
}
