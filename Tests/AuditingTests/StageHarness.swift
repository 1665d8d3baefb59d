import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit

/// Does for the auditing stage what the runner does: fetches, decides, writes, publishes. Rows are kept in memory.
final class StageHarness {
  let stage: AuditingStage
  let log: MemoryLog
  private(set) var rows: [RowKey: Row] = [:]
  private var position: [TopicPartition: Int] = [:]
  private(set) var emitted: [(id: String, event: Outgoing, timestamp: Instant)] = []
  /// Merges and exchanges come from other processes too: a test may step in between fetching and writing.
  var beforeScheduledWrites: (StageHarness) -> Void = { _ in }

  init(_ stage: AuditingStage, _ log: MemoryLog) {
    self.stage = stage
    self.log = log
  }

  private struct MemoryFacts: Facts {
    func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
    let rows: [RowKey: Row]
    func row(_ key: RowKey) -> Row? { rows[key] }
    func rows(_ need: Need) -> [Row] {
      guard case .watch(let instant, let limit) = need else { return [] }
      let due = rows.values.filter { row in
        row.key.table == .auditWatch && row["look_at"].integer.map { $0 <= instant.milliseconds } ?? false
      }
      return Array(due.sorted { "\($0.key)" < "\($1.key)" }.prefix(limit))
    }
  }

  /// Only what was asked for, as in life.
  private func facts(_ needs: (any Facts) -> [Need], again: Bool) -> MemoryFacts {
    var known: [RowKey: Row] = [:]
    for _ in 0..<(again ? 3 : 1) {
      for need in needs(MemoryFacts(rows: known)) {
        switch need {
        case .row(let key): known[key] = rows[key]
        case .watch: for row in MemoryFacts(rows: rows).rows(need) { known[row.key] = row }
        default: break
        }
      }
    }
    return MemoryFacts(rows: known)
  }

  func left(_ partition: TopicPartition) -> Int {
    (log.records[partition]?.count ?? 0) - (position[partition] ?? 0)
  }

  /// Works on the next records of a partition as one run.
  func work(_ partition: TopicPartition, _ count: Int) {
    let from = position[partition] ?? 0
    let records = Array((log.records[partition] ?? [])[from..<from + count])
    position[partition] = from + count
    guard let topic = log.topics.topic(named: partition.topic), !records.isEmpty else { return }
    let run = Run(topic: topic, partition: partition, records: records)
    let facts = facts({ stage.needs(run: run, $0) }, again: stage.needsDependOnFacts)
    for decided in stage.decide(run: run, facts, Moment(now: Instant(milliseconds: 0))) {
      let source = records[decided.record]
      var index = 0
      for action in decided.actions {
        switch action {
        case .write(let write): apply(write)
        case .emit(let event):
          let id = Envelope.derivedID(
            source: source.coordinates.description, stage: "auditing", index: index, type: event.type, key: event.key)
          publish(event, id: id, at: source.record.timestamp)
          index += 1
        default: preconditionFailure("auditing only emits and writes")
        }
      }
    }
  }

  /// All there is, in runs of random lengths, partitions in random order.
  func workAll(_ random: inout SeededRandom, longest: Int) {
    while true {
      let partitions = log.records.keys.filter { partition in
        left(partition) > 0 && (log.topics.topic(named: partition.topic).map { Topic.audited.contains($0) } ?? false)
      }
      guard let partition = partitions.sorted().randomElement(using: &random) else { return }
      work(partition, Int.random(in: 1...min(longest, left(partition)), using: &random))
    }
  }

