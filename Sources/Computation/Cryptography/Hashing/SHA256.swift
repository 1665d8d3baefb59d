import CPurchasesCrypto

/// SHA-256 by OpenSSL. The algorithm is fetched once a process: fetching per call costs more than hashing a short input.
public enum SHA256 {
  public static func digest(_ bytes: [UInt8]) -> Hash256 {
    bytes.withUnsafeBytes { digest(of: $0) }
  }

  public static func digest(_ bytes: ArraySlice<UInt8>) -> Hash256 {
    bytes.withUnsafeBytes { digest(of: $0) }
  }

  public static func digest(_ text: String) -> Hash256 {
    var text = text
    return text.withUTF8 { digest(of: UnsafeRawBufferPointer($0)) }
  }

  static func digest(of buffer: UnsafeRawBufferPointer) -> Hash256 {
    withUnsafeTemporaryAllocation(byteCount: Hash256.byteCount, alignment: 8) { output in
      let done = EVP_Digest(
        buffer.baseAddress, buffer.count, output.baseAddress, nil, DigestAlgorithm.sha256.pointer, nil)
      precondition(done == 1, "OpenSSL could not hash")
      return Hash256(loading: UnsafeRawBufferPointer(output))
    }
  }

  /// Hashes what comes in pieces. Not `Sendable`: one owner feeds it.
  public final class Hasher {
    private let context: OpaquePointer

    public init() {
      guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
      self.context = context
      restart()
    }

    /// Goes on from where the other one is.
    init(copying other: Hasher) {
      guard let context = EVP_MD_CTX_dup(other.context) else { preconditionFailure("out of memory") }
      self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: [UInt8]) {
      bytes.withUnsafeBytes { update(with: $0) }
    }

    public func update(_ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { update(with: $0) }
    }

    public func update(_ text: String) {
      var text = text
      text.withUTF8 { update(with: UnsafeRawBufferPointer($0)) }
    }

    /// Four bytes, most significant first: the length prefix that keeps neighbouring fields apart.
    public func update(bigEndian value: UInt32) {
      withUnsafeBytes(of: value.bigEndian) { update(with: $0) }
    }

    /// Eight bytes, most significant first.
    public func update(bigEndian value: UInt64) {
      withUnsafeBytes(of: value.bigEndian) { update(with: $0) }
    }

    public func update(_ hash: Hash256) {
      withUnsafeTemporaryAllocation(byteCount: Hash256.byteCount, alignment: 8) { buffer in
        hash.store(into: buffer)
        update(with: UnsafeRawBufferPointer(buffer))
      }
    }

    func update(with buffer: UnsafeRawBufferPointer) {
      precondition(EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1, "OpenSSL could not hash")
    }

    /// The hash of everything since the start or the last call; the hasher is fresh again afterwards.
    public func finish() -> Hash256 {
      let hash = end()
      restart()
      return hash
    }

    /// The same for a hasher that is of no use any more.
    func end() -> Hash256 {
      withUnsafeTemporaryAllocation(byteCount: Hash256.byteCount, alignment: 8) { output in
        precondition(
          EVP_DigestFinal_ex(context, output.assumingMemoryBound(to: UInt8.self).baseAddress, nil) == 1,
          "OpenSSL could not hash")
        return Hash256(loading: UnsafeRawBufferPointer(output))
      }
    }

    private func restart() {
      precondition(
        EVP_DigestInit_ex2(context, DigestAlgorithm.sha256.pointer, nil) == 1, "OpenSSL could not start a hash")
    }
  }
}

/// A digest algorithm fetched from OpenSSL's provider, kept for the life of the process.
///
/// `@unchecked Sendable`: a fetched algorithm is immutable and OpenSSL shares it between threads.
final class DigestAlgorithm: @unchecked Sendable {
  static let sha256 = DigestAlgorithm("SHA256")
  static let sha384 = DigestAlgorithm("SHA384")

  let pointer: OpaquePointer

  private init(_ name: String) {
    guard let pointer = EVP_MD_fetch(nil, name, nil) else { preconditionFailure("OpenSSL offers no \(name)") }
    self.pointer = pointer
  }

  deinit { EVP_MD_free(pointer) }
}
