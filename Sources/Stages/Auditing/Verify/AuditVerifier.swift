import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Checks a whole log against its signed checkpoints: every tree is computed again from the records, and every record's
/// outputs are looked for. Needs nothing but the log and the public key; memory grows by an eighth of a byte per record
/// and some dozen bytes per checkpoint.
public struct AuditVerifier: Sendable {
  public let topics: TopicSettings
  public let names: AuditNames
  public let key: NoteVerifier

  /// - Parameter key: the public key of the log, whose name is the log's.
  public init(topics: TopicSettings, key: NoteVerifier) {
    self.topics = topics
    self.key = key
    names = AuditNames(name: key.name)
  }

  /// - Parameters:
  ///   - store: where given, the audit tables are held against the log, leaf by leaf.
  ///   - isSealed: the log is an export, in which every record must be signed for.
  ///   - progress: called now and then with the number of records read.
  public func verify(
    _ log: any AuditedLog, store: (any StoreReader)? = nil, isSealed: Bool = false,
    progress: (Int64) -> Void = { _ in }
  ) throws -> AuditReport {
    var report = AuditReport()
    // What answers is read before what it answers to, and what signs before what it signs for: a log that is being
    // written to must not look broken.
    var workedOff: [TopicPartition: Int64] = [:]
    for topic in [Topic.received, .parked, .verified] {
      for number in try log.bounds(of: topics.name(topic)).keys {
        let partition = TopicPartition(topics.name(topic), number)
        workedOff[partition] = try log.workedOff(partition)
      }
    }
    let rows = try store.map { try treeRows($0) } ?? [:]
    var claims = Claims(names: names, key: key)
    try claims.read(log, topic: topics.name(.audit), &report)
    var bounds: [(topic: Topic, partition: TopicPartition, bounds: OffsetBounds)] = []
    for topic in Topic.auditedOutputsFirst {
      for (number, found) in try log.auditedBounds(of: topic, topics) {
        bounds.append((topic, TopicPartition(topics.name(topic), number), found))
      }
    }
    for partition in claims.byPartition.keys.sorted() where !bounds.contains(where: { $0.partition == partition }) {
      report.add(.truncated, partition.description, "is signed for and not there")
    }
    bounds.sort { $0.partition < $1.partition }
    var outputs = Outputs()
    var count: Int64 = 0
    for (topic, partition, bounds) in bounds {
      var tree = TreeCheck(partition, claims, row: rows[partition], store: store, isSealed: isSealed)
      if bounds.start > 0 {
        report.add(.beginningGone, partition.description, "records 0 to \(bounds.start - 1) are gone")
        continue
      }
      let damage = try log.damage(partition, bounds) { stored throws(LogFailure) in
        tree.append(stored, &report)
        outputs.note(stored, of: topic, topics, &report)
        count += 1
        if count % 10_000 == 0 { progress(count) }
        return true
      }
      if let damage { report.add(.unreadable, partition.description, damage) }
      report.trees.append(tree.finish(&report))
    }
    if log.isComplete {
      report.checkedCompleteness = true
      let ends = isSealed ? [:] : Dictionary(uniqueKeysWithValues: bounds.map { ($0.partition, $0.bounds.end) })
      outputs.judge(topics, workedOff: workedOff, ends: ends, &report)
    }
    progress(count)
    return report
  }

  private func treeRows(_ store: any StoreReader) throws(StoreFailure) -> [TopicPartition: Row] {
    var rows: [TopicPartition: Row] = [:]
    var after: [Value]?
    while true {
      // Page by page; a deployment has some dozens of partitions.
      let page = try store.rows(.auditTree, prefix: [], after: after, limit: 256)
      for row in page {
        guard let topic = row.key.values[0].text, let number = row.key.values[1].integer else { continue }
        rows[TopicPartition(topic, Int32(truncatingIfNeeded: number))] = row
      }
      guard let last = page.last else { return rows }
      after = last.key.values
    }
  }
}

/// One partition's tree as it is computed again.
struct TreeCheck {
  private let partition: TopicPartition
  private let isSealed: Bool
  private let notes: Int
  private var claims: ArraySlice<Claims.Claim>
  private let store: (any StoreReader)?
  private var stored: Claims.Claim?
  private var storedSize: Int64 = 0
  private var tile: LeafTile?
  private var storeIsBroken = false
  private var frontier = MerkleFrontier()
  private var lastOffset: Int64 = -1
  private var lastGood: (size: Int64, offset: Int64) = (0, -1)
  private var isBroken = false
  private var signed: Int64 = 0

