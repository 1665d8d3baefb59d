import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Writes a log into a folder, so that it can be checked for ever without broker, database and us.
///
/// Of each partition the records are taken for which a checkpoint signs; the topic `audit` is taken whole. Each record
/// stands in its file as its offset (int64), its length (int32) and its one binary form, which is the audit leaf.
public struct AuditExport: Sendable {
  public let topics: TopicSettings
  public let key: NoteVerifier

  public init(topics: TopicSettings, key: NoteVerifier) {
    self.topics = topics
    self.key = key
  }

  public struct Outcome: Sendable, Hashable {
    public var partitions = 0
    public var records: Int64 = 0
    /// Left out because no checkpoint signs for them yet.
    public var unsigned: Int64 = 0
  }

  /// Bytes that are gathered before they are written.
  private static let block = 1 << 20

  /// - Throws: `ArchiveFailure`, or the log's failure.
  public func write(
    _ log: any AuditedLog, to folder: any ArchiveFolder, progress: (Int64) -> Void = { _ in }
  ) throws -> Outcome {
    guard try folder.names().isEmpty else { throw ArchiveFailure("the folder", "is not empty") }
    var outcome = Outcome()
    var manifest = ArchiveManifest(key: key, prefix: topics.prefix, isComplete: log.isComplete)
    for topic in [Topic.received, .parked, .verified, .owned] {
      for number in try log.bounds(of: topics.name(topic)).keys {
        let partition = TopicPartition(topics.name(topic), number)
        manifest.workedOff[partition] = try log.workedOff(partition)
      }
    }
    var claims = Claims(names: AuditNames(name: key.name), key: key)
    var ignored = AuditReport()
    // The topic `audit` is read twice; what is added to it meanwhile must not be in the copy only.
    let auditBounds = try log.bounds(of: topics.name(.audit))
    try claims.read(log, topic: topics.name(.audit), &ignored)
    for (number, bounds) in auditBounds.sorted(by: { $0.key < $1.key }) {
      let file = try copy(log, TopicPartition(topics.name(.audit), number), bounds, limit: nil, to: folder)
      manifest.files.append(file)
    }
    for topic in Topic.auditedOutputsFirst {
      for (number, bounds) in try log.auditedBounds(of: topic, topics).sorted(by: { $0.key < $1.key }) {
        let partition = TopicPartition(topics.name(topic), number)
        let signed = claims.sorted(partition).last?.size ?? 0
        let file = try copy(log, partition, bounds, limit: signed, to: folder)
        manifest.files.append(file)
        outcome.partitions += 1
        outcome.records += file.records
        let left = try rest(log, partition, OffsetBounds(start: file.bounds.end, end: bounds.end))
        outcome.unsigned += left
        progress(outcome.records)
      }
    }
    if outcome.unsigned > 0 { manifest.isComplete = false }
    try folder.append(Array(manifest.text.utf8), to: ArchiveManifest.fileName)
    return outcome
  }

  private func copy(
    _ log: any AuditedLog, _ partition: TopicPartition, _ bounds: OffsetBounds, limit: Int64?,
    to folder: any ArchiveFolder
  ) throws -> ArchiveManifest.File {
    let name = ArchiveManifest.File.name(partition)
    let hasher = SHA256.Hasher()
    var block: [UInt8] = []
    var file = ArchiveManifest.File(
      partition: partition, bounds: OffsetBounds(start: bounds.start, end: bounds.start), records: 0, bytes: 0,
      digest: "")
    func flush() throws(LogFailure) {
      hasher.update(block)
      do { try folder.append(block, to: name) } catch { throw LogFailure(.refused, error.description) }
      file.bytes += block.count
      block.removeAll(keepingCapacity: true)
    }
    try log.forEach(partition, bounds) { stored throws(LogFailure) in
      if let limit, file.records >= limit { return false }
      let record = RecordCodec.encode(stored.record)
      withUnsafeBytes(of: stored.coordinates.offset.bigEndian) { block.append(contentsOf: $0) }
      withUnsafeBytes(of: Int32(record.count).bigEndian) { block.append(contentsOf: $0) }
      block += record
      file.records += 1
      file.bounds = OffsetBounds(start: bounds.start, end: stored.coordinates.offset + 1)
      if block.count >= Self.block { try flush() }
      return true
    }
    try flush()
    file.digest = hasher.finish().hex
    return file
  }

  private func rest(
    _ log: any AuditedLog, _ partition: TopicPartition, _ bounds: OffsetBounds
  ) throws(LogFailure) -> Int64 {
    var count: Int64 = 0
    try log.forEach(partition, bounds) { _ throws(LogFailure) in
      count += 1
      return true
    }
    return count
  }
}
