import PurchasesContracts
import PurchasesCore

/// The database behind simulated stores: rows, and the books of the stages. It is a value, so that a transaction that is
/// refused leaves nothing and an older state can be put back.
struct SimulatedDatabase {
  struct Books {
    var group: String
    var positions: [TopicPartition: StagePosition] = [:]
    var kept: [TopicPartition: [Unpublished]] = [:]
  }

  private(set) var rows: [RowKey: Row] = [:]
  private(set) var stages: [String: Books] = [:]
  var bug: PlantedBug?

  init(bug: PlantedBug? = nil) { self.bug = bug }

  // MARK: books

  mutating func open(_ stage: String, group: String) throws(StoreFailure) {
    let known = stages[stage, default: Books(group: group)]
    guard known.group == group else {
      throw StoreFailure(.refused, "stage \(stage) of this store belongs to the group \(known.group)")
    }
    stages[stage] = known
  }

  mutating func claim(_ partitions: [TopicPartition], of stage: String) -> [TopicPartition: StagePosition] {
    var claimed: [TopicPartition: StagePosition] = [:]
    for partition in partitions {
      let known = stages[stage]?.positions[partition]
      let raised = StagePosition(epoch: (known?.epoch ?? 0) + 1, next: known?.next)
      stages[stage]?.positions[partition] = raised
      claimed[partition] = raised
    }
    return claimed
  }

  mutating func commit(
    _ transaction: StoreTransaction, published: [TopicPartition: Int64], of stage: String
  ) throws(StoreFailure) {
    for advance in transaction.advances {
      try fence(advance.partition, epoch: advance.epoch, at: .some(advance.from), of: stage)
      guard advance.next > advance.from ?? -1 else { throw StoreFailure(.refused, "a position never moves back") }
    }
    for (partition, next) in published {
      stages[stage]?.kept[partition]?.removeAll { $0.next <= next }
    }
    for advance in transaction.advances {
      stages[stage]?.positions[advance.partition] = StagePosition(epoch: advance.epoch, next: advance.next)
      guard bug != .storeKeepsNothing else { continue }
      stages[stage]?.kept[advance.partition, default: []].append(
        Unpublished(
          partition: advance.partition, from: advance.from, next: advance.next, outgoing: advance.outgoing))
    }
    try apply(transaction.writes)
  }

  /// Only for the bug of that kind.
  mutating func writeWithoutPosition(_ transaction: StoreTransaction) { try? apply(transaction.writes) }

  mutating func amend(
    _ writes: [Write], epochs: [TopicPartition: Int64], of stage: String
  ) throws(StoreFailure) {
    for (partition, epoch) in epochs { try fence(partition, epoch: epoch, at: nil, of: stage) }
    try apply(writes)
  }

  func unpublished(_ partition: TopicPartition, beyond committed: Int64?, of stage: String) -> [Unpublished] {
    (stages[stage]?.kept[partition] ?? []).filter { $0.next > committed ?? -1 }
  }

  private func fence(
    _ partition: TopicPartition, epoch: Int64, at expected: Int64??, of stage: String
  ) throws(StoreFailure) {
    guard let found = stages[stage]?.positions[partition] else {
      throw StoreFailure(.fenced, "\(partition) was never claimed")
    }
    guard found.epoch == epoch || bug == .storeIgnoresEpochs else {
      throw StoreFailure(.fenced, "\(partition) is under epoch \(found.epoch), not \(epoch)")
    }
    if let expected, found.next != expected {
      throw StoreFailure(.fenced, "\(partition) stands elsewhere")
    }
  }

  // MARK: rows

  private mutating func apply(_ writes: [Write]) throws(StoreFailure) {
    // Refuses what no store can hold.
    _ = try WritePlan(writes)
    for write in writes {
      let old = rows[write.key]
      let new: Row?
      switch write {
      case .put(let row): new = row
      case .insert(let row):
        if old != nil { throw .conflict(row.key.table) }
        new = row
      case .merge(let row): new = old.map { Self.merged($0, row) } ?? row
      case .delete: new = nil
      case .exchange(let row, let was): new = old?.values == was ? row : old
      }
      try Self.check(write.key, old, new)
      rows[write.key] = new
    }
  }

  private static func merged(_ old: Row, _ row: Row) -> Row {
    var merged = old
    let least = row.key.table.keepsLeast
    for (index, column) in row.key.table.columns.enumerated() where row.values[index] != .null {
      if least.contains(column.name), let mine = old.values[index].integer, let theirs = row.values[index].integer {
        merged.values[index] = .integer(min(mine, theirs))
      } else {
        merged.values[index] = row.values[index]
      }
    }
    return merged
  }

  /// What the schemas refuse, whoever asks.
  private static func check(_ key: RowKey, _ old: Row?, _ new: Row?) throws(StoreFailure) {
    let table = key.table
    func refuse(_ what: String) -> StoreFailure { StoreFailure(.refused, "table \(table.name): \(what)") }
    if let new {
      for (index, column) in table.columns.enumerated() where new.values[index] == .null && !column.isOptional {
        throw refuse("\(column.name) has a value")
      }
    }
    func integer(_ row: Row?, _ column: String) -> Int64? { row?[column].integer }
    switch table.name {
    case "account":
      if let waiting = integer(new, "waiting"), waiting != 0, waiting != 1 { throw refuse("waiting is 0 or 1") }
      if let old = integer(old, "version"), let new = integer(new, "version"), new < old {
        throw refuse("a version never goes back")
      }
    case "ledger", "change", "answer":
      if table == .ledger, let new,
        integer(new, "amount") ?? 0 <= 0 || (new["debit"].text == "account") == (new["credit"].text == "account")
      {
        throw refuse("a line has two sides")
      }
      if old != nil, new != old { throw refuse("a line stays as it is") }
    case "audit_tree":
      if let old = integer(old, "size"), let new = integer(new, "size"), new < old { throw refuse("a tree grows") }
    default: break
    }
  }

  func fetch(_ needs: Set<Need>) -> Fetched {
    var fetched = Fetched()
    for need in needs {
      switch need {
      case .row(let key): fetched.rows[key] = rows[key]
      case .due(let partition, let instant, let limit):
        fetched.queries[need] = table(.account, orderedBy: "due_at", limit) {
          $0["partition"].integer == Int64(partition)
            && $0["due_at"].integer.map { $0 <= instant.milliseconds } ?? false
        }
      case .outdated(let partition, let version, let limit):
        fetched.queries[need] = table(.account, orderedBy: nil, limit) {
          $0["partition"].integer == Int64(partition) && $0["catalogue_version"] == .text(version)
        }
      case .watch(let instant, let limit):
        fetched.queries[need] = table(.auditWatch, orderedBy: "look_at", limit) {
          $0["look_at"].integer.map { $0 <= instant.milliseconds } ?? false
        }
      }
    }
    return fetched
  }

  /// Rows of a table in order of a column, then of their keys.
  func table(
    _ table: Table, orderedBy column: String? = nil, _ limit: Int = .max, where holds: (Row) -> Bool = { _ in true }
  ) -> [Row] {
    let found = rows.values.filter { $0.key.table == table && holds($0) }
    return Array(
      found.sorted { a, b in
        if let column, let x = a[column].integer, let y = b[column].integer, x != y { return x < y }
        return Self.precedes(a.key.values, b.key.values)
      }.prefix(limit))
  }

  static func precedes(_ a: [Value], _ b: [Value]) -> Bool { InMemoryTables.precedes(a, b) }
}
