import CPurchasesCrypto

/// HMAC with SHA-256 (RFC 2104) and the key derivation built on it (RFC 5869).
public enum HMACSHA256 {
  private static let blockSize = 64

  public static func authenticate(_ message: [UInt8], key: [UInt8]) -> Hash256 {
    var block = key.count > blockSize ? SHA256.digest(key).bytes : key
    block += [UInt8](repeating: 0, count: blockSize - block.count)
    let hasher = SHA256.Hasher()
    hasher.update(block.map { $0 ^ 0x36 })
    hasher.update(message)
    let inner = hasher.finish()
    hasher.update(block.map { $0 ^ 0x5C })
    hasher.update(inner)
    return hasher.finish()
  }

  /// Key material of any length up to 8,160 bytes from a secret; the same inputs give the same bytes.
  public static func derive(from secret: [UInt8], salt: [UInt8] = [], info: String, count: Int) -> [UInt8] {
    precondition(count >= 0 && count <= 255 * Hash256.byteCount, "RFC 5869 allows 255 blocks")
    let key = authenticate(secret, key: salt).bytes
    var output: [UInt8] = []
    var last: [UInt8] = []
    var counter: UInt8 = 1
    while output.count < count {
      last = authenticate(last + Array(info.utf8) + [counter], key: key).bytes
      output += last
      counter &+= 1
    }
    return Array(output.prefix(count))
  }
}

/// Comparing secrets without telling, by the time it takes, where they differ.
public enum ConstantTime {
  /// The lengths are not secret; unequal ones answer at once.
  public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && (left.isEmpty || CRYPTO_memcmp(left, right, left.count) == 0)
  }
}
