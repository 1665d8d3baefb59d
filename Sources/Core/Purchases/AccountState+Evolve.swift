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
    let wasHeld = isAnswered ? false : statements.reported.map { holds($0, catalogue) } ?? false
    for revision in statements.transactions {
      let folded = facts.fold(revision)
      guard folded.isNewest else { continue }
      if revision.rank.isRevoked {
        rule = .refund
      } else if rule != .refund {
        rule = folded.before?.rank.isRevoked == true ? .refundReversal : .purchase
      }
    }
    for revision in statements.renewals { _ = facts.fold(revision) }
    if byTransfer { rule = .transfer }
    var (changes, purchases, intervals) = settle(at: instant, catalogue, rule)
    if let proof = statements.reportedProof, let reported = statements.reported, !isAnswered,
      !openPermits.contains(where: { $0.proof == proof }), !changes.answer(proof)
    {
      let open = OpenPermit(
        proof: proof, key: reported.businessKey, transaction: reported.transaction, product: reported.product)
      let permit = permit(open, wasHeld: wasHeld, purchases, intervals, at: max(clock, instant), catalogue)
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
    for purchase in facts.remove(chain: chain).flatMap({ $0.apart().map(\.purchase) }) {
      guard let booking = purchase.booking, booking.booked != 0 else { continue }
      changes.append(
        // The other account books it with the store anew: so the store's side adds up to what purchases are worth.
        .credit(post(-booking.booked, booking.unit, .store, purchase: purchase, rule: .transfer)))
    }
    return changes + settle(at: instant, catalogue, .transfer).changes
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
  mutating func settle(
    at instant: Instant, _ catalogue: Catalogue, _ rule: Rule
  ) -> (changes: [AccountChange], purchases: ResolvedPurchases, intervals: [AccessInterval]) {
    let now = max(clock, instant)
    var purchases = facts.resolved(catalogue)
    var changes = bookCredits(&purchases, catalogue, rule)
    let intervals = Access.intervals(purchases.purchases, facts, catalogue)
    changes += publish(intervals, at: now, rule)
    if !openPermits.isEmpty { changes += answerOpenPermits(purchases, intervals, at: now, catalogue) }
    dueAt = nextChange(intervals, after: now)
    return (changes, purchases, intervals)
  }

  /// Whether the account has what that statement is about already, by whatever statement.
  private func holds(_ revision: TransactionRevision, _ catalogue: Catalogue) -> Bool {
    let key = revision.businessKey
    return facts.purchases(catalogue).contains {
      $0.key.originalTransaction == key.originalTransaction
        && ($0.key == key || $0.transaction == revision.transaction || revision.type == .untold && $0.isOneTime)
        && !isWorthless($0) && !catalogue.isUnknown($0)
    }
  }

  /// The first purchase among those that these statements are about that waits for a catalogue which knows it.
  public func missing(_ revisions: [TransactionRevision], _ catalogue: Catalogue) -> Purchase? {
    let purchases = facts.resolved(catalogue)
    for revision in revisions {
      for place in purchases.places(of: revision.businessKey)
      where catalogue.isMissing(purchases.purchases[place]) {
        return purchases.purchases[place]
      }
    }
    return nil
  }
}

extension [AccountChange] {
  /// Whether a permit for that proof is among them: one that waited, and has its answer now.
  public func answer(_ proof: String) -> Bool {
    contains { if case .permit(let permit) = $0 { permit.proof == proof } else { false } }
  }
}
