import PurchasesContracts
import PurchasesCore

/// Tables in memory, as a store keeps them.
public final class InMemoryTables {
  private var tables: [String: [RowKey: Row]] = [:]

  public init() {}

  public func row(_ key: RowKey) -> Row? { tables[key.table.name]?[key] }

  /// Puts a row there as if another hand had done it.
  public func put(_ row: Row) { apply(.put(row)) }

  /// In no order.
  public func unordered(_ table: Table) -> [Row] { tables[table.name].map { Array($0.values) } ?? [] }

  /// In order of key.
  public func rows(_ table: Table) -> [Row] {
    unordered(table).sorted { Self.precedes($0.key.values, $1.key.values) }
  }

  /// Accounts that a query of the table `account` names, in the order that the port promises.
  func accounts(_ need: Need) -> [Row] {
    switch need {
    case .row, .watch: return []
    case .due(let partition, let instant, let limit):
      let (place, due) = (Table.account.index("partition"), Table.account.index("due_at"))
      let rows = unordered(.account).filter {
        guard let at = $0.values[due].integer else { return false }
        return at <= instant.milliseconds && $0.values[place].integer == Int64(partition)
      }
      return Array(
        rows.sorted {
          let (a, b) = ($0.values[due].integer ?? 0, $1.values[due].integer ?? 0)
          return a == b ? Self.precedes($0.key.values, $1.key.values) : a < b
        }.prefix(limit))
    case .outdated(let partition, let version, let limit):
      let outdated = unordered(.account).filter {
        $0["partition"].integer == Int64(partition) && $0["catalogue_version"] == .text(version)
      }
      return Array(outdated.sorted { Self.precedes($0.key.values, $1.key.values) }.prefix(limit))
    }
  }

  /// An insert that meets a row is a mistake of the stage that wrote it, where one thread does all the work.
  func apply(_ write: Write) {
    let name = write.key.table.name
    switch write {
    case .put(let row): tables[name, default: [:]][row.key] = row
    case .insert(let row):
      let replaced = tables[name, default: [:]].updateValue(row, forKey: row.key)
      precondition(replaced == nil, "a row of \(name) is inserted twice")
    case .merge(let row):
      guard var known = self.row(row.key) else {
        tables[name, default: [:]][row.key] = row
        return
      }
      for index in row.values.indices where row.values[index] != .null { known.values[index] = row.values[index] }
      tables[name, default: [:]][row.key] = known
    case .delete(let key): tables[name]?[key] = nil
    case .exchange(let row, let was): if self.row(row.key)?.values == was { tables[name]?[row.key] = row }
    }
  }

  static func precedes(_ a: [Value], _ b: [Value]) -> Bool {
    for (a, b) in zip(a, b) where a != b {
      switch (a, b) {
      case (.integer(let a), .integer(let b)): return a < b
      case (.text(let a), .text(let b)): return a.utf8.lexicographicallyPrecedes(b.utf8)
      default: return false
      }
    }
    return a.count < b.count
  }
}

/// Runs one stage record by record as the runner does: it may look at the rows that it named, and at no others.
public final class InMemoryStage {
  public let stage: any Stage
  public let tables: InMemoryTables
  public let topics: TopicSettings

  private final class Known: Facts {
    func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
    var rows: [RowKey: Row?] = [:]
    var queries: [Need: [Row]] = [:]
    var isComplete = false

    func row(_ key: RowKey) -> Row? {
      guard let known = rows[key] else {
        precondition(!isComplete, "the stage looks at a row of \(key.table.name) that it didn't name")
        return nil
      }
      return known
    }

    func rows(_ need: Need) -> [Row] {
      guard let known = queries[need] else {
        precondition(!isComplete, "the stage asks what it didn't name")
        return []
      }
      return known
    }
  }

  public init(_ stage: any Stage, tables: InMemoryTables = InMemoryTables(), topics: TopicSettings = TopicSettings()) {
    self.stage = stage
    self.tables = tables
    self.topics = topics
  }

