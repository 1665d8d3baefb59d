import PurchasesCore

/// What is asked about an account, at the door and on the command line alike.
public struct AccountQuestion: Sendable {
  /// What to speak of; nil: of now.
  public var instant: Instant?
  public var now: Instant
  /// The catalogues as they were read before; nil: those that the store keeps.
  public var history: CatalogueHistory?
  /// Somebody asks what these catalogues would mean; otherwise they count while the one that the account was settled by is
  /// among them, and are read anew where it is not.
  public var historyIsGiven: Bool
  /// Also what Apple says of each purchase.
  public var withChains: Bool

  /// Permits of one answer: they grow with the account's life, and each can be asked for by itself.
  public static let mostPermits = 1_000

  public init(
    at instant: Instant? = nil, now: Instant, history: CatalogueHistory? = nil, historyIsGiven: Bool = false,
    withChains: Bool = false
  ) {
    self.instant = instant
    self.now = now
    self.history = history
    self.historyIsGiven = historyIsGiven
    self.withChains = withChains
  }
}

extension StoreReader {
  /// What people and services are told about an account: all of it from one instant of the store, whose place in the log the
  /// answer names. One that was merged into another is that other one now. An account that the store doesn't know has nothing.
  ///
  /// Of an instant that was asked for, entitlements are computed from all that is known now; balances are those that were
  /// booked and permits those that were decided by then, in log time. One that was decided again since is not among them.
  /// - Throws: `corrupt` for rows that can't be read.
  public func answer(
    _ environment: Environment, _ account: Account, _ question: AccountQuestion
  ) throws(StoreFailure) -> AccountView {
    try atOneInstant { reader throws(StoreFailure) in
      let account = try reader.current(environment, account)
      let instant = question.instant ?? question.now
      let key = AccountRow.key(environment, account)
      var view = AccountView(environment, account, at: instant)
      if let row = try reader.row(key) {
        view = try reader.view(
          row, history: try reader.history(of: row, question), at: instant, most: AccountQuestion.mostPermits)
        if let partition = row["partition"].integer {
          view.position = try reader.positions(stage: StageName.entitlements.rawValue)
            .first { Int64($0.key.partition) == partition }
            .map { Coordinates(topic: $0.key.topic, partition: $0.key.partition, offset: $0.value.next ?? 0) }
        }
      } else {
        let permits = try reader.permits(of: key.values, most: AccountQuestion.mostPermits)
        view.permits = permits.rows
        view.permitsAreComplete = permits.areComplete
      }
      if question.instant != nil { view.keep(upTo: instant, try reader.balances(environment, account, upTo: instant)) }
      if question.withChains {
        let chains = try reader.chains(environment, account, at: instant)
        view.chains = chains.views
        view.chainsAreComplete = chains.areComplete
      }
      return view
    }
  }

  /// The same in every environment that knows the account, in one of them where it is named. One whose purchases have led
  /// to no event yet, since they wait or were over when they came, is known.
  public func answers(
    _ account: Account, in environment: Environment?, _ question: AccountQuestion
  ) throws(StoreFailure) -> [AccountView] {
    var views: [AccountView] = []
    for candidate in Environment.allCases where environment == nil || environment == candidate {
      let view = try answer(candidate, account, question)
      if view.isKnown { views.append(view) }
    }
    return views
  }

  private func history(of row: Row, _ question: AccountQuestion) throws(StoreFailure) -> CatalogueHistory {
    if let history = question.history,
      question.historyIsGiven || row["catalogue_version"].text.flatMap({ history[$0] }) != nil
    {
      return history
    }
    guard let history = try catalogueHistory() ?? question.history else {
      throw StoreFailure(.unavailable, "the store keeps no catalogue yet")
    }
    return history
  }
}

extension StoreReader {
  /// Sums of the ledger's lines that were booked by then, in order of unit.
  fileprivate func balances(
    _ environment: Environment, _ account: Account, upTo instant: Instant
  ) throws(StoreFailure) -> [Balance] {
    let page = 1_000
    let prefix: [Value] = [.text(environment.rawValue), .text(account.text)]
    var sums: [CreditUnit: Int64] = [:]
    var after: [Value]?
    while true {
      let rows = try rows(.ledger, prefix: prefix, after: after, limit: page)
      for row in rows {
        do throws(FieldFailure) {
          let line = try LedgerLine(row)
          guard line.recordedAt <= instant else { continue }
          let (sum, overflow) = sums[line.unit, default: 0].addingReportingOverflow(line.amount)
          // As the stage does it: a balance stands still rather than turn its sign.
          sums[line.unit] = overflow ? (line.amount > 0 ? .max : .min) : sum
        } catch { throw StoreFailure(.corrupt, "\(error)") }
      }
      guard rows.count == page, let last = rows.last else { break }
      after = last.key.values
    }
    return sums.sorted { $0.key < $1.key }.map { Balance(unit: $0.key, amount: $0.value) }
  }
}

extension AccountView {
  /// Leaves out what came later.
  fileprivate mutating func keep(upTo instant: Instant, _ balances: [Balance]) {
    permits.removeAll { $0.decidedAt > instant }
    self.balances = balances
  }
}
