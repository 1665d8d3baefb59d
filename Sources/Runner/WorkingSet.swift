import PurchasesContracts

/// What was fetched for a batch, with the batch's own writes laid over, in order. A row that is written twice goes to the
/// store once, as it stood last.
final class WorkingSet: Facts {
  private var rows: [RowKey: Row] = [:]
  private var known: Set<Need> = []
  private var queries: [Need: [Row]] = [:]
  private(set) var writes: [Write] = []
  private var placeOfWrite: [RowKey: Int] = [:]

  func row(_ key: RowKey) -> Row? { rows[key] }

  func rows(_ need: Need) -> [Row] { queries[need] ?? [] }

  /// Those needs that nobody has asked for yet.
  func unknown(_ needs: [Need], into missing: inout Set<Need>) {
    for need in needs where !known.contains(need) { missing.insert(need) }
  }

  func add(_ fetched: Fetched, for needs: Set<Need>) {
    if known.isEmpty { known = needs } else { known.formUnion(needs) }
    if rows.isEmpty, placeOfWrite.isEmpty {
      rows = fetched.rows
      // A batch writes some rows that it reads and some of its own.
      rows.reserveCapacity(2 * needs.count)
      placeOfWrite.reserveCapacity(2 * needs.count)
    } else {
      // What this batch has written is newer than what the store holds.
      for (key, row) in fetched.rows where placeOfWrite[key] == nil { rows[key] = row }
    }
    for (need, found) in fetched.queries {
      queries[need] = found
      for row in found {
        known.insert(.row(row.key))
        if placeOfWrite[row.key] == nil { rows[row.key] = row }
      }
    }
  }

  func apply(_ write: Write) {
    switch write {
    case .put(let row):
      rows[row.key] = row
      guard let place = placeOfWrite[row.key] else { return append(write, row.key) }
      // A row that this batch inserted stays an insert: whether it was there before is the store's to say.
      if case .insert = writes[place] { writes[place] = .insert(row) } else { writes[place] = write }
    case .insert(let row):
      rows[row.key] = row
      append(write, row.key)
    // Rows that other partitions write too are not decided upon from this batch's view of them.
    case .merge, .exchange: writes.append(write)
    case .delete(let key):
      rows[key] = nil
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
