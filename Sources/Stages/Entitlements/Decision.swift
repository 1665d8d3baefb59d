import PurchasesContracts
import PurchasesCore

/// What one record of `owned` leads to.
struct Decision {
  let record: Incoming
  let facts: any Facts
  /// The one that the account in hand is decided by.
  var catalogue: Catalogue
  var actions: [Action] = []
  /// Events among the actions so far: an event's id has its place in it.
  var emitted = 0
  /// Of the account that was changed last.
  private(set) var version: Int64 = 0

  init(record: Incoming, facts: any Facts, catalogue: Catalogue) {
    self.record = record
    self.facts = facts
    self.catalogue = catalogue
  }

  // MARK: Records of one account

  mutating func decide(
    _ subject: Subject, _ statements: AccountState.Statements, byTransfer: Bool
  ) throws(FieldFailure) {
    let isAnswered = statements.reportedProof.map { self.isAnswered(subject.permitKey($0)) } ?? true
    let cause = Cause(
      event: sourceID, proof: statements.reportedProof ?? statements.transactions.first?.rank.digest,
      transaction: (statements.reported ?? statements.transactions.first)?.transaction)
    let (catalogue, now) = (catalogue, record.timestamp)
    let (missing, merge) = try changeKnowing(subject, cause) { state, relearned in
      let isAnswered = isAnswered || statements.reportedProof.map { relearned.answer($0) } ?? false
      let new = statements.transactions.filter {
        (!$0.items.isEmpty || !catalogue.knows(Purchase($0)))
          && state.facts[$0.businessKey] == nil
      }
      let changes = state.apply(
        statements, at: now, catalogue, isAnswered: isAnswered, byTransfer: byTransfer)
      return (changes, (new.isEmpty ? nil : state.missing(new, catalogue), state.merge))
    }
    // Decided under the old account, and read after its merge: it goes where the others went.
    if let merge {
      let chains = statements.transactions.map(\.originalTransaction) + statements.renewals.map(\.originalTransaction)
      for chain in Set(chains).sorted() { handOver(chain, subject, merge) }
    }
    // It waits in the account's row. The copy is the alarm: a person must teach the catalogue.
    if let missing {
      let reason =
        "product \(missing.product.text) is not in the catalogue (version \(catalogue.version)) as "
        + "\(missing.type.apple): the purchase waits for it"
      actions.append(.quarantine(reason: reason, alarm: nil))
    }
  }

  mutating func remove(_ subject: Subject, _ chain: OriginalTransactionID, _ proof: String?) throws(FieldFailure) {
    let (catalogue, now) = (catalogue, record.timestamp)
    try change(subject, Cause(event: sourceID, proof: proof)) { state in
      (state.remove(chain: chain, at: now, catalogue), ())
    }
  }

  /// An answer that depends on nothing but whether there is one already.
  mutating func answer(_ subject: Subject, _ permit: Permit) throws(FieldFailure) {
    let row = facts.row(subject.permitKey(permit.proof))
    // A later verdict replaces a pending one and never the other way round.
    if let row, row["status"].text != Permit.Status.pending.rawValue || permit.status == .pending { return }
    guard permit.status == .finishable else {
      write(permit, subject)
      // So that whoever lists accounts finds the answer.
      try change(subject, Cause(event: sourceID)) { _ in ([], ()) }
      return
    }
    let cause = Cause(
      event: sourceID, proof: permit.attempt == nil ? permit.proof : nil, transaction: permit.transaction)
    try change(subject, cause) { _ in ([.permit(permit)], ()) }
  }

  // MARK: Ticks

  /// Rows that are due and rows that an older catalogue decided last, each account once, in the order in which they were
  /// found.
  mutating func tick(_ tick: ClockTicked, _ rows: [[Row]], _ history: CatalogueHistory) {
    var done: Set<RowKey> = []
    for (index, list) in rows.enumerated() {
      for row in list where done.insert(row.key).inserted {
        do throws(FieldFailure) {
          var account = try AccountRow(row)
          let subject = Subject(environment: account.environment, account: account.account)
          catalogue = history.inForce(at: tick.instant, notBefore: account.catalogueVersion)
          var changes = relearn(&account, at: tick.instant)
          if index == 0 { changes += account.state.tick(tick.instant, catalogue) }
          publish(changes, &account, subject, Cause(event: sourceID), asOf: max(account.state.clock, tick.instant))
          write(account)
        } catch { setAside(row, error, history.inForce(at: tick.instant)) }
      }
    }
  }

