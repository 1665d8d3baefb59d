import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

@testable import PurchasesAuditing

@Suite struct VerifierTests {
  private let partition = TopicPartition("purchases.received", 1)

  private func verify(
    _ log: MemoryLog, _ settings: AuditSettings, store: InMemoryStoreReader? = nil, isSealed: Bool = false
  ) throws -> AuditReport {
    try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(log, store: store, isSealed: isSealed)
  }

  @Test func anHonestLogHolds() throws {
    let (harness, settings) = try Fixture.audited()
    let report = try verify(harness.log, settings, store: harness.reader, isSealed: true)
    #expect(report.findings == [])
    #expect(report.holds)
    #expect(report.checkedCompleteness)
    #expect(report.trees.count == 3 * Topic.audited.count)
    #expect(report.records == report.signed)
    #expect(report.records > 200)
    #expect(report.notWorkedOff == 0)
    #expect(report.summary?.size ?? 0 > 10)
    let row = try #require(harness.rows[TreeState.key(partition)])
    #expect(report.trees.first { $0.partition == partition }?.root == row["root"].text)
  }

  /// Each way to tamper with records, at each place of a partition.
  @Test func editsDropsSwapsDuplicatesInsertionsAndTruncationsAreFoundEverywhere() throws {
    let (harness, settings) = try Fixture.audited()
    let original = try #require(harness.log.records[partition])
    #expect(original.count > 10)
    func check(_ what: String, _ place: Int, _ change: (inout [StoredRecord]) -> Void) throws {
      let log = harness.log.copy()
      var records = original
      change(&records)
      log.records[partition] = records
      let report = try verify(log, settings)
      #expect(!report.holds, "\(what) at \(place)")
      let isNamed = report.findings.contains { $0.place.hasPrefix("purchases.received/1") }
      #expect(isNamed, "\(what) at \(place): \(report.findings)")
    }
    func renumbered(_ records: [StoredRecord]) -> [StoredRecord] {
      records.enumerated().map { index, stored in
        StoredRecord(
          coordinates: Coordinates(topic: partition.topic, partition: 1, offset: Int64(index)), record: stored.record)
      }
    }
    for place in original.indices {
      try check("edit", place) { records in
        var record = records[place].record
        record.value?.append(0)
        records[place] = StoredRecord(coordinates: records[place].coordinates, record: record)
      }
      try check("timestamp", place) { records in
        var record = records[place].record
        record.timestamp.milliseconds += 1
        records[place] = StoredRecord(coordinates: records[place].coordinates, record: record)
      }
      try check("drop", place) { $0.remove(at: place) }
      try check("drop and close the gap", place) { records in
        records.remove(at: place)
        records = renumbered(records)
      }
      try check("duplicate", place) { records in
        records.insert(records[place], at: place)
        records = renumbered(records)
      }
      try check("truncate", place) { $0.removeSubrange(place...) }
      if place > 0 {
        try check("swap", place) { records in
          let (a, b) = (records[place - 1], records[place])
          records[place - 1] = StoredRecord(coordinates: a.coordinates, record: b.record)
          records[place] = StoredRecord(coordinates: b.coordinates, record: a.record)
        }
      }
    }
  }

  @Test func aForgedRecordAtTheEndIsUnsignedAndDiffersFromTheStore() throws {
    let (harness, settings) = try Fixture.audited()
    let log = harness.log.copy()
    log.append(Record(key: Array("Sandbox/1".utf8), value: [1], timestamp: Fixture.late), to: .received)
    let report = try verify(log, settings, isSealed: true)
    #expect(report.findings.map(\.kind) == [.unsigned])
    // In a running log it is merely not signed yet, and not worked off.
    let live = try verify(log, settings)
    #expect(live.findings == [])
    #expect(live.signed == live.records - 1)
    #expect(live.notWorkedOff == 1)
  }

