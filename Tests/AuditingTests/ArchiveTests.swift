import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct ArchiveTests {
  private func exported(payments: Int, partitions: Int32) throws -> (DiskFolder, AuditSettings, MemoryLog) {
    let (harness, settings) = try Fixture.audited(payments: payments, partitions: partitions)
    let folder = try DiskFolder()
    let outcome = try AuditExport(topics: settings.topics, key: settings.verifierKey).write(harness.log, to: folder)
    #expect(outcome.unsigned == 0)
    #expect(outcome.partitions == Int(partitions) * Topic.audited.count)
    return (folder, settings, harness.log)
  }

  /// Whether the check of a folder finds fault; refusing to read it at all counts.
  private func isCaught(_ folder: MemoryFolder, key: NoteVerifier) -> Bool {
    guard let archive = try? AuditArchive(folder), let report = try? archive.verify(key: key) else { return true }
    return !report.holds
  }

  @Test func anExportHoldsWithFilesAlone() throws {
    let (folder, settings, log) = try exported(payments: 40, partitions: 3)
    let archive = try AuditArchive(folder)
    let report = try archive.verify(key: settings.verifierKey)
    #expect(report.findings == [])
    #expect(report.checkedCompleteness)
    let live = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(log)
    #expect(report.trees == live.trees)
    #expect(report.summary == live.summary)
    #expect(archive.key == settings.verifierKey)
    for (partition, records) in log.records
    where Topic.audited.contains(log.topics.topic(named: partition.topic) ?? .audit) {
      #expect(try archive.read(partition, from: 0, max: 10_000) == records)
      // Backwards and forwards.
      #expect(
        try archive.read(partition, from: 9, max: 2) == Array(records.drop { $0.coordinates.offset < 9 }.prefix(2)))
    }
  }

  @Test func everyByteOfAnExportCounts() throws {
    let (disk, settings, _) = try exported(payments: 1, partitions: 1)
    let folder = try MemoryFolder(disk)
    #expect(!isCaught(folder, key: settings.verifierKey))
    var bytes = 0
    for (name, original) in folder.files.sorted(by: { $0.key < $1.key }) {
      for place in original.indices {
        var changed = original
        changed[place] ^= UInt8(1 << (place % 8))
        folder.files[name] = changed
        if !isCaught(folder, key: settings.verifierKey) { Issue.record("byte \(place) of \(name) changed unseen") }
        bytes += 1
      }
      folder.files[name] = original
    }
    #expect(bytes > 3000)
  }

  /// Whoever changes a file can make its digest and the manifest anew; what is signed for is found even so.
  @Test func everyByteOfEveryRecordCountsEvenWithAManifestMadeAnew() throws {
    let (disk, settings, _) = try exported(payments: 1, partitions: 1)
    let folder = try MemoryFolder(disk)
    let manifest = try #require(ArchiveManifest(parsing: folder.files["MANIFEST"] ?? []))
    let original = folder.files
    var bytes = 0
    for (name, content) in original where name != "MANIFEST" && !name.hasPrefix("purchases.audit-") {
      var place = 0
      while place < content.count {
        // Offsets and lengths stand beside the record and are no part of the leaf.
        let length = Int(content[place + 10]) << 8 + Int(content[place + 11])
        for byte in place + 12..<place + 12 + length {
          var changed = content
          changed[byte] ^= 0x20
          folder.files = original
          folder.files[name] = changed
          var forged = manifest
          for index in forged.files.indices where forged.files[index].name == name {
            forged.files[index].digest = SHA256.digest(changed).hex
          }
          folder.files["MANIFEST"] = Array(forged.text.utf8)
          if !isCaught(folder, key: settings.verifierKey) { Issue.record("byte \(byte) of \(name) changed unseen") }
          bytes += 1
        }
        place += 12 + length
      }
    }
    #expect(bytes > 1000)
  }

  @Test func everyByteOfANoteCountsEvenWithAManifestMadeAnew() throws {
    let (harness, settings) = try Fixture.audited(payments: 1, partitions: 1)
    let audit = TopicPartition("purchases.audit", 0)
    let original = try #require(harness.log.records[audit])
    let verifier = AuditVerifier(topics: settings.topics, key: settings.verifierKey)
    var bytes = 0
    for (index, stored) in original.enumerated() {
      let value = try #require(stored.record.value)
      for place in value.indices {
        var record = stored.record
        record.value?[place] ^= 0x01
        harness.log.records[audit]?[index] = StoredRecord(coordinates: stored.coordinates, record: record)
        if try verifier.verify(harness.log, isSealed: true).holds {
          Issue.record("byte \(place) of checkpoint \(index) changed unseen")
        }
        bytes += 1
      }
      harness.log.records[audit]?[index] = stored
    }
    #expect(bytes > 1000)
  }

  @Test func missingTruncatedAndForeignFilesAreFound() throws {
    let (disk, settings, _) = try exported(payments: 6, partitions: 1)
    let original = try MemoryFolder(disk).files
    let folder = MemoryFolder()
    for name in original.keys {
      folder.files = original
      folder.files[name] = nil
      #expect(isCaught(folder, key: settings.verifierKey), "\(name) missing")
      folder.files = original
      folder.files[name]?.removeLast(min(5, original[name]?.count ?? 0))
      if original[name]?.isEmpty == false { #expect(isCaught(folder, key: settings.verifierKey), "\(name) cut") }
      folder.files = original
      folder.files[name]?.append(0)
      #expect(isCaught(folder, key: settings.verifierKey), "\(name) longer")
    }
    folder.files = original
    folder.files["extra.records"] = [1]
    #expect(isCaught(folder, key: settings.verifierKey))
  }

  @Test func anotherKeyIsRefused() throws {
    let (disk, settings, _) = try exported(payments: 3, partitions: 1)
    let other = try NoteVerifier(
      name: settings.verifierKey.name,
      publicKey: try #require(Ed25519PrivateKey(seed: [UInt8](repeating: 1, count: 32))).publicKey)
    let report = try AuditArchive(disk).verify(key: other)
    #expect(!report.holds)
    #expect(report.findings.allSatisfy { $0.kind == .badSignature || $0.kind == .unsigned })
  }

  @Test func whatNoCheckpointSignsForIsLeftOutAndSaid() throws {
    let (harness, settings) = try Fixture.audited(payments: 10, partitions: 1)
    for number in 0..<3 {
      harness.log.append(
        Record(key: [1], value: [UInt8(number)], timestamp: Fixture.late), to: .received)
    }
    let folder = MemoryFolder()
    let outcome = try AuditExport(topics: settings.topics, key: settings.verifierKey).write(harness.log, to: folder)
    #expect(outcome.unsigned == 3)
    let report = try AuditArchive(folder).verify(key: settings.verifierKey)
    #expect(report.findings == [])
    #expect(!report.checkedCompleteness)
  }

  @Test func aFolderThatIsNotEmptyIsNotWrittenInto() throws {
    let (harness, settings) = try Fixture.audited(payments: 2, partitions: 1)
    let folder = MemoryFolder()
    folder.files["mine"] = [1]
    #expect(throws: ArchiveFailure.self) {
      try AuditExport(topics: settings.topics, key: settings.verifierKey).write(harness.log, to: folder)
    }
    #expect(folder.files == ["mine": [1]])
  }
}
