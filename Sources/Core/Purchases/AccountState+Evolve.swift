extension AccountState {
  /// Verified statements about purchases of the account, and who sent them.
  public struct Statements: Sendable, Hashable {
    public var transactions: [TransactionRevision]
    public var renewals: [RenewalRevision]
    /// The proof as it was received, in hex, where somebody waits for a permit.
    public var reportedProof: String?
    /// Which of the transactions the reported proof is about.
    public var reported: TransactionRevision?

    public init(
      transactions: [TransactionRevision], renewals: [RenewalRevision], reportedProof: String? = nil,
      reported: TransactionRevision? = nil
    ) {
      self.transactions = transactions
      self.renewals = renewals
      self.reportedProof = reportedProof
      self.reported = reported
    }
  }

  /// - Parameters:
  ///   - at: log time of the event.
  ///   - isAnswered: the reported proof has its final permit already.
  ///   - byTransfer: the purchases come from another account.
  public mutating func apply(
    _ statements: Statements, at instant: Instant, _ catalogue: Catalogue, isAnswered: Bool, byTransfer: Bool = false
  ) -> [AccountChange] {
    var rule = Rule.renewal
    var reportedBefore: Purchase?
    for revision in statements.transactions {
      let folded = facts.fold(revision)
      if revision.businessKey == statements.reported?.businessKey, let before = folded.before {
        reportedBefore = before
      }
      guard folded.isNewest else { continue }
      if revision.revocationDate != nil {
        rule = .refund
      } else if rule != .refund {
        rule = folded.before?.isRevoked == true ? .refundReversal : .purchase
      }
    }
    for revision in statements.renewals { _ = facts.fold(revision) }
    if byTransfer { rule = .transfer }
    var (changes, intervals) = settle(at: instant, catalogue, rule)
    if let proof = statements.reportedProof, let reported = statements.reported, !isAnswered,
      !openPermits.contains(where: { $0.proof == proof })
    {
      let open = OpenPermit(
        proof: proof, key: reported.businessKey, transaction: reported.transaction, product: reported.product)
      let wasHeld = reportedBefore.map { !isWorthless($0) && !isUnknown($0, catalogue) } ?? false
      let permit = permit(open, wasHeld: wasHeld, intervals, at: max(clock, instant), catalogue)
      if permit.status == .pending { openPermits.append(open) }
      changes.append(.permit(permit))
    }
    return changes
  }

  /// A chain goes to another account: its access ends and its credits go with it.
  public mutating func remove(
    chain: OriginalTransactionID, at instant: Instant, _ catalogue: Catalogue
  ) -> [AccountChange] {
    var changes: [AccountChange] = []
    for purchase in facts.remove(chain: chain) {
      guard let booking = purchase.booking, booking.booked != 0 else { continue }
      changes.append(
        .credit(post(-booking.booked, booking.unit, .transfer, purchase: purchase, rule: .transfer)))
    }
    return changes + settle(at: instant, catalogue, .transfer).changes
  }

  /// An operator's order. One that was decided before changes nothing.
  public mutating func apply(
    _ order: ManualOrder, at instant: Instant, _ catalogue: Catalogue
  ) -> [AccountChange] {
    facts.fold(order) ? settle(at: instant, catalogue, .order).changes : []
  }

  /// False if that order to merge the account was decided before.
  public mutating func remember(merge id: String) -> Bool {
    guard !mergeIDs.contains(id) else { return false }
    mergeIDs.append(id)
    if mergeIDs.count > Self.rememberedMerges { mergeIDs.removeFirst() }
    return true
  }

  /// A spend is decided once, in recorded order; the caller has seen to it that its key is new. nil where the balance
  /// doesn't reach: spending never takes it below zero.
  public mutating func spend(_ amount: Int64, _ unit: CreditUnit, key: String) -> AccountChange? {
    guard amount > 0, balance(of: unit) >= amount else { return nil }
    return .credit(post(-amount, unit, .spent, purchase: nil, idempotencyKey: key, rule: .spend))
  }

  /// The clock reached that instant, and everything before it has been worked off. Publishes what has expired or begun.
  public mutating func tick(_ instant: Instant, _ catalogue: Catalogue) -> [AccountChange] {
    clock = max(clock, instant)
    return settle(at: clock, catalogue, .time).changes
  }

  /// A new catalogue came: what waited for it is settled.
  public mutating func relearn(at instant: Instant, _ catalogue: Catalogue) -> [AccountChange] {
    settle(at: instant, catalogue, .catalogue).changes
  }

  public func balance(of unit: CreditUnit) -> Int64 { balances.first { $0.unit == unit }?.amount ?? 0 }

  /// Brings credits, published states and open permits to where the facts are.
  private mutating func settle(
    at instant: Instant, _ catalogue: Catalogue, _ rule: Rule
  ) -> (changes: [AccountChange], intervals: [AccessInterval]) {
    let now = max(clock, instant)
    var changes = bookCredits(catalogue, rule)
    let intervals = Access.intervals(facts, catalogue)
    changes += publish(intervals, at: now, rule)
    if !openPermits.isEmpty { changes += answerOpenPermits(intervals, at: now, catalogue) }
    dueAt = nextChange(intervals, after: now)
    return (changes, intervals)
  }
}