  @Test func theStoresTablesAreHeldAgainstTheLog() throws {
    let (harness, settings) = try Fixture.audited()
    let key = TreeState.key(partition)
    func check(_ what: String, _ rowKey: RowKey, _ change: (inout Row) -> Void) throws {
      let reader = harness.reader
      var row = try #require(harness.rows[rowKey])
      change(&row)
      reader.put(row)
      let report = try verify(harness.log, settings, store: reader)
      #expect(report.findings.map(\.kind) == [.storeDiffers], "\(what)")
    }
    try check("root", key) { $0.values[$0.key.table.index("root")] = .text("00") }
    try check("size", key) { $0.values[$0.key.table.index("size")] = .integer(3) }
    // A tree that is right in itself, of other records.
    var other = TreeState(partition)
    for _ in 0..<5 { other.frontier.append(MerkleTree.leafHash([1])) }
    try check("another tree", key) { $0 = other.row }
    let tile = LeafTile.key(partition, index: 0)
    try check("leaf", tile) { row in
      guard var bytes = row["hashes"].bytes else { return }
      bytes[70] ^= 1
      row.values[row.key.table.index("hashes")] = .bytes(bytes)
    }
    try check("offset", tile) { row in
      guard var bytes = row["offsets"].bytes else { return }
      bytes[23] ^= 1
      row.values[row.key.table.index("offsets")] = .bytes(bytes)
    }
    try check("tile", tile) { $0.values[$0.key.table.index("hashes")] = .bytes([]) }
    // Records that are gone, and no checkpoint knew them: the store still does.
    let log = harness.log.copy()
    log.records[partition]?.removeLast()
    let report = try verify(log, settings, store: harness.reader)
    #expect(report.findings.contains { $0.kind == .storeDiffers })
  }

