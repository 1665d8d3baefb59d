import PurchasesContracts
import PurchasesCore

/// Spends and orders, and the answers to them and to claims. One answer for each, whatever comes under its name later.
extension Decision {
  static func needs(_ subject: Subject, _ request: Request) -> [Need] {
    var needs = [Need.row(AnswerRow.key(subject.environment, subject.account, request.name))]
    guard case .ordered(let order) = request.event else { return needs }
    switch order.order {
    case .reverse(let id): needs.append(.row(reversed(subject, request, id)))
    // Credits that are handed on have no answer: the line itself tells whether they came.
    case .adjust(let unit, _) where request.fact.outcome == .handedOn:
      needs.append(.row(subject.ledgerKey(unit, request.name)))
    default: break
    }
    return needs
  }

  private static func reversed(_ subject: Subject, _ request: Request, _ id: String) -> RowKey {
    let name = "order:\(id)"
    return AnswerRow.key(
      subject.environment, subject.account, request.origin.map { AskedRequest.name(name, from: $0) } ?? name)
  }

  /// What became of a request; nil: it is answered elsewhere.
  private typealias Outcome = (AnswerRow.Outcome, reason: String)

  mutating func request(_ subject: Subject, _ request: Request) throws(FieldFailure) {
    if request.fact.outcome == .handedOn { return try take(subject, request) }
    let key = AnswerRow.key(subject.environment, subject.account, request.name)
    guard facts.row(key) == nil, let outcome = try decide(subject, request) else { return }
    let answer = AnswerRow(
      kind: request.asked.kind, outcome: outcome.0, reason: outcome.reason, asked: request.asked.asked,
      version: version, source: record.coordinates.description, recordedAt: record.timestamp)
    actions.append(.write(.insert(answer.row(key))))
  }

  private mutating func decide(_ subject: Subject, _ request: Request) throws(FieldFailure) -> Outcome? {
    switch request.event {
    case .spendRequested(let spend):
      return try decide(subject, request) { state in
        guard let change = state.spend(spend.amount, spend.unit, request: request.name) else {
          return ([], (.refused, Permit.Reason.insufficientFunds))
        }
        return ([change], (.done, AnswerRow.Reason.spent))
      }
    case .claimed:
      try note(subject)
      return request.fact.outcome == .owner
        ? (.done, AnswerRow.Reason.owner) : (.refused, request.fact.reason ?? Permit.Reason.anotherAccount)
    case .ordered(let order):
      guard request.fact.outcome == .passed else {
        try note(subject)
        return (.refused, request.fact.reason ?? Permit.Reason.anotherAccount)
      }
      return try decide(subject, request, order)
    case .payment, .restore, .notified, .operatorActed: return nil
    }
  }

  private mutating func decide(
    _ subject: Subject, _ request: Request, _ order: AccessOrdered
  ) throws(FieldFailure) -> Outcome? {
    let (catalogue, now) = (catalogue, record.timestamp)
    func access(_ kind: ManualOrder.Kind, _ entitlement: EntitlementID) throws(FieldFailure) -> Outcome? {
      let manual = ManualOrder(
        entitlement: entitlement, kind: kind, at: now, orderID: order.orderID, origin: request.origin)
      return try decide(subject, request) { Self.outcome($0.apply(manual, at: now, catalogue)) }
    }
    switch order.order {
    case .grant(let entitlement, let until): return try access(.grant(until: until), entitlement)
    case .revoke(let entitlement, let until): return try access(.revoke(until: until), entitlement)
    case .reverse(let id):
      let answered = facts.row(Self.reversed(subject, request, id))?["kind"].text
      return try decide(subject, request) { state in
        let outcome = Self.outcome(state.reverse(order: id, origin: request.origin, at: now, catalogue))
        guard outcome.1.0 == .refused, let answered, !["grant", "revoke"].contains(answered) else { return outcome }
        return ([], (.refused, AccountState.Refusal.notReversible.rawValue))
      }
    case .adjust(let unit, let amount):
      return try decide(subject, request) {
        ([$0.adjust(amount, unit, request: request.name)], (.done, AnswerRow.Reason.ordered))
      }
    // Decided where chains are: what there was to do comes as events of its own.
    case .transfer:
      try note(subject)
      return (.done, AnswerRow.Reason.ordered)
    case .merge(let into): return try merge(subject, request, order, into)
    }
  }

  private static func outcome(
    _ result: Result<[AccountChange], OrderRefused>
  ) -> ([AccountChange], Outcome) {
    switch result {
    case .success(let changes): (changes, (.done, AnswerRow.Reason.ordered))
    case .failure(let refused): ([], (.refused, refused.reason.rawValue))
    }
  }

  /// Decides in this account; or hands the request on to the account that this one was merged into, which has not answered
  /// it before: what this one answered was found already.
  private mutating func decide(
    _ subject: Subject, _ request: Request, _ body: (inout AccountState) -> ([AccountChange], Outcome)
  ) throws(FieldFailure) -> Outcome? {
    typealias Decided = (Outcome?, Merge?)
    let (outcome, merge) = try change(subject, Cause(event: sourceID)) { state -> ([AccountChange], Decided) in
      if let merge = state.merge, Self.mayGoOn(request, subject, to: merge.into) { return ([], (nil, merge)) }
      let (changes, outcome) = body(&state)
      return (changes, (outcome, nil))
    }
    if let merge { handOn(request.fact, subject, to: merge.into) }
    return outcome
  }

  /// So that whoever lists accounts finds the answer.
  private mutating func note(_ subject: Subject) throws(FieldFailure) {
    try change(subject, Cause(event: sourceID)) { _ in ([], ()) }
  }

