/// All that must be kept of a tree in order to append to it: the complete nodes along its right edge, one for each bit
/// of the size. A few hundred bytes for any tree.
public struct MerkleFrontier: Sendable, Hashable {
  /// How many leaves the tree has.
  public private(set) var size: UInt64 = 0
  /// Largest first.
  public private(set) var nodes: [Hash256] = []

  public init() {}

  /// Nil unless there is one node for each bit set in the size.
  public init?(size: UInt64, nodes: [Hash256]) {
    guard nodes.count == size.nonzeroBitCount else { return nil }
    self.size = size
    self.nodes = nodes
  }

  public var root: Hash256 { MerkleTree.folded(nodes) }

  public mutating func append(_ leafHash: Hash256) {
    append(leafHash) { _, _, _ in }
  }

  /// Appends a leaf and reports each node it completes, the leaf itself (level 0) first: what a store of nodes for
  /// proofs has to keep.
  public mutating func append(
    _ leafHash: Hash256, completing report: (_ level: Int, _ index: UInt64, _ hash: Hash256) -> Void
  ) {
    var hash = leafHash
    var level = 0
    report(level, size, hash)
    // A carry in binary addition: each trailing one bit of the size is a node that now has its right sibling.
    while size >> UInt64(level) & 1 == 1 {
      hash = MerkleTree.nodeHash(nodes.removeLast(), hash)
      level += 1
      report(level, size >> UInt64(level), hash)
    }
    nodes.append(hash)
    size += 1
  }

  /// Eight bytes of size, most significant first, then the nodes.
  public var bytes: [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: size >> UInt64(56 - 8 * $0)) } + nodes.flatMap(\.bytes)
  }

  /// Nil unless the bytes are what ``bytes`` gives.
  public init?(bytes: [UInt8]) {
    guard bytes.count >= 8, (bytes.count - 8) % Hash256.byteCount == 0 else { return nil }
    let size = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let nodes = stride(from: 8, to: bytes.count, by: Hash256.byteCount).compactMap {
      Hash256(bytes: Array(bytes[$0..<($0 + Hash256.byteCount)]))
    }
    self.init(size: size, nodes: nodes)
  }
}