  /// One tick more, of the same instant: more is due than one settles. An ordinary output, so that a replay finds it in the
  /// log, and records that came in meanwhile get in between.
  mutating func goOn(_ tick: ClockTicked, _ last: Row) {
    guard let subject = Subject(last) else { return }
    let next = OwnedEvent.ticked(
      ClockTicked(
        environment: subject.environment, account: subject.account, instant: tick.instant,
        catalogueVersion: tick.catalogueVersion, limit: tick.limit, dueAt: tick.dueAt))
    actions.append(.emit(Outgoing(topic: .owned, key: next.key, type: next.type, data: next.data)))
    emitted += 1
  }

  /// A row that can't be read is due no more, or it would bring tick after tick and hold up the others. A record about the
  /// account meets it again, and people are told now.
  private mutating func setAside(_ row: Row, _ failure: FieldFailure, _ catalogue: Catalogue) {
    var row = row
    row.values[Table.account.index("catalogue_version")] = .text(catalogue.version)
    row.values[Table.account.index("due_at")] = .null
    row.values[Table.account.index("waiting")] = .integer(0)
    actions.append(.write(.put(row)))
    actions.append(
      .quarantine(reason: "the row of an account that is due can't be read: \(failure)", alarm: .unreadable))
    emitted += 1
  }

  // MARK: Doing

  var sourceID: String { record.event?.id ?? record.coordinates.description }

  private func isAnswered(_ key: RowKey) -> Bool {
    facts.row(key)?["status"].text == Permit.Status.finishable.rawValue
  }

  /// Reads an account, changes it, publishes what came of it and writes it back, if it is another one now.
  @discardableResult
  mutating func change<T>(
    _ subject: Subject, _ cause: Cause, _ body: (inout AccountState) throws(FieldFailure) -> ([AccountChange], T)
  ) throws(FieldFailure) -> T {
    try changeKnowing(subject, cause) { state, _ throws(FieldFailure) in try body(&state) }
  }

  /// The same for who must know what a newer catalogue has changed before.
  private mutating func changeKnowing<T>(
    _ subject: Subject, _ cause: Cause,
    _ body: (inout AccountState, _ relearned: [AccountChange]) throws(FieldFailure) -> ([AccountChange], T)
  ) throws(FieldFailure) -> T {
    let row = facts.row(AccountRow.key(subject.environment, subject.account))
    var account =
      try row.map { row throws(FieldFailure) in try AccountRow(row) }
      ?? AccountRow(
        environment: subject.environment, account: subject.account, partition: record.coordinates.partition,
        version: 0, catalogueVersion: catalogue.version, isWaiting: false, state: AccountState())
    let relearned = relearn(&account, at: record.timestamp)
    let (changes, outcome) = try body(&account.state, relearned)
    publish(relearned + changes, &account, subject, cause, asOf: max(account.state.clock, record.timestamp))
    account.partition = record.coordinates.partition
    version = account.version
    write(account, over: row)
    return outcome
  }

  /// What a newer catalogue than the account's last one changes, before anything else does: the row tells afterwards that the
  /// account has been settled by it, whatever the record was about.
  private func relearn(_ account: inout AccountRow, at instant: Instant) -> [AccountChange] {
    guard account.catalogueVersion != catalogue.version else { return [] }
    return account.state.relearn(at: instant, catalogue)
  }

  /// Writes the account's row, unless it is there as it is. Bytes are compared rather than states: a state that nobody keeps
  /// a copy of is changed in place.
  private mutating func write(_ account: consuming AccountRow, over before: Row? = nil) {
    account.isWaiting = account.state.isWaiting(for: catalogue)
    account.catalogueVersion = catalogue.version
    let row = account.row
    if row.values != before?.values { actions.append(.write(.put(row))) }
  }

  private mutating func publish(
    _ changes: [AccountChange], _ account: inout AccountRow, _ subject: Subject, _ cause: Cause, asOf: Instant
  ) {
    for change in changes {
      if case .permit(let permit) = change {
        write(permit, subject)
        guard permit.status == .finishable else { continue }
      }
      account.version += 1
      emit(change, account.version, subject, cause, asOf)
    }
  }
}