  init(_ partition: TopicPartition, _ claims: Claims, row: Row?, store: (any StoreReader)?, isSealed: Bool) {
    self.partition = partition
    self.isSealed = isSealed
    self.store = row == nil ? nil : store
    self.claims = claims.sorted(partition)[...]
    notes = claims.noteCount[partition] ?? 0
    guard let row else { return }
    if let state = TreeState(row, partition) {
      stored = Claims.Claim(size: state.size, root: state.frontier.root, place: "audit_tree")
      storedSize = state.size
    } else {
      storeIsBroken = true
    }
  }

  mutating func append(_ record: StoredRecord, _ report: inout AuditReport) {
    let offset = record.coordinates.offset
    if offset <= lastOffset, !isBroken {
      isBroken = true
      report.add(.disorder, record.coordinates.description, "stands behind offset \(lastOffset)")
    }
    let hash = LeafHash.of(record.record)
    compare(hash, offset, &report)
    frontier.append(hash)
    lastOffset = offset
    while let claim = claims.first, claim.size <= Int64(frontier.size) {
      claims.removeFirst()
      check(claim, offset, &report)
    }
    if let stored, stored.size == Int64(frontier.size), !storeIsBroken {
      if stored.root != frontier.root {
        storeIsBroken = true
        report.add(.storeDiffers, partition.description, "audit_tree has another root at size \(stored.size)")
      }
    }
  }

  private mutating func check(_ claim: Claims.Claim, _ offset: Int64, _ report: inout AuditReport) {
    // An empty tree is signed for by nobody of ours; one claim may also repeat a size with another root.
    guard claim.size == Int64(frontier.size), claim.root == frontier.root else {
      guard !isBroken else { return }
      isBroken = true
      return report.add(
        .rootDiffers, "\(partition)/\(lastGood.offset + 1)...\(offset)",
        "records \(lastGood.size) to \(claim.size - 1) of the partition are not those that \(claim.place) signs for")
    }
    signed = claim.size
    lastGood = (claim.size, offset)
  }

  /// Holds a leaf against the store's tile; the first difference names the record.
  private mutating func compare(_ hash: Hash256, _ offset: Int64, _ report: inout AuditReport) {
    let leaf = Int64(frontier.size)
    guard let store, !storeIsBroken, leaf < storedSize else { return }
    let (index, place) = leaf.quotientAndRemainder(dividingBy: LeafTile.width)
    if place == 0 {
      // The last tile may have grown since the tree's row was read.
      let row = try? store.row(LeafTile.key(partition, index: index))
      tile = row.flatMap { row in
        (row["offsets"].bytes?.count).flatMap { LeafTile(row, partition, index: index, count: Int64($0 / 8)) }
      }
    }
    guard let tile, Int(place) < tile.count, tile.hash(Int(place)) == hash, tile.offset(Int(place)) == offset else {
      storeIsBroken = true
      return report.add(
        .storeDiffers, "\(partition)/\(offset)", "audit_tile has another leaf \(leaf) than the log")
    }
  }

  mutating func finish(_ report: inout AuditReport) -> AuditReport.Tree {
    let size = Int64(frontier.size)
    if let claim = claims.last, !isBroken {
      report.add(
        .truncated, "\(partition)/\(lastOffset + 1)",
        "\(claim.place) signs for \(claim.size) records and \(size) are there")
    }
    if storedSize > size, !storeIsBroken {
      report.add(.storeDiffers, partition.description, "audit_tree has \(storedSize) records and the log \(size)")
    }
    if storeIsBroken, stored == nil {
      report.add(.storeDiffers, partition.description, "the row of audit_tree is damaged")
    }
    if isSealed, !isBroken, signed < size {
      report.add(
        .unsigned, "\(partition)/\(lastGood.offset + 1)...\(lastOffset)",
        "records \(signed) to \(size - 1) are signed for by no checkpoint")
    }
    return AuditReport.Tree(
      partition: partition, records: size, signed: signed, checkpoints: notes, root: frontier.root.hex)
  }
}
