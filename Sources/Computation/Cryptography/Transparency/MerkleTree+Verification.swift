extension MerkleTree {
  /// Whether the proof shows that `leaf` (a leaf hash) is leaf `index` of the tree with that size and root.
  public static func verifyInclusion(
    leaf: Hash256, index: UInt64, size: UInt64, proof: [Hash256], root: Hash256
  ) -> Bool {
    guard index < size else { return false }
    var position = index
    // The last leaf of the level; where it has no right sibling it moves up alone.
    var last = size - 1
    var hash = leaf
    for sibling in proof {
      guard last > 0 else { return false }
      if position & 1 == 1 || position == last {
        hash = nodeHash(sibling, hash)
        while position & 1 == 0, position != 0 {
          position >>= 1
          last >>= 1
        }
      } else {
        hash = nodeHash(hash, sibling)
      }
      position >>= 1
      last >>= 1
    }
    return last == 0 && hash == root
  }

  /// Whether the proof shows that the tree of `oldRoot` is the beginning of the tree of `newRoot`.
  public static func verifyConsistency(
    from old: UInt64, to new: UInt64, oldRoot: Hash256, newRoot: Hash256, proof: [Hash256]
  ) -> Bool {
    guard old <= new else { return false }
    if old == new { return proof.isEmpty && oldRoot == newRoot }
    if old == 0 { return proof.isEmpty && oldRoot == emptyRoot }
    var rest = proof[...]
    var position = old - 1
    var last = new - 1
    while position & 1 == 1 {
      position >>= 1
      last >>= 1
    }
    // Where the old tree is one complete node, its root is where the proof starts, and is left out of it.
    guard let start = position == 0 ? oldRoot : rest.popFirst() else { return false }
    var oldHash = start
    var newHash = start
    for sibling in rest {
      guard last > 0 else { return false }
      if position & 1 == 1 || position == last {
        oldHash = nodeHash(sibling, oldHash)
        newHash = nodeHash(sibling, newHash)
        while position & 1 == 0, position != 0 {
          position >>= 1
          last >>= 1
        }
      } else {
        newHash = nodeHash(newHash, sibling)
      }
      position >>= 1
      last >>= 1
    }
    return last == 0 && oldHash == oldRoot && newHash == newRoot
  }
}