  /// One round of what the clock brings; false when nothing was due.
  @discardableResult
  func schedule(now: Instant, workedOff: Instant? = nil, crashBeforeWrites: Bool = false) -> Bool {
    let workedOff = workedOff ?? now
    var due: [Scheduled] = []
    for partition in log.records.keys.sorted() {
      let facts = facts({ _ in stage.scheduleNeeds(partition, now: now, workedOff: workedOff) }, again: false)
      due += stage.schedule(partition, facts, now: now, workedOff: workedOff)
    }
    for scheduled in due {
      if let event = scheduled.event { publish(event, id: scheduled.id, at: scheduled.timestamp) }
    }
    guard !crashBeforeWrites else { return !due.isEmpty }
    beforeScheduledWrites(self)
    for write in due.flatMap(\.writes) { apply(write) }
    return !due.isEmpty
  }

  func settle(now: Instant) {
    var rounds = 0
    while schedule(now: now) {
      rounds += 1
      precondition(rounds < 100, "scheduling never comes to rest")
    }
  }

  func apply(_ write: Write) {
    switch write {
    case .put(let row), .insert(let row): rows[row.key] = row
    case .delete(let key): rows[key] = nil
    case .exchange(let row, let was): if rows[row.key]?.values == was { rows[row.key] = row }
    case .merge(let row):
      guard var old = rows[row.key] else {
        rows[row.key] = row
        return
      }
      for (index, column) in row.key.table.columns.enumerated() {
        guard let new = row.values[index].integer else { continue }
        let keepsLeast = row.key.table.keepsLeast.contains(column.name)
        let kept = old.values[index].integer
        old.values[index] = .integer(keepsLeast ? min(kept ?? new, new) : new)
      }
      rows[row.key] = old
    }
  }

  private func publish(_ event: Outgoing, id: String, at timestamp: Instant) {
    emitted.append((id, event, timestamp))
    let envelope = Envelope(
      id: id, source: "/purchases/auditing", type: event.type, subject: event.subject, time: timestamp)
    log.append(
      Record(
        key: event.key.map { Array($0.utf8) }, value: event.data, headers: envelope.headers, timestamp: timestamp),
      to: event.topic)
  }

  var anomalies: [AuditAnomaly] {
    emitted.compactMap { item in
      guard case .anomaly(let anomaly)? = try? AuditEvent(type: item.event.type, data: item.event.data) else {
        return nil
      }
      return anomaly
    }
  }

  var checkpoints: [AuditCheckpointed] {
    emitted.compactMap { item in
      guard case .checkpointed(let event)? = try? AuditEvent(type: item.event.type, data: item.event.data) else {
        return nil
      }
      return event
    }
  }

  /// The store's reading end.
  var reader: InMemoryStoreReader {
    let reader = InMemoryStoreReader()
    for row in rows.values { reader.put(row) }
    return reader
  }
}

enum Fixture {
  static let seed: [UInt8] = (0..<32).map { $0 &* 7 }

  static func key() throws -> Ed25519PrivateKey {
    guard let key = Ed25519PrivateKey(seed: seed) else { throw Unmet("32 bytes are a seed") }
    return key
  }

  static func settings(
    partitions: Int32 = 3, limits: AuditLimits = AuditLimits()
  ) throws -> AuditSettings {
    try AuditSettings(
      topics: TopicSettings(partitions: partitions), name: "example.com/purchases", key: try key(), limits: limits)
  }

  static var fewLeaves: AuditLimits {
    var limits = AuditLimits()
    limits.leavesPerCheckpoint = 20
    return limits
  }

  /// Later than anything in the log.
  static let late = Instant(milliseconds: 1_800_000_000_000 + 3_000_000)

  /// A pipeline's log with its audit, everything signed for.
  static func audited(
    payments: Int = 40, partitions: Int32 = 3, seed: UInt64 = 1
  ) throws -> (harness: StageHarness, settings: AuditSettings) {
    let settings = try settings(partitions: partitions, limits: fewLeaves)
    let pipeline = SmallPipeline(settings.topics, payments: payments)
    let harness = StageHarness(AuditingStage(settings), pipeline.log)
    var random = SeededRandom(seed: seed)
    harness.workAll(&random, longest: 50)
    harness.settle(now: late)
    return (harness, settings)
  }
}
