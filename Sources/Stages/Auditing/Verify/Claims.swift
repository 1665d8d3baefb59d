import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// What checkpoints say of the partitions' trees, gathered from the topic `audit` before the records are read: a few
/// dozen bytes per checkpoint, one of which stands for up to ten thousand records.
struct Claims {
  struct Claim {
    let size: Int64
    let root: Hash256
    /// Where it was read.
    let place: String
  }

  private let names: AuditNames
  private let key: NoteVerifier
  private(set) var byPartition: [TopicPartition: [Claim]] = [:]
  private(set) var noteCount: [TopicPartition: Int] = [:]
  /// By name: a store that began anew began a log of its own.
  private var summaries: [String: Summary] = [:]

  private struct Summary {
    var tree = MerkleFrontier()
    var isBroken = false
  }

  init(names: AuditNames, key: NoteVerifier) {
    self.names = names
    self.key = key
  }

  /// Claims of a partition in order of size.
  func sorted(_ partition: TopicPartition) -> [Claim] { (byPartition[partition] ?? []).sorted { $0.size < $1.size } }

  mutating func add(_ claim: Claim, for partition: TopicPartition) {
    if let last = byPartition[partition]?.last, last.size == claim.size, last.root == claim.root { return }
    byPartition[partition, default: []].append(claim)
  }

  mutating func read(_ log: any AuditedLog, topic: String, _ report: inout AuditReport) throws(LogFailure) {
    for (number, bounds) in try log.bounds(of: topic).sorted(by: { $0.key < $1.key }) {
      let partition = TopicPartition(topic, number)
      if bounds.start > 0 {
        report.add(.beginningGone, partition.description, "records 0 to \(bounds.start - 1) are gone")
      }
      let damage = try log.damage(partition, bounds) { stored throws(LogFailure) in
        read(stored, &report)
        return true
      }
      if let damage { report.add(.unreadable, partition.description, damage) }
    }
    let newest = summaries.max { (names.born(of: $0.key) ?? .distantPast) < (names.born(of: $1.key) ?? .distantPast) }
    if let newest {
      report.summary = AuditReport.Head(
        origin: newest.key, size: Int64(newest.value.tree.size), root: newest.value.tree.root.hex)
    }
  }

  private mutating func read(_ stored: StoredRecord, _ report: inout AuditReport) {
    let place = stored.coordinates.description
    let event: AuditEvent
    do {
      let envelope = try Envelope(reading: stored.record)
      event = try AuditEvent(type: envelope.type, data: stored.record.value ?? [])
    } catch {
      return report.add(.unreadableCheckpoint, place, "\(error)")
    }
    switch event {
    case .anomaly(let anomaly): report.anomalies[anomaly.kind, default: 0] += 1
    case .checkpointed(let event): read(event, place, &report)
    }
  }

  private mutating func read(_ event: AuditCheckpointed, _ place: String, _ report: inout AuditReport) {
    let origin: String
    switch event.scope {
    case .partition(let partition): origin = names.origin(of: partition)
    case .summary:
      // The note itself says which; whether it may is seen below.
      origin = event.note.split(separator: "\n", maxSplits: 1).first.map(String.init) ?? ""
      guard names.born(of: origin) != nil else {
        return report.add(.badSignature, place, "is of no log over all partitions of \(names.name)")
      }
    }
    guard let verifier = names.verifier(of: origin, key) else {
      return report.add(.unreadableCheckpoint, place, "names a tree that no note can be signed for")
    }
    let head: Checkpoint
    do { head = try Checkpoint(verifying: Array(event.note.utf8), with: [verifier]) } catch {
      return report.add(.badSignature, place, error.rawValue)
    }
    guard head.origin == origin, let size = Int64(exactly: head.size), size == event.size, head.root.hex == event.root
    else {
      return report.add(.unreadableCheckpoint, place, "the signed note says something else than the event around it")
    }
    switch event.scope {
    case .partition(let partition):
      noteCount[partition, default: 0] += 1
      add(Claim(size: size, root: head.root, place: place), for: partition)
    case .summary(let added): sum(added, head, place, &report)
    }
  }

  private mutating func sum(_ added: [String], _ head: Checkpoint, _ place: String, _ report: inout AuditReport) {
    var summary = summaries[head.origin] ?? Summary()
    defer { summaries[head.origin] = summary }
    guard !summary.isBroken else { return }
    // Published again after a crash: the same head.
    if head.size == summary.tree.size, head.root == summary.tree.root { return }
    guard head.size == summary.tree.size + UInt64(added.count) else {
      summary.isBroken = true
      return report.add(
        .summaryBroken, place, "adds \(added.count) to \(summary.tree.size) checkpoints and signs for \(head.size)")
    }
    for text in added { summary.tree.append(MerkleTree.leafHash(Array(text.utf8))) }
    guard summary.tree.root == head.root else {
      summary.isBroken = true
      return report.add(.rootDiffers, place, "the checkpoints that it adds don't lead to the root that it signs")
    }
    for text in added {
      guard let leaf = try? Checkpoint(text: text), let partition = names.partition(of: leaf.origin),
        let size = Int64(exactly: leaf.size)
      else {
        report.add(.summaryBroken, place, "adds a text that is no checkpoint of this log")
        continue
      }
      add(Claim(size: size, root: leaf.root, place: place), for: partition)
    }
  }
}
