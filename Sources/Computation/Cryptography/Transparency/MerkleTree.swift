/// The Merkle tree of RFC 6962: hashes, roots, proofs and their verification.
///
/// A node is named by level and index: node (l, i) covers the leaves from i * 2^l up to, not including, (i + 1) * 2^l.
/// Only complete nodes have names; their hashes never change as the tree grows, so they can be stored once and for all.
public enum MerkleTree {
  /// The root of the tree without leaves: the hash of nothing.
  public static let emptyRoot = SHA256.digest([UInt8]())

  // A leaf and an inner node can't be taken for each other: their hashes begin differently.
  private static let leafPrefix: [UInt8] = [0x00]
  private static let nodePrefix: UInt8 = 0x01

  public static func leafHash(_ data: [UInt8]) -> Hash256 {
    SHA256.digest(leafPrefix + data)
  }

  public static func nodeHash(_ left: Hash256, _ right: Hash256) -> Hash256 {
    withUnsafeTemporaryAllocation(byteCount: 1 + 2 * Hash256.byteCount, alignment: 8) { buffer in
      buffer[0] = nodePrefix
      left.store(into: UnsafeMutableRawBufferPointer(rebasing: buffer[1..<33]))
      right.store(into: UnsafeMutableRawBufferPointer(rebasing: buffer[33..<65]))
      return SHA256.digest(of: UnsafeRawBufferPointer(buffer))
    }
  }

  public static func root(of leafHashes: [Hash256]) -> Hash256 {
    var frontier = MerkleFrontier()
    for hash in leafHashes { frontier.append(hash) }
    return frontier.root
  }

  /// The root over the first `size` leaves, from the hashes of complete nodes.
  public static func root<Failure: Error>(
    size: UInt64, hash: (_ level: Int, _ index: UInt64) throws(Failure) -> Hash256
  ) throws(Failure) -> Hash256 {
    if size == 0 { return emptyRoot }
    return try rangeRoot(0, size, hash)
  }

  /// The proof that leaf `index` is in the tree of `size` leaves; asks for the complete nodes it needs, each once.
  public static func inclusionProof<Failure: Error>(
    index: UInt64, size: UInt64, hash: (_ level: Int, _ index: UInt64) throws(Failure) -> Hash256
  ) throws(Failure) -> [Hash256] {
    precondition(index < size, "a proof for a leaf outside the tree")
    var proof: [Hash256] = []
    var (low, high) = (UInt64(0), size)
    // From the root down; the RFC lists the deepest sibling first.
    while high - low > 1 {
      let middle = low + splitPoint(high - low)
      if index < middle {
        proof.append(try rangeRoot(middle, high, hash))
        high = middle
      } else {
        proof.append(try rangeRoot(low, middle, hash))
        low = middle
      }
    }
    return proof.reversed()
  }

  /// The proof that the tree of `old` leaves is the beginning of the tree of `new` leaves.
  public static func consistencyProof<Failure: Error>(
    from old: UInt64, to new: UInt64, hash: (_ level: Int, _ index: UInt64) throws(Failure) -> Hash256
  ) throws(Failure) -> [Hash256] {
    precondition(old <= new, "a proof from a larger tree to a smaller one")
    // Nothing to prove: every tree begins with the empty one and with itself.
    if old == 0 || old == new { return [] }
    var proof: [Hash256] = []
    var (low, high) = (UInt64(0), new)
    while high != old {
      let middle = low + splitPoint(high - low)
      if old <= middle {
        proof.append(try rangeRoot(middle, high, hash))
        high = middle
      } else {
        proof.append(try rangeRoot(low, middle, hash))
        low = middle
      }
    }
    // The verifier knows the old root itself; only a smaller part of it must be told.
    if low > 0 { proof.append(try rangeRoot(low, high, hash)) }
    return proof.reversed()
  }

  /// The root of the leaves from `low` up to `high`, which begin where a node of at least their number begins.
  private static func rangeRoot<Failure: Error>(
    _ low: UInt64, _ high: UInt64, _ hash: (_ level: Int, _ index: UInt64) throws(Failure) -> Hash256
  ) throws(Failure) -> Hash256 {
    var parts: [Hash256] = []
    var start = low
    while start < high {
      let level = (high - start).leadingBit
      parts.append(try hash(level, start >> UInt64(level)))
      start += 1 << UInt64(level)
    }
    return folded(parts)
  }

  /// Joins complete nodes of falling size, smallest first.
  static func folded(_ parts: [Hash256]) -> Hash256 {
    guard var result = parts.last else { return emptyRoot }
    for left in parts.dropLast().reversed() { result = nodeHash(left, result) }
    return result
  }

  /// The greatest power of two below `count`, which is above one.
  private static func splitPoint(_ count: UInt64) -> UInt64 { 1 << UInt64((count - 1).leadingBit) }
}

extension UInt64 {
  /// The position of the highest bit set; of a number above zero.
  fileprivate var leadingBit: Int { 63 - leadingZeroBitCount }
}
