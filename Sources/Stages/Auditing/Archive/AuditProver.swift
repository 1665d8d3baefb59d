import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Makes proofs from a log or an export alone: reads the partition once to find what the proof needs.
public struct AuditProver: Sendable {
  public let topics: TopicSettings
  public let names: AuditNames
  public let key: NoteVerifier

  public init(topics: TopicSettings, key: NoteVerifier) {
    self.topics = topics
    self.key = key
    names = AuditNames(name: key.name)
  }

  public enum Place: Sendable, Hashable {
    /// The n-th committed record of the partition, from 0.
    case index(Int64)
    /// The broker's offset.
    case offset(Int64)
  }

  /// Shows that a record is in the log, under the newest checkpoint of its partition.
  /// - Throws: `ProofFailure`, or the log's failure.
  public func prove(_ log: any AuditedLog, _ partition: TopicPartition, _ place: Place) throws -> InclusionProof {
    guard let bounds = try log.bounds(of: partition.topic)[partition.partition] else {
      throw ProofFailure.noRecord(partition.description)
    }
    guard bounds.start == 0 else { throw ProofFailure.noRecord("\(partition)/0: the partition's beginning is gone") }
    guard let (index, stored) = try find(log, partition, bounds, place) else {
      throw ProofFailure.noRecord("\(partition), \(place)")
    }
    guard let (head, note) = try newest(log, partition), head.size > UInt64(index) else {
      throw ProofFailure.unsigned(stored.coordinates.description)
    }
    let path = try self.path(log, partition, bounds) { hash throws(MissingNode) in
      try MerkleTree.inclusionProof(index: UInt64(index), size: head.size, hash: hash)
    }
    let proof = InclusionProof(record: stored.record, index: index, path: path, note: note)
    // The log may have been changed since: a proof that shows nothing is not handed out.
    _ = try proof.check(key: key)
    return proof
  }

  /// Shows that a partition's smaller tree is the beginning of a larger one.
  public func consistency(
    _ log: any AuditedLog, _ partition: TopicPartition, from old: Int64, to new: Int64
  ) throws -> [Hash256] {
    guard let bounds = try log.bounds(of: partition.topic)[partition.partition], bounds.start == 0 else {
      throw ProofFailure.noRecord(partition.description)
    }
    return try path(log, partition, bounds) { hash throws(MissingNode) in
      try MerkleTree.consistencyProof(from: UInt64(old), to: UInt64(new), hash: hash)
    }
  }

  private func find(
    _ log: any AuditedLog, _ partition: TopicPartition, _ bounds: OffsetBounds, _ place: Place
  ) throws(LogFailure) -> (Int64, StoredRecord)? {
    var index: Int64 = 0
    var found: (Int64, StoredRecord)?
    try log.forEach(partition, bounds) { stored throws(LogFailure) in
      let isIt =
        switch place {
        case .index(let wanted): wanted == index
        case .offset(let wanted): wanted == stored.coordinates.offset
        }
      if isIt { found = (index, stored) }
      index += 1
      return !isIt
    }
    return found
  }

  /// The checkpoint of the partition that signs for most.
  private func newest(
    _ log: any AuditedLog, _ partition: TopicPartition
  ) throws(LogFailure) -> (Checkpoint, String)? {
    guard let verifier = names.verifier(of: names.origin(of: partition), key) else { return nil }
    var newest: (Checkpoint, String)?
    let topic = topics.name(.audit)
    for (number, bounds) in try log.bounds(of: topic) {
      try log.forEach(TopicPartition(topic, number), bounds) { stored throws(LogFailure) in
        guard let envelope = try? Envelope(reading: stored.record),
          case .checkpointed(let event)? = try? AuditEvent(type: envelope.type, data: stored.record.value ?? []),
          event.scope == .partition(partition),
          let head = try? Checkpoint(verifying: Array(event.note.utf8), with: [verifier]),
          head.origin == verifier.name
        else { return true }
        if head.size >= newest?.0.size ?? 0 { newest = (head, event.note) }
        return true
      }
    }
    return newest
  }

  private struct MissingNode: Error {}

  private struct Node: Hashable {
    let level: Int
    let index: UInt64
  }

  /// A proof asks for a few complete nodes. First they are named, then the leaves are read once and those nodes kept.
  private func path(
    _ log: any AuditedLog, _ partition: TopicPartition, _ bounds: OffsetBounds,
    _ proof: ((Int, UInt64) throws(MissingNode) -> Hash256) throws(MissingNode) -> [Hash256]
  ) throws -> [Hash256] {
    var wanted: Set<Node> = []
    _ = try proof { level, index throws(MissingNode) in
      wanted.insert(Node(level: level, index: index))
      return MerkleTree.emptyRoot
    }
    var nodes: [Node: Hash256] = [:]
    var frontier = MerkleFrontier()
    try log.forEach(partition, bounds) { stored throws(LogFailure) in
      frontier.append(LeafHash.of(stored.record)) { level, index, hash in
        let node = Node(level: level, index: index)
        if wanted.contains(node) { nodes[node] = hash }
      }
      return nodes.count < wanted.count
    }
    do {
      return try proof { level, index throws(MissingNode) in
        guard let hash = nodes[Node(level: level, index: index)] else { throw MissingNode() }
        return hash
      }
    } catch { throw ProofFailure.noRecord("\(partition): fewer records than are signed for") }
  }
}