  /// What a record leads to; the tables have its writes when it returns.
  public func actions(_ stored: StoredRecord, now: Instant? = nil) -> [Action] {
    let envelope: Result<Envelope, EnvelopeFailure>
    do throws(EnvelopeFailure) { envelope = .success(try Envelope(reading: stored.record)) } catch {
      envelope = .failure(error)
    }
    let topic = topics.topic(named: stored.coordinates.topic) ?? stage.inputs[0]
    let incoming = Incoming(stored: stored, topic: topic, envelope: envelope).read(by: stage)
    let known = Known()
    look(known) { stage.needs(incoming, $0) }
    let actions = stage.decide(incoming, known, Moment(now: now ?? stored.record.timestamp))
    for action in actions { if case .write(let write) = action { tables.apply(write) } }
    return actions
  }

  private func look(_ known: Known, _ needs: (any Facts) -> [Need]) {
    // As often as the runner asks.
    for _ in 0..<8 {
      var isNew = false
      for need in needs(known) {
        if case .row(let key) = need {
          guard known.rows[key] == nil else { continue }
          known.rows[key] = .some(tables.row(key))
        } else {
          guard known.queries[need] == nil else { continue }
          known.queries[need] = tables.accounts(need)
        }
        isNew = true
      }
      guard isNew, stage.needsDependOnFacts else { break }
    }
    known.isComplete = true
  }

  /// The events that a record leads to, with the ids that the runner gives them.
  public func feed(_ stored: StoredRecord) -> [ProducedRecord] { records(stored, actions(stored)) }

  public func records(_ stored: StoredRecord, _ actions: [Action]) -> [ProducedRecord] {
    var records: [ProducedRecord] = []
    let source = stored.record.headerText("ce_id") ?? stored.coordinates.description
    var index = 0
    for action in actions {
      switch action {
      case .emit(let event):
        let envelope = Envelope(
          id: Envelope.derivedID(
            source: source, stage: stage.name.rawValue, index: index, type: event.type, key: event.key),
          source: "/purchases/\(stage.name.rawValue)", type: event.type, subject: event.subject,
          time: stored.record.timestamp)
        records.append(
          ProducedRecord(
            topic: topics.name(event.topic),
            record: Record(
              key: event.key.map { Array($0.utf8) }, value: event.data, headers: envelope.headers,
              timestamp: stored.record.timestamp)))
        index += 1
      case .park, .quarantine: index += 1
      case .write, .stop: break
      }
    }
    return records
  }

  /// What the clock brings to a partition.
  public func scheduled(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [ProducedRecord] {
    let known = Known()
    look(known) { _ in stage.scheduleNeeds(partition, now: now, workedOff: workedOff) }
    return stage.schedule(partition, known, now: now, workedOff: workedOff).compactMap { scheduled in
      guard let event = scheduled.event else { return nil }
      let envelope = Envelope(
        id: scheduled.id, source: "/purchases/\(stage.name.rawValue)", type: event.type, time: scheduled.timestamp)
      return ProducedRecord(
        topic: topics.name(event.topic),
        record: Record(
          key: event.key.map { Array($0.utf8) }, value: event.data, headers: envelope.headers,
          timestamp: scheduled.timestamp))
    }
  }
}

/// Gives records their places, as a log does.
public struct InMemoryPlaces {
  public let partitions: Int32
  private var next: [TopicPartition: Int64] = [:]

  public init(partitions: Int32) { self.partitions = partitions }

  public mutating func place(_ produced: ProducedRecord) -> StoredRecord {
    let partition =
      produced.partition ?? produced.record.key.map { Partitioner.partition(forKey: $0, of: partitions) } ?? 0
    let place = TopicPartition(produced.topic, partition)
    let offset = next[place, default: 0]
    next[place] = offset + 1
    return StoredRecord(
      coordinates: Coordinates(topic: produced.topic, partition: partition, offset: offset), record: produced.record)
  }
}