  @Test func checkpointsCanNeitherBeForgedNorMovedNorContradicted() throws {
    let (harness, settings) = try Fixture.audited()
    let other = try AuditSettings(
      topics: settings.topics, name: "example.com/purchases",
      key: try #require(Ed25519PrivateKey(seed: [UInt8](repeating: 9, count: 32))))
    func audit(_ change: (inout AuditCheckpointed) -> Void) throws -> AuditReport {
      let log = harness.log.copy()
      for key in log.records.keys where key.topic == "purchases.audit" {
        for (index, stored) in (log.records[key] ?? []).enumerated() {
          guard stored.record.headerText("ce_type") == "audit.checkpointed.v1",
            case .checkpointed(var event) = try AuditEvent(
              type: .auditCheckpointed, data: stored.record.value ?? []), event.scope == .partition(partition)
          else { continue }
          change(&event)
          var record = stored.record
          record.value = AuditEvent.checkpointed(event).data
          log.records[key]?[index] = StoredRecord(coordinates: stored.coordinates, record: record)
          return try verify(log, settings)
        }
      }
      Issue.record("no checkpoint of \(partition)")
      return AuditReport()
    }
    #expect(try audit { _ in }.findings == [])
    #expect(try audit { $0.size += 1 }.findings.map(\.kind) == [.unreadableCheckpoint])
    #expect(try audit { $0.root = String($0.root.reversed()) }.findings.map(\.kind) == [.unreadableCheckpoint])
    #expect(
      try audit { $0.scope = .partition(TopicPartition("purchases.received", 0)) }.findings.map(\.kind)
        == [.badSignature])
    #expect(
      try audit { event in
        let note = other.signed(
          origin: other.names.origin(of: partition), size: event.size,
          root: Hash256(hex: event.root) ?? MerkleTree.emptyRoot)
        event.note = String(decoding: note.encoded, as: UTF8.self)
      }.findings.map(\.kind) == [.badSignature])
    // Signed by the right key, and still not what the log holds.
    #expect(
      try audit { event in
        event.root = MerkleTree.emptyRoot.hex
        let note = settings.signed(
          origin: settings.names.origin(of: partition), size: event.size, root: MerkleTree.emptyRoot)
        event.note = String(decoding: note.encoded, as: UTF8.self)
      }.findings.map(\.kind) == [.rootDiffers])
  }

  @Test func theSummaryHasNoGapsAndOnePast() throws {
    let (harness, settings) = try Fixture.audited()
    let audit = harness.log.records.keys.filter { $0.topic == "purchases.audit" }
    var places: [(TopicPartition, Int)] = []
    for key in audit {
      for (index, stored) in (harness.log.records[key] ?? []).enumerated()
      where stored.record.key == Array("example.com/purchases".utf8) { places.append((key, index)) }
    }
    #expect(places.count >= 1)
    let (key, index) = try #require(places.first)
    var log = harness.log.copy()
    let stored = try #require(log.records[key]?[index])
    guard case .checkpointed(var event) = try AuditEvent(type: .auditCheckpointed, data: stored.record.value ?? []),
      case .summary(var added) = event.scope
    else {
      Issue.record("the summary's key is its own")
      return
    }
    added.swapAt(0, 1)
    event.scope = .summary(added: added)
    var record = stored.record
    record.value = AuditEvent.checkpointed(event).data
    log.records[key]?[index] = StoredRecord(coordinates: stored.coordinates, record: record)
    #expect(try verify(log, settings).findings.first?.kind == .rootDiffers)
    added.removeLast()
    event.scope = .summary(added: added)
    record.value = AuditEvent.checkpointed(event).data
    log = harness.log.copy()
    log.records[key]?[index] = StoredRecord(coordinates: stored.coordinates, record: record)
    #expect(try verify(log, settings).findings.first?.kind == .summaryBroken)
  }

  @Test func rubbishInTheAuditTopicIsNamed() throws {
    let (harness, settings) = try Fixture.audited()
    let log = harness.log.copy()
    let place = log.append(Record(key: nil, value: [0xff], timestamp: Fixture.late), to: .audit)
    let report = try verify(log, settings)
    #expect(report.findings.map(\.kind) == [.unreadableCheckpoint])
    #expect(report.findings.first?.place == place.description)
  }

  @Test func aMissingBeginningAndAMissingPartitionAreFound() throws {
    final class Late: AuditedLog {
      let log: MemoryLog
      init(_ log: MemoryLog) { self.log = log }
      var isComplete: Bool { true }
      func bounds(of topic: String) throws(LogFailure) -> [Int32: OffsetBounds] {
        var bounds = try log.bounds(of: topic)
        if topic == "purchases.received" { bounds[1] = OffsetBounds(start: 4, end: bounds[1]?.end ?? 4) }
        if topic == "purchases.verified" { bounds[1] = nil }
        return bounds
      }
      func read(_ partition: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord] {
        try log.read(partition, from: offset, max: max)
      }
      func workedOff(_ partition: TopicPartition) throws(LogFailure) -> Int64? { try log.workedOff(partition) }
    }
    let (harness, settings) = try Fixture.audited()
    let report = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(Late(harness.log))
    let kinds = Dictionary(grouping: report.findings, by: \.kind)
    #expect(kinds[.beginningGone]?.map(\.place) == ["purchases.received/1"])
    #expect(kinds[.truncated]?.map(\.place) == ["purchases.verified/1"])
  }
}

/// Completeness: every record's outputs, with index and count.
@Suite struct CompletenessTests {
  private let settings: AuditSettings
  private let log: MemoryLog

  init() throws {
    settings = try Fixture.settings(partitions: 2)
    log = MemoryLog(settings.topics)
  }

  private func add(
    _ topic: Topic, from origin: Coordinates? = nil, _ index: Int = 0, of count: Int = 1,
    _ type: EventType = .factNoted,
    subject: String? = nil
  ) -> Coordinates {
    let envelope = Envelope(
      id: "x", source: "/test", type: type, subject: subject,
      origin: origin.map { Envelope.Origin(coordinates: $0, index: index, count: count) })
    return log.append(
      Record(key: Array("k".utf8), value: [], headers: envelope.headers, timestamp: Fixture.late), to: topic)
  }

  private func report(workedOff: Bool = true) throws -> AuditReport {
    if workedOff { for partition in log.records.keys { log.committed[partition] = log.end(partition) } }
    return try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(log)
  }

  @Test func aRecordThatWasWorkedOffAndHasNoOutputIsAHole() throws {
    _ = add(.verified, from: add(.received))
    let hole = add(.received)
    let findings = try report().findings
    #expect(findings.map(\.kind) == [.outputMissing])
    #expect(findings.first?.place == hole.description)
  }

