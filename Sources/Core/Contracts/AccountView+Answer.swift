import PurchasesCore

/// What is asked about an account, at the door and on the command line alike.
public struct AccountQuestion: Sendable {
  /// What to speak of; nil: of now.
  public var instant: Instant?
  public var now: Instant
  /// The catalogues; nil: those that the store keeps.
  public var history: CatalogueHistory?
  /// Permits that an answer holds; nil: all.
  public var mostPermits: Int?
  /// Also what Apple says of each purchase.
  public var withChains: Bool

  public init(
    at instant: Instant? = nil, now: Instant, history: CatalogueHistory? = nil, mostPermits: Int? = nil,
    withChains: Bool = false
  ) {
    self.instant = instant
    self.now = now
    self.history = history
    self.mostPermits = mostPermits
    self.withChains = withChains
  }
}

extension StoreReader {
  /// What people and services are told about an account: all of it from one instant of the store, whose place in the log the
  /// answer names. One that was merged into another is that other one now. An account that the store doesn't know has nothing.
  ///
  /// Of an instant that was asked for, entitlements are computed from all that is known now; balances and permits are those
  /// that were booked and decided by then, in log time.
  /// - Throws: `corrupt` for rows that can't be read.
  public func answer(
    _ environment: Environment, _ account: Account, _ question: AccountQuestion
  ) throws(StoreFailure) -> AccountView {
    try atOneInstant { reader throws(StoreFailure) in
      let account = try reader.current(environment, account)
      let instant = question.instant ?? question.now
      var view: AccountView
      if let row = try reader.row(AccountRow.key(environment, account)) {
        var history = question.history
        if history == nil { history = try reader.catalogueHistory() }
        guard let history else {
          throw StoreFailure(.unavailable, "the store keeps no catalogue yet")
        }
        view = try reader.view(row, history: history, at: instant, most: question.mostPermits)
        if let partition = row["partition"].integer {
          view.position = try reader.positions(stage: StageName.entitlements.rawValue)
            .first { Int64($0.key.partition) == partition }
            .map { Coordinates(topic: $0.key.topic, partition: $0.key.partition, offset: $0.value.next ?? 0) }
        }
        if question.instant != nil { view.keep(upTo: instant, try reader.ledger(environment, account)) }
      } else {
        view = AccountView(environment, account, at: instant)
      }
      if question.withChains {
        let chains = try reader.chains(environment, account, at: instant)
        view.chains = chains.views
        view.chainsAreComplete = chains.areComplete
      }
      return view
    }
  }
}

extension AccountView {
  /// Leaves out what came later.
  fileprivate mutating func keep(upTo instant: Instant, _ ledger: [LedgerLine]) {
    permits.removeAll { $0.decidedAt > instant }
    var sums: [CreditUnit: Int64] = [:]
    for line in ledger where line.recordedAt <= instant { sums[line.unit, default: 0] += line.amount }
    balances = sums.sorted { $0.key < $1.key }.map { Balance(unit: $0.key, amount: $0.value) }
  }
}