  // MARK: Merged accounts

  /// Two accounts that were merged into each other at one time would hand on for ever.
  private static func mayGoOn(_ request: Request, _ subject: Subject, to into: Account) -> Bool {
    into != subject.account && !request.fact.via.contains(into) && request.fact.via.count < AccountFact.maximumVia
  }

  private mutating func handOn(_ fact: AccountFact, _ subject: Subject, to into: Account) {
    var fact = fact
    fact.account = into
    fact.via.append(subject.account)
    let event = OwnedEvent.noted(fact)
    actions.append(.emit(Outgoing(topic: .owned, key: event.key, type: event.type, data: event.data)))
    emitted += 1
  }

  /// What an account had that was merged into this one.
  private mutating func take(_ subject: Subject, _ request: Request) throws(FieldFailure) {
    guard case .ordered(let order) = request.event, let origin = request.origin else {
      throw FieldFailure("via", "is missing of what an account hands on")
    }
    let catalogue = catalogue
    let now = record.timestamp
    let isTaken: Bool
    if case .adjust(let unit, _) = order.order {
      isTaken = facts.row(subject.ledgerKey(unit, request.name)) != nil
    } else {
      isTaken = false
    }
    let merge = try change(subject, Cause(event: sourceID)) { state -> ([AccountChange], Merge?) in
      if isTaken { return ([], nil) }
      if let merge = state.merge, Self.mayGoOn(request, subject, to: merge.into) { return ([], merge) }
      func access(_ kind: ManualOrder.Kind, _ entitlement: EntitlementID) -> [AccountChange] {
        let manual = ManualOrder(
          entitlement: entitlement, kind: kind, at: request.fact.orderedAt ?? now, orderID: order.orderID,
          origin: origin)
        return (try? state.apply(manual, at: now, catalogue).get()) ?? []
      }
      switch order.order {
      case .grant(let entitlement, let until): return (access(.grant(until: until), entitlement), nil)
      case .revoke(let entitlement, let until): return (access(.revoke(until: until), entitlement), nil)
      case .adjust(let unit, let amount): return ([state.take(amount, unit, request: request.name)], nil)
      case .reverse, .transfer, .merge: return ([], nil)
      }
    }
    if let merge { handOn(request.fact, subject, to: merge.into) }
  }

  /// The account is another one's from now on. Which chains it has is known here and nowhere else; whose a chain is, is
  /// decided by the chain's own writer: so each goes back as an order of its own. The rest goes straight to the other
  /// account's writer, and first: what was spent must be missing there before the purchases come.
  private mutating func merge(
    _ subject: Subject, _ request: Request, _ order: AccessOrdered, _ into: Account
  ) throws(FieldFailure) -> Outcome? {
    let (catalogue, now) = (catalogue, record.timestamp)
    let merge = Merge(
      into: into, orderID: order.orderID, operatorName: order.operatorName, reason: order.reason)
    let handover = try change(subject, Cause(event: sourceID)) { state -> ([AccountChange], AccountState.Handover?) in
      let handover = state.merge(merge, request: request.name, at: now, catalogue)
      return (handover?.changes ?? [], handover)
    }
    guard let handover else { return (.done, AnswerRow.Reason.ordered) }
    for credit in handover.credits {
      // One order moves so much at the most: what is more goes as several, each a line of its own.
      let most = AccessOrdered.maximumAdjustment
      var (rest, piece) = (credit.amount, 1)
      while rest != 0 {
        let amount = min(max(rest, -most), most)
        let id = piece == 1 ? order.orderID : "\(order.orderID)/\(piece)"
        hand(.adjust(credit.unit, amount: amount), id: id, at: nil, from: nil, subject, merge)
        rest -= amount
        piece += 1
      }
    }
    for manual in handover.orders {
      let kind: AccessOrdered.Order =
        switch manual.kind {
        case .grant(let until): .grant(manual.entitlement, until: until)
        case .revoke(let until): .revoke(manual.entitlement, until: until)
        }
      hand(kind, id: manual.orderID, at: manual.at, from: manual.origin, subject, merge)
    }
    for chain in handover.chains { handOver(chain, subject, merge) }
    return (.done, AnswerRow.Reason.ordered)
  }

  private mutating func hand(
    _ order: AccessOrdered.Order, id: String, at instant: Instant?, from origin: Account?, _ subject: Subject,
    _ merge: Merge
  ) {
    let event = ReceivedEvent.ordered(
      AccessOrdered(
        environment: subject.environment, account: origin ?? subject.account, order: order, orderID: id,
        operatorName: merge.operatorName, reason: merge.reason))
    // The origin stands first; the account itself is added as its hand.
    let fact = AccountFact(
      environment: subject.environment, account: subject.account, outcome: .handedOn,
      via: origin.map { $0 == subject.account ? [] : [$0] } ?? [], orderedAt: instant,
      fact: FactNoted(type: event.type, data: event.data))
    handOn(fact, subject, to: merge.into)
  }

  mutating func handOver(_ chain: OriginalTransactionID, _ subject: Subject, _ merge: Merge) {
    let transfer = ReceivedEvent.ordered(
      AccessOrdered(
        environment: subject.environment, account: subject.account, order: .transfer(chain, to: merge.into),
        orderID: "\(merge.orderID)/\(chain.text)", operatorName: merge.operatorName, reason: merge.reason))
    actions.append(
      .emit(
        Outgoing(
          topic: .received, key: TopicKey.chain(subject.environment, chain), type: transfer.type,
          data: transfer.data)))
    emitted += 1
  }
}
