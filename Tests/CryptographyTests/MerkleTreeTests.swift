import PurchasesCryptography
import Testing

/// The recursive definitions of RFC 6962, section 2.1, as plainly as they can be written.
private enum Definition {
  static func split(_ count: Int) -> Int {
    var k = 1
    while k * 2 < count { k *= 2 }
    return k
  }

  static func root(_ leaves: ArraySlice<Hash256>) -> Hash256 {
    if leaves.isEmpty { return SHA256.digest([UInt8]()) }
    if leaves.count == 1 { return leaves[leaves.startIndex] }
    let middle = leaves.startIndex + split(leaves.count)
    return SHA256.digest([0x01] + root(leaves[..<middle]).bytes + root(leaves[middle...]).bytes)
  }

  static func path(_ index: Int, _ leaves: ArraySlice<Hash256>) -> [Hash256] {
    if leaves.count == 1 { return [] }
    let k = split(leaves.count)
    let middle = leaves.startIndex + k
    return index < k
      ? path(index, leaves[..<middle]) + [root(leaves[middle...])]
      : path(index - k, leaves[middle...]) + [root(leaves[..<middle])]
  }

  static func subproof(_ m: Int, _ leaves: ArraySlice<Hash256>, _ whole: Bool) -> [Hash256] {
    if m == leaves.count { return whole ? [] : [root(leaves)] }
    let k = split(leaves.count)
    let middle = leaves.startIndex + k
    return m <= k
      ? subproof(m, leaves[..<middle], whole) + [root(leaves[middle...])]
      : subproof(m - k, leaves[middle...], false) + [root(leaves[..<middle])]
  }
}

@Suite struct MerkleTreeTests {
  private static let largest = 130
  private let leaves: [Hash256] = (0..<largest).map { MerkleTree.leafHash(Array("leaf \($0)".utf8)) }
  private var nodes: [Node: Hash256] = [:]

  private struct Node: Hashable {
    let level: Int
    let index: UInt64
  }

  private struct Missing: Error {}

  init() {
    var frontier = MerkleFrontier()
    var nodes: [Node: Hash256] = [:]
    for leaf in leaves {
      frontier.append(leaf) { level, index, hash in nodes[Node(level: level, index: index)] = hash }
    }
    self.nodes = nodes
  }

  private func hash(_ level: Int, _ index: UInt64) throws(Missing) -> Hash256 {
    guard let hash = nodes[Node(level: level, index: index)] else { throw Missing() }
    return hash
  }