  @Test func aRecordThatIsStillToBeWorkedOffIsNoHole() throws {
    let first = add(.received)
    _ = add(.verified, from: first)
    log.committed[first.topicPartition] = first.offset + 1
    _ = add(.received)
    let report = try report(workedOff: false)
    #expect(report.findings == [])
    #expect(report.notWorkedOff == 1)
  }

  @Test func parkedAndQuarantinedCountAndTheParkedMustComeBack() throws {
    let received = add(.received)
    let parked = add(.parked, from: received)
    #expect(try report().findings.map(\.place) == [parked.description])
    _ = add(.verified, from: parked)
    #expect(try report().findings == [])
  }

  @Test func aVerifiedPurchaseIsOwnedOrWaitsForItsOwner() throws {
    _ = add(.verified, from: add(.received), 0, of: 1, .purchaseVerified)
    #expect(try report().findings == [], "a notification may speak of no purchase at all")
    let verified = add(.verified, from: add(.received), 0, of: 1, .purchaseVerified, subject: "Sandbox/1")
    #expect(try report().findings.map(\.place) == [verified.description])
    _ = add(.owned, from: verified)
    #expect(try report().findings == [])
  }

  @Test func aSetOfOutputsIsWholeOrAFinding() throws {
    let received = add(.received)
    _ = add(.verified, from: received, 0, of: 2)
    let findings = try report().findings
    #expect(findings.map(\.kind) == [.outputsIncomplete])
    #expect(findings.first?.place == received.description)
    _ = add(.verified, from: received, 1, of: 2)
    #expect(try report().findings == [])
  }

  @Test func theSameIndexTwiceDoesNotMakeASetWhole() throws {
    let received = add(.received)
    _ = add(.verified, from: received, 0, of: 2)
    _ = add(.verified, from: received, 0, of: 2)
    #expect(try report().findings.map(\.kind) == [.outputsIncomplete])
  }

  @Test func anOutputOfNothingIsAFinding() throws {
    _ = add(.verified, from: add(.received))
    let ghost = Coordinates(topic: "purchases.received", partition: 0, offset: 0)
    let end = log.end(TopicPartition("purchases.received", 0))
    let other = Coordinates(topic: "purchases.received", partition: 1, offset: 0)
    // One partition has the record; the other is empty, so that nothing can come of it.
    let missing = end > 0 ? other : ghost
    _ = add(.verified, from: missing)
    let settingsSealed = try AuditVerifier(topics: settings.topics, key: settings.verifierKey).verify(
      log, isSealed: true)
    #expect(settingsSealed.findings.contains { $0.kind == .outputStray && $0.place == missing.description })
    _ = add(.verified, from: Coordinates(topic: "elsewhere", partition: 0, offset: 0))
    #expect(try report().findings.contains { $0.kind == .outputStray })
  }

  @Test func whatAllTogetherStoodBeforeIsFoundAgainInABiggerLog() throws {
    let (harness, settings) = try Fixture.audited(payments: 200)
    let verifier = AuditVerifier(topics: settings.topics, key: settings.verifierKey)
    #expect(try verifier.verify(harness.log).findings == [])
    // Take away the outputs of one received record wherever they are: the trees tell, and so does the hole.
    let received = try #require(harness.log.records[TopicPartition("purchases.received", 0)])
    let source = received[5].coordinates
    for (partition, records) in harness.log.records {
      harness.log.records[partition] = records.filter { stored in
        !(stored.record.headerText("ce_origintopic") == source.topic
          && stored.record.headerText("ce_originpartition") == "0"
          && stored.record.headerText("ce_originoffset") == String(source.offset)
          || stored.record.headerText("purchases-quarantine-offset") == String(source.offset)
            && stored.record.headerText("purchases-quarantine-partition") == "0")
      }
    }
    let kinds = Set(try verifier.verify(harness.log).findings.map(\.kind))
    #expect(kinds.contains(.outputMissing))
    #expect(kinds.contains(.rootDiffers) || kinds.contains(.truncated))
  }
}
