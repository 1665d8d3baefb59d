import PurchasesContracts

/// What was fetched for a batch. All lanes of a batch read the same one; nobody changes it while they decide.
final class FetchedFacts {
  fileprivate var rows: [RowKey: Row] = [:]
  fileprivate var queries: [Need: [Row]] = [:]

  func add(_ fetched: Fetched) {
    if rows.isEmpty { rows = fetched.rows } else { rows.merge(fetched.rows) { _, new in new } }
    for (need, found) in fetched.queries {
      queries[need] = found
      for row in found { rows[row.key] = row }
    }
  }
}

/// What was fetched, with the writes made since laid over, in order. A row that is written twice goes to the store once,
/// as it stood last.
final class WorkingSet: Facts {
  private let fetched: FetchedFacts
  private var known: Set<Need> = []
  /// Rows as this batch leaves them; nil: deleted.
  private var written: [RowKey: Row?] = [:]
  private(set) var writes: [Write] = []
  private var placeOfWrite: [RowKey: Int] = [:]

  private let answers: [AppStoreQuestion: AppStoreAnswer]

  init(over fetched: FetchedFacts = FetchedFacts(), answers: [AppStoreQuestion: AppStoreAnswer] = [:]) {
    self.fetched = fetched
    self.answers = answers
  }

  func row(_ key: RowKey) -> Row? {
    if let row = written[key] { return row }
    return fetched.rows[key]
  }

  func rows(_ need: Need) -> [Row] { fetched.queries[need] ?? [] }

  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { answers[question] }

  /// Those needs that nobody has asked for yet.
  func unknown(_ needs: [Need], into missing: inout Set<Need>) {
    for need in needs where !known.contains(need) { missing.insert(need) }
  }

  /// What was asked for is there now, or is known not to be.
  func know(_ needs: Set<Need>) {
    if known.isEmpty { known = needs } else { known.formUnion(needs) }
    for need in needs {
      for row in fetched.queries[need] ?? [] { known.insert(.row(row.key)) }
    }
    written.reserveCapacity(needs.count)
    placeOfWrite.reserveCapacity(needs.count)
  }

  func apply(_ write: Write) {
    switch write {
    case .put(let row):
      written[row.key] = .some(row)
      guard let place = placeOfWrite[row.key] else { return append(write, row.key) }
      // A row that this batch inserted stays an insert: whether it was there before is the store's to say.
      if case .insert = writes[place] { writes[place] = .insert(row) } else { writes[place] = write }
    case .insert(let row):
      written[row.key] = .some(row)
      append(write, row.key)
    // Rows that other partitions write too are not decided upon from this batch's view of them.
    case .merge, .exchange: writes.append(write)
    case .delete(let key):
      written[key] = .some(nil)
      if let place = placeOfWrite[key], case .put = writes[place] {
        writes[place] = write
      } else {
        append(write, key)
      }
    }
  }

  private func append(_ write: Write, _ key: RowKey) {
    placeOfWrite[key] = writes.count
    writes.append(write)
  }
}
