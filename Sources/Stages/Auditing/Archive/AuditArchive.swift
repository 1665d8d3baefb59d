import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// An exported folder, read as the log that it was.
public final class AuditArchive: AuditedLog {
  private let folder: any ArchiveFolder
  private let manifest: ArchiveManifest
  private let files: [TopicPartition: ArchiveManifest.File]
  private var cursors: [TopicPartition: Cursor] = [:]

  /// Where reading stands in a file, with what has been read ahead.
  private struct Cursor {
    var next: Int64
    var position = 0
    var ahead: [UInt8] = []
    var aheadPosition = 0
  }

  /// Bytes read at a time.
  private static let block = 1 << 20
  /// Larger than any record that a topic lets in.
  private static let maximumRecordBytes = 64 << 20

  public init(_ folder: any ArchiveFolder) throws(ArchiveFailure) {
    self.folder = folder
    guard let size = try folder.size(of: ArchiveManifest.fileName) else {
      throw ArchiveFailure(ArchiveManifest.fileName, "is not there; this is no export of an audit log")
    }
    guard size <= ArchiveManifest.maximumBytes,
      let manifest = ArchiveManifest(parsing: try folder.read(ArchiveManifest.fileName, at: 0, count: size))
    else { throw ArchiveFailure(ArchiveManifest.fileName, "is not as it was written") }
    self.manifest = manifest
    files = Dictionary(manifest.files.map { ($0.partition, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The key that the folder names. Whoever can change the folder can change it too: compare it with the one you know.
  public var key: NoteVerifier { manifest.key }

  public var topics: TopicSettings { TopicSettings(prefix: manifest.prefix) }

  public var isComplete: Bool { manifest.isComplete }

  public func workedOff(_ partition: TopicPartition) throws(LogFailure) -> Int64? { manifest.workedOff[partition] }

  public func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
    var bounds: [Int32: OffsetBounds] = [:]
    for file in manifest.files where file.partition.topic == topic { bounds[file.partition.partition] = file.bounds }
    return bounds
  }

  /// The whole check of a folder: its files against its manifest, its records against their checkpoints.
  /// - Parameter key: the public key of the log, known from elsewhere; without it the folder's own.
  public func verify(key: NoteVerifier? = nil, progress: (Int64) -> Void = { _ in }) throws -> AuditReport {
    var report = try AuditVerifier(topics: topics, key: key ?? self.key).verify(
      self, isSealed: true, progress: progress)
    try compareFiles(&report)
    return report
  }

  private func compareFiles(_ report: inout AuditReport) throws(ArchiveFailure) {
    for file in manifest.files {
      guard try folder.size(of: file.name) == file.bytes, try digest(file) == file.digest else {
        report.add(.fileDamaged, file.name, "is not as it was written")
        continue
      }
      let records = report.trees.first { $0.partition == file.partition }?.records
      if let records, records != file.records {
        report.add(.fileDamaged, file.name, "holds \(records) records, and \(file.records) were written")
      }
    }
    let known = Set(manifest.files.map(\.name) + [ArchiveManifest.fileName])
    for name in try folder.names() where !known.contains(name) {
      report.add(.fileDamaged, name, "is no file of this export")
    }
  }

  private func digest(_ file: ArchiveManifest.File) throws(ArchiveFailure) -> String {
    let hasher = SHA256.Hasher()
    var position = 0
    while position < file.bytes {
      let bytes = try folder.read(file.name, at: position, count: min(Self.block, file.bytes - position))
      guard !bytes.isEmpty else { break }
      hasher.update(bytes)
      position += bytes.count
    }
    return hasher.finish().hex
  }

  public func read(
    _ partition: TopicPartition, from offset: Int64, max: Int
  ) throws(LogFailure) -> [StoredRecord] {
    guard let file = files[partition] else { throw LogFailure(.refused, "\(partition) is not in this export") }
    var cursor = cursors[partition] ?? Cursor(next: file.bounds.start)
    if offset < cursor.next { cursor = Cursor(next: file.bounds.start) }
    defer { cursors[partition] = cursor }
    var records: [StoredRecord] = []
    while records.count < max {
      guard let stored = try next(file, &cursor) else { break }
      cursor.next = stored.coordinates.offset + 1
      if stored.coordinates.offset >= offset { records.append(stored) }
    }
    return records
  }

  private func next(_ file: ArchiveManifest.File, _ cursor: inout Cursor) throws(LogFailure) -> StoredRecord? {
    guard let head = try take(12, file, &cursor) else { return nil }
    do {
      var at = 0
      let offset: Int64 = try RecordCodec.integer(head, at: &at)
      let length: Int32 = try RecordCodec.integer(head, at: &at)
      if offset >= 0, length >= 0, Int(length) <= Self.maximumRecordBytes,
        let bytes = try take(Int(length), file, &cursor)
      {
        return StoredRecord(
          coordinates: Coordinates(
            topic: file.partition.topic, partition: file.partition.partition, offset: offset),
          record: try RecordCodec.decode(bytes))
      }
    } catch let failure as LogFailure {
      throw failure
    } catch {}
    throw LogFailure(.corrupt, "\(file.name): no record can be read at byte \(cursor.position)")
  }

  /// The next bytes of a file; nil at its end.
  private func take(_ count: Int, _ file: ArchiveManifest.File, _ cursor: inout Cursor) throws(LogFailure) -> [UInt8]? {
    if cursor.ahead.count - cursor.aheadPosition < count {
      cursor.ahead.removeFirst(cursor.aheadPosition)
      cursor.aheadPosition = 0
      let from = cursor.position + cursor.ahead.count
      do {
        cursor.ahead += try folder.read(file.name, at: from, count: Swift.max(Self.block, count - cursor.ahead.count))
      } catch { throw LogFailure(.corrupt, error.description) }
    }
    let available = cursor.ahead.count - cursor.aheadPosition
    guard available >= count else {
      if available == 0 { return nil }
      throw LogFailure(.corrupt, "\(file.name): ends within a record")
    }
    defer {
      cursor.aheadPosition += count
      cursor.position += count
    }
    return Array(cursor.ahead[cursor.aheadPosition..<cursor.aheadPosition + count])
  }
}
