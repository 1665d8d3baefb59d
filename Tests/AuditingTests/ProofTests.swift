import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct ProofTests {
  @Test func everyRecordOfSmallTreesHasAProofThatHoldsByItself() throws {
    for payments in [1, 2, 3, 5, 8, 21] {
      let (harness, settings) = try Fixture.audited(payments: payments, partitions: 1)
      let prover = AuditProver(topics: settings.topics, key: settings.verifierKey)
      let partition = TopicPartition("purchases.received", 0)
      let records = try #require(harness.log.records[partition])
      for (index, stored) in records.enumerated() {
        let proof = try prover.prove(harness.log, partition, .index(Int64(index)))
        #expect(try prover.prove(harness.log, partition, .offset(stored.coordinates.offset)) == proof)
        let read = try InclusionProof(parsing: proof.text)
        #expect(read == proof)
        let shown = try read.check(key: settings.verifierKey)
        #expect(shown.record == stored.record)
        #expect(shown.index == Int64(index))
        #expect(shown.partition == partition)
        #expect(shown.size == Int64(records.count))
      }
    }
  }

  @Test func theTreesOwnKeyServesAsWellAsTheLogs() throws {
    let (harness, settings) = try Fixture.audited(payments: 4, partitions: 1)
    let partition = TopicPartition("purchases.verified", 0)
    let proof = try AuditProver(topics: settings.topics, key: settings.verifierKey)
      .prove(harness.log, partition, .index(1))
    let own = try #require(settings.names.verifier(of: settings.names.origin(of: partition), settings.verifierKey))
    #expect(try proof.check(key: own).partition == partition)
    let other = try NoteVerifier(name: "example.com/others", publicKey: settings.verifierKey.publicKey)
    #expect(throws: ProofFailure.self) { try proof.check(key: other) }
  }

  @Test func everyByteOfAProofCounts() throws {
    let (harness, settings) = try Fixture.audited(payments: 11, partitions: 1)
    let partition = TopicPartition("purchases.received", 0)
    let proof = try AuditProver(topics: settings.topics, key: settings.verifierKey)
      .prove(harness.log, partition, .index(6))
    #expect(proof.path.count >= 3)
    let text = Array(proof.text.utf8)
    for place in text.indices {
      for bit in [0x01, 0x20] as [UInt8] {
        var changed = text
        changed[place] ^= bit
        guard let string = String(validating: changed, as: UTF8.self),
          let read = try? InclusionProof(parsing: string), (try? read.check(key: settings.verifierKey)) != nil
        else { continue }
        Issue.record("byte \(place) of the proof changed unseen")
      }
    }
  }

  @Test func alteredProofsFail() throws {
    let (harness, settings) = try Fixture.audited(payments: 11, partitions: 1)
    let prover = AuditProver(topics: settings.topics, key: settings.verifierKey)
    let partition = TopicPartition("purchases.received", 0)
    let size = Int64(harness.log.records[partition]?.count ?? 0)
    let other = try prover.prove(harness.log, TopicPartition("purchases.verified", 0), .index(0))
    for index in 0..<size {
      let proof = try prover.prove(harness.log, partition, .index(index))
      func fails(_ record: Record? = nil, index: Int64? = nil, path: [Hash256]? = nil, note: String? = nil) {
        let altered = InclusionProof(
          record: record ?? proof.record, index: index ?? proof.index, path: path ?? proof.path,
          note: note ?? proof.note)
        #expect(throws: ProofFailure.self) { try altered.check(key: settings.verifierKey) }
      }
      fails(index: (index + 1) % size)
      fails(index: size)
      fails(path: Array(proof.path.dropLast()))
      fails(path: proof.path + [MerkleTree.emptyRoot])
      fails(path: proof.path.reversed() == proof.path ? [] : proof.path.reversed())
      fails(note: other.note)
      fails(other.record)
    }
  }

  @Test func whatIsNotThereOrNotSignedHasNoProof() throws {
    let (harness, settings) = try Fixture.audited(payments: 3, partitions: 1)
    let prover = AuditProver(topics: settings.topics, key: settings.verifierKey)
    let partition = TopicPartition("purchases.received", 0)
    #expect(throws: ProofFailure.self) { try prover.prove(harness.log, partition, .index(1000)) }
    #expect(throws: ProofFailure.self) { try prover.prove(harness.log, partition, .offset(1000)) }
    #expect(throws: ProofFailure.self) { try prover.prove(harness.log, TopicPartition("no", 0), .index(0)) }
    let place = harness.log.append(Record(key: [1], value: [1], timestamp: Fixture.late), to: .received)
    #expect(throws: ProofFailure.unsigned(place.description)) {
      try prover.prove(harness.log, partition, .offset(place.offset))
    }
    // A record that was changed after it was signed for: no proof rather than a false one.
    let first = try #require(harness.log.records[partition]?[0])
    var record = first.record
    record.value = [9]
    harness.log.records[partition]?[0] = StoredRecord(coordinates: first.coordinates, record: record)
    #expect(throws: ProofFailure.notIncluded) { try prover.prove(harness.log, partition, .index(0)) }
  }

  @Test func proofsWorkFromAnExportAlone() throws {
    let (harness, settings) = try Fixture.audited(payments: 12, partitions: 2)
    let folder = try DiskFolder()
    _ = try AuditExport(topics: settings.topics, key: settings.verifierKey).write(harness.log, to: folder)
    let archive = try AuditArchive(folder)
    let prover = AuditProver(topics: archive.topics, key: archive.key)
    let partition = TopicPartition("purchases.entitlements", 1)
    let proof = try prover.prove(archive, partition, .index(2))
    #expect(try proof.check(key: settings.verifierKey).record == harness.log.records[partition]?[2].record)
  }

  @Test func rubbishIsNoProof() {
    for text in ["", "\n", "\n\n", "c2sp.org/tlog-proof@v1\n\n", "c2sp.org/tlog-proof@v1\nextra \nindex 0\n\nx", "{}"] {
      #expect(throws: ProofFailure.self) { try InclusionProof(parsing: text) }
    }
  }
}
