/// The writes of one transaction, sorted out for a store: one group per table and kind, in which no row stands twice.
///
/// To apply the groups in their order has the same effect as to apply the writes one by one, and lets a store move
/// thousands of rows in one statement.
public struct WritePlan: Sendable {
  public enum Kind: Sendable, Hashable { case put, insert, merge, delete, exchange }

  public struct Group: Sendable {
    public let table: Table
    public let kind: Kind
    public fileprivate(set) var rows: [Change]
  }

  public struct Change: Sendable {
    public let key: [Value]
    /// Those of the columns; none for a delete. An exchange has them twice: as they shall be and as they must be still.
    public let values: [Value]
  }

  public private(set) var groups: [Group] = []

  /// - Throws: `conflict` for an insert that an earlier write of the same list makes impossible, `refused` for a value that
  ///   its column can't hold.
  public init(_ writes: [Write]) throws(StoreFailure) {
    var places: [RowKey: Int] = [:]
    places.reserveCapacity(writes.count)
    var pending: [Pending] = []
    pending.reserveCapacity(writes.count)
    for write in writes {
      let key = write.key
      let change = Effect(write)
      try change.check(key)
      if let place = places[key] {
        if let both = try pending[place].effect.followed(by: change, key) {
          pending[place].effect = both
          continue
        }
        // What came before must reach the store on its own.
        flush(pending)
        pending.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
      }
      places[key] = pending.count
      pending.append(Pending(key: key, effect: change))
    }
    flush(pending)
  }

  private mutating func flush(_ pending: [Pending]) {
    let first = groups.count
    var latest = first
    for change in pending {
      let table = change.key.table
      let kind = change.effect.kind
      // Writes come in runs or in turns of a few tables: a search of a short list beats hashing.
      func fits(_ index: Int) -> Bool { groups[index].kind == kind && groups[index].table == table }
      if latest >= groups.count || !fits(latest) {
        if let known = (first..<groups.count).first(where: fits) {
          latest = known
        } else {
          latest = groups.count
          groups.append(Group(table: table, kind: kind, rows: []))
        }
      }
      groups[latest].rows.append(Change(key: change.key.values, values: change.effect.values))
    }
  }

  private struct Pending {
    let key: RowKey
    var effect: Effect
  }
}

extension Write {
  public var key: RowKey {
    switch self {
    case .put(let row), .insert(let row), .merge(let row), .exchange(let row, _): row.key
    case .delete(let key): key
    }
  }
}

/// What the writes so far come to for one row.
private struct Effect {
  let kind: WritePlan.Kind
  var values: [Value]

  init(_ kind: WritePlan.Kind, _ values: [Value]) {
    self.kind = kind
    self.values = values
  }

  init(_ write: Write) {
    switch write {
    case .put(let row): self.init(.put, row.values)
    case .insert(let row): self.init(.insert, row.values)
    case .merge(let row): self.init(.merge, row.values)
    case .delete: self.init(.delete, [])
    case .exchange(let row, let was):
      precondition(was.count == row.values.count, "an exchange names all columns of \(row.key.table.name)")
      self.init(.exchange, row.values + was)
    }
  }

  /// Both effects as one; nil where no single one has the same outcome.
  func followed(by next: Effect, _ key: RowKey) throws(StoreFailure) -> Effect? {
    switch (kind, next.kind) {
    case (.put, .put), (.merge, .put), (.delete, .put): next
    case (.put, .delete), (.merge, .delete), (.delete, .delete): next
    case (.delete, .insert), (.delete, .merge): Effect(.put, next.values)
    case (.insert, .put): Effect(.insert, next.values)
    case (.put, .merge), (.insert, .merge), (.merge, .merge): Effect(kind, merged(with: next.values, key.table))
    case (.put, .insert), (.insert, .insert), (.merge, .insert): throw .conflict(key.table)
    // Whether the row was there before, and what it held, must still be told.
    case (.insert, .delete), (.exchange, _), (_, .exchange): nil
    }
  }

  private func merged(with later: [Value], _ table: Table) -> [Value] {
    let least = table.keepsLeast
    return table.columns.indices.map { index in
      switch (values[index], later[index]) {
      case (let mine, .null): mine
      case (.integer(let mine), .integer(let theirs)) where least.contains(table.columns[index].name):
        .integer(min(mine, theirs))
      case (_, let theirs): theirs
      }
    }
  }

  /// Stores must agree on what they refuse, and PostgreSQL has no U+0000 in text.
  func check(_ key: RowKey) throws(StoreFailure) {
    let table = key.table
    for index in table.key.indices {
      if case .null = key.values[index] { throw .misfit(table, table.key[index]) }
      guard table.key[index].kind.holds(key.values[index]) else { throw .misfit(table, table.key[index]) }
    }
    // A merge leaves out what it does not set; an exchange has the columns twice.
    for index in values.indices {
      let column = index % table.columns.count
      guard table.columns[column].kind.holds(values[index]) else { throw .misfit(table, table.columns[column]) }
    }
  }
}

extension Column.Kind {
  fileprivate func holds(_ value: Value) -> Bool {
    switch (self, value) {
    case (_, .null), (.integer, .integer), (.bytes, .bytes): true
    case (.text, .text(let text)): !text.hasZeroByte
    default: false
    }
  }
}

extension StoreFailure {
  /// An insert met a row that is there.
  public static func conflict(_ table: Table) -> StoreFailure {
    StoreFailure(.conflict, "a row that was to be the first of its key is in table \(table.name) already")
  }

  fileprivate static func misfit(_ table: Table, _ column: Column) -> StoreFailure {
    StoreFailure(
      .refused, "column \(column.name) of table \(table.name) can't hold such a value (\(column.kind) without U+0000)")
  }
}