  /// The leaves and roots that transparency logs have tested themselves with since the first one.
  @Test func knownRoots() {
    let inputs: [[UInt8]] = [
      [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], [0x40, 0x41, 0x42, 0x43], Array(0x50...0x57), Array(0x60...0x6F),
    ]
    let roots = [
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
      "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
      "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
      "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
      "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
      "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]
    for (size, root) in roots.enumerated() {
      #expect(MerkleTree.root(of: inputs.prefix(size).map { MerkleTree.leafHash($0) }).hex == root)
    }
  }

  @Test func rootsAgreeWithTheDefinition() throws {
    var frontier = MerkleFrontier()
    for size in 0...Self.largest {
      let expected = Definition.root(leaves[..<size])
      #expect(frontier.root == expected)
      #expect(frontier.size == UInt64(size))
      #expect(try MerkleTree.root(size: UInt64(size), hash: hash) == expected)
      let restored = try #require(MerkleFrontier(bytes: frontier.bytes))
      #expect(restored == frontier)
      if size < Self.largest { frontier.append(leaves[size]) }
    }
  }

  @Test func inclusionProofsAgreeWithTheDefinition() throws {
    for size in 1...Self.largest {
      let root = Definition.root(leaves[..<size])
      for index in Set([0, 1, size / 3, size / 2, size - 2, size - 1]) where (0..<size).contains(index) {
        let proof = try MerkleTree.inclusionProof(index: UInt64(index), size: UInt64(size), hash: hash)
        #expect(proof == Definition.path(index, leaves[..<size]))
        func verifies(
          leaf: Hash256, index: Int = index, size: Int = size, proof: [Hash256] = proof, root: Hash256 = root
        ) -> Bool {
          MerkleTree.verifyInclusion(
            leaf: leaf, index: UInt64(index), size: UInt64(size), proof: proof, root: root)
        }
        #expect(verifies(leaf: leaves[index]))
        #expect(!verifies(leaf: leaves[(index + 1) % Self.largest]))
        #expect(!verifies(leaf: leaves[index], index: index + 1))
        #expect(!verifies(leaf: leaves[index], index: size))
        #expect(!verifies(leaf: leaves[index], root: leaves[index]) || size == 1)
        #expect(!verifies(leaf: leaves[index], proof: proof + [root]))
        if !proof.isEmpty {
          #expect(!verifies(leaf: leaves[index], proof: Array(proof.dropLast())))
          #expect(!verifies(leaf: leaves[index], proof: Array(proof.dropFirst())))
        }
        for position in proof.indices {
          var changed = proof
          changed[position] = root
          #expect(!verifies(leaf: leaves[index], proof: changed))
        }
      }
    }
    #expect(!MerkleTree.verifyInclusion(leaf: leaves[0], index: 0, size: 0, proof: [], root: MerkleTree.emptyRoot))
  }

  @Test func consistencyProofsAgreeWithTheDefinition() throws {
    for new in 0...Self.largest {
      let newRoot = Definition.root(leaves[..<new])
      for old in 0...new {
        let oldRoot = Definition.root(leaves[..<old])
        let proof = try MerkleTree.consistencyProof(from: UInt64(old), to: UInt64(new), hash: hash)
        #expect(old == 0 || proof == Definition.subproof(old, leaves[..<new], true))
        func verifies(
          _ proof: [Hash256], from first: Hash256 = oldRoot, to second: Hash256 = newRoot
        ) -> Bool {
          MerkleTree.verifyConsistency(
            from: UInt64(old), to: UInt64(new), oldRoot: first, newRoot: second, proof: proof)
        }
        #expect(verifies(proof), "\(old) to \(new)")
        #expect(!verifies(proof + [newRoot]))
        #expect(!verifies(proof, from: leaves[7]))
        if old > 0 || new == 0 { #expect(!verifies(proof, to: leaves[7])) }
        guard new % 9 == 0 else { continue }
        for position in proof.indices {
          var changed = proof
          changed[position] = leaves[7] == proof[position] ? leaves[8] : leaves[7]
          #expect(!verifies(changed), "\(old) to \(new), part \(position)")
          changed = proof
          changed.remove(at: position)
          #expect(!verifies(changed), "\(old) to \(new), without part \(position)")
        }
      }
    }
    #expect(
      !MerkleTree.verifyConsistency(
        from: 2, to: 1, oldRoot: Definition.root(leaves[..<2]), newRoot: Definition.root(leaves[..<1]), proof: []))
  }

  /// Trees near the end of what a size can be: proofs are long, arithmetic must not wrap.
  @Test func hugeTrees() throws {
    func made(_ level: Int, _ index: UInt64) -> Hash256 { SHA256.digest("\(level) \(index)") }
    // Hashes that belong to no real tree still make a consistent path from each leaf.
    let size = UInt64.max
    for index in [0, 1, size / 2, size - 1] {
      let proof = MerkleTree.inclusionProof(index: index, size: size, hash: made)
      #expect(proof.count >= 63 || index == size - 1)
      #expect(
        !MerkleTree.verifyInclusion(leaf: made(0, index), index: index, size: size, proof: proof, root: leaves[0]))
    }
    let frontier = MerkleFrontier(size: size, nodes: [Hash256](repeating: leaves[0], count: 64))
    #expect(frontier?.root == MerkleTree.root(size: size) { _, _ in leaves[0] })
  }

  @Test func damagedFrontiersAreRefused() {
    var frontier = MerkleFrontier()
    for leaf in leaves.prefix(11) { frontier.append(leaf) }
    let bytes = frontier.bytes
    for length in bytes.indices { #expect(MerkleFrontier(bytes: Array(bytes.prefix(length))) == nil) }
    #expect(MerkleFrontier(bytes: bytes + [0]) == nil)
    #expect(MerkleFrontier(size: 3, nodes: [leaves[0]]) == nil)
  }
}
