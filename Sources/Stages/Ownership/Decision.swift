import PurchasesContracts
import PurchasesCore

/// What one record of `verified` leads to.
struct Decision {
  let record: Incoming
  let aliases: Aliases
  let facts: any Facts
  let settings: OwnershipSettings
  var actions: [Action] = []

  private mutating func emit(_ event: OwnedEvent) {
    actions.append(.emit(Outgoing(topic: .owned, key: event.key, type: event.type, data: event.data)))
  }

  /// A fact passes to the account that this one is now, with what is to be said of it.
  mutating func pass(
    _ fact: FactNoted, _ environment: Environment, _ account: Account, outcome: AccountFact.Outcome = .passed,
    reason: String? = nil
  ) {
    let now = aliases.resolve(environment, account)
    emit(
      .noted(
        AccountFact(
          environment: environment, account: now, outcome: outcome, reason: reason,
          via: now == account ? [] : [account], fact: fact)))
  }

  /// What an account is asked for is decided by its own writer, which knows what it answered before it was merged into
  /// another account, and hands on what it did not.
  mutating func ask(_ fact: FactNoted, _ environment: Environment, _ account: Account) {
    emit(.noted(AccountFact(environment: environment, account: account, fact: fact)))
  }

  mutating func decide(_ verdict: Reading.Verdict) {
    let environment = verdict.environment ?? settings.environment
    emit(
      .noted(
        AccountFact(
          environment: environment, account: aliases.resolve(environment, verdict.account), outcome: verdict.outcome,
          reason: verdict.reason, proof: verdict.proof, report: verdict.report)))
  }

  // MARK: Proofs

  mutating func decide(_ proof: Reading.Proof) throws(FieldFailure) {
    let repeated = note(proof.event.notification, proof)
    if let rescinded = proof.rescinded { tell(rescinded, proof) }
    guard let original = proof.originalTransaction else {
      // Nothing in it to fold: the second body under one UUID is kept where a person looks.
      if repeated { actions.append(.quarantine(reason: Self.secondBody, alarm: .contradiction)) }
      if proof.event.kind == .appReceipt, let sender = proof.sender {
        emit(
          .noted(
            AccountFact(
              environment: proof.environment, account: aliases.resolve(proof.environment, sender),
              outcome: .nothingBought, reason: nil, proof: proof.event.proof, report: proof.event.report)))
      }
      return
    }
    var chain = try chain(proof.environment, original)
    // Who waits for an answer: the authenticated sender; of a report without one the account that this very proof names.
    let sender = (proof.sender ?? proof.named).map { aliases.resolve(proof.environment, $0) }
    var incoming: [SignedPart] = []
    for statement in proof.statements {
      var part = statement.kept.signed
      part.standing = chain.row.keep(statement.kept)
      incoming.append(part)
      chain.row.ownership.note(statement.token, statement.kept.rank)
    }
    let tellsOfToken = !chain.row.hasToldOfToken && proof.statements.contains { $0.hasUnusableToken }
    if tellsOfToken { chain.row.hasToldOfToken = true }
    var reason: String?
    if proof.sender != nil, let sender {
      reason = claim(
        &chain, sender, source: proof.event.proof, isRestore: proof.event.report.type == .paymentRestored)
    }
    settle(&chain)
    // For who has nothing of the chain yet.
    func everything() -> [SignedPart] {
      let known = chain.row.parts
      return known + incoming.filter { part in !known.contains { $0.digest == part.digest } }
    }
    func report(of account: Account) -> Report? { sender == account ? proof.event.report : nil }
    func owned(_ account: Account, _ basis: OwnershipBasis, _ parts: [SignedPart]) -> OwnedEvent {
      .owned(
        PurchaseOwned(
          environment: proof.environment, account: account, basis: basis, originalTransaction: original,
          proof: proof.event.proof, signedDate: proof.event.signedDate, notification: proof.event.notification,
          report: report(of: account), parts: parts))
    }
    if let owner = chain.row.account {
      if let from = chain.before, from != owner {
        transfer(chain, from: from, to: owner, parts: everything(), proof: proof.event.proof, report: report(of: owner))
      } else {
        emit(owned(owner, chain.row.basis, chain.before == nil ? everything() : incoming))
      }
    } else {
      emit(
        .unowned(
          PurchaseUnowned(
            environment: proof.environment, originalTransaction: original, proof: proof.event.proof,
            signedDate: proof.event.signedDate, notification: proof.event.notification, parts: incoming)))
    }
    let sharers = sharers(chain.row)
    for sharer in sharers {
      emit(owned(sharer, .share, chain.sharersBefore.contains(sharer) ? incoming : everything()))
    }
    endSharing(chain, sharers, proof: proof.event.proof)
    if let sender, sender != chain.row.account, !sharers.contains(sender) {
      emit(
        .noted(
          AccountFact(
            environment: proof.environment, account: sender, outcome: .anotherAccount, reason: reason,
            proof: proof.event.proof, report: proof.event.report)))
    }
    actions.append(.write(.put(chain.row.row)))
    if repeated { actions.append(.quarantine(reason: Self.secondBody, alarm: .contradiction)) }
    if tellsOfToken { actions.append(.quarantine(reason: Self.unusableToken, alarm: nil)) }
    if let notification = proof.event.notification, notification.subtype == "GRACE_PERIOD",
      !proof.event.parts.contains(where: { $0.kind == .renewalInfo })
    {
      // What it says of the transaction counts. That grace began can't be told without the renewal info: a person must look.
      actions.append(
        .quarantine(reason: "a notification of a grace period has no renewal info in it", alarm: nil))
    }
  }

  /// Once for each body: a copy is nothing new.
  private mutating func tell(_ rescinded: Reading.Rescinded, _ proof: Reading.Proof) {
    if let notification = proof.event.notification,
      facts.row(Notifications.key(proof.environment, notification.uuid))?.values[0].text == proof.event.proof
    {
      return
    }
    switch rescinded {
    case .by(let event): emit(.consentRescinded(event))
    case .byNobody:
      actions.append(
        .quarantine(reason: "a notification of rescinded consent names no app transaction in it", alarm: nil))
    }
  }

  private static let unusableToken =
    "the account token of the purchase is not a UUID or all zeroes: it counts as none, here and in what comes later"
  private static let secondBody = "a second body came under the UUID of an earlier notification; the first one is kept"

  /// Keeps the first body under a notification's UUID. True if this is another one.
  private mutating func note(_ notification: NotificationFacts?, _ proof: Reading.Proof) -> Bool {
    guard let notification else { return false }
    let key = Notifications.key(proof.environment, notification.uuid)
    if let row = facts.row(key) { return row.values[0].text != proof.event.proof }
    actions.append(
      .write(.insert(Row(key, [.text(proof.event.proof), .text(record.coordinates.description)]))))
    return false
  }

  // MARK: Claims and orders

  mutating func decide(_ claim: PurchaseClaimed, _ fact: FactNoted) throws(FieldFailure) {
    var chain = try chain(claim.environment, claim.originalTransaction)
    let account = aliases.resolve(claim.environment, claim.account)
    let reason = self.claim(&chain, account, source: "attempt:\(claim.attempt)", isRestore: true)
    settle(&chain)
    _ = move(chain, orderID: nil)
    let sharers = sharers(chain.row)
    if sharers.contains(account), !chain.sharersBefore.contains(account) { emit(whole(chain, account, .share)) }
    let holds = chain.row.account == account || sharers.contains(account)
    pass(fact, claim.environment, claim.account, outcome: holds ? .owner : .anotherAccount, reason: reason)
    actions.append(.write(.put(chain.row.row)))
  }

  /// Lays a claim to a chain. What it answers to whoever doesn't get it now and may ask again: a reason.
  private func claim(_ chain: inout Chain, _ account: Account, source: String, isRestore: Bool) -> String? {
    // A claimant that was merged into this account is this account: who has the purchase already doesn't move it.
    let claimant = chain.row.ownership.claimant.flatMap {
      aliases.resolve(chain.row.environment, $0) == account ? $0 : nil
    }
    let isHeard = chain.row.ownership.claim(
      Ownership.Claim(account: claimant ?? account, source: source), at: record.timestamp, isRestore: isRestore,
      isRestorable: chain.row.isRestorable, settings.rules)
    return isHeard ? nil : Permit.Reason.movedRecently
  }

  mutating func decide(_ order: AccessOrdered, _ fact: FactNoted) throws(FieldFailure) {
    switch order.order {
    case .grant, .revoke, .reverse, .adjust: ask(fact, order.environment, order.account)
    case .transfer(let original, let to):
      var chain = try chain(order.environment, original)
      let account = aliases.resolve(order.environment, order.account)
      // Who shared it once and has come to own it hands it over whole.
      if account != order.account, chain.before != order.account,
        chain.row.ownership.sharers.contains(order.account)
      {
        handShare(of: chain, from: order.account, to: account, orderID: order.orderID)
        return pass(fact, order.environment, order.account)
      }
      if let owner = chain.before, aliases.resolve(order.environment, owner) != account {
        return pass(fact, order.environment, order.account, outcome: .refused, reason: Permit.Reason.anotherAccount)
      }
      guard
        chain.row.ownership.transfer(
          to: aliases.resolve(order.environment, to), orderID: order.orderID, at: record.timestamp)
      else { return pass(fact, order.environment, order.account, outcome: .refused, reason: Self.decidedBefore) }
      settle(&chain)
      _ = move(chain, orderID: order.orderID)
      endSharing(chain, sharers(chain.row), orderID: order.orderID)
      pass(fact, order.environment, order.account)
      actions.append(.write(.put(chain.row.row)))
    case .merge(let into):
      let account = aliases.resolve(order.environment, order.account)
      let target = aliases.resolve(order.environment, into)
      guard account != target else {
        return pass(fact, order.environment, order.account, outcome: .refused, reason: Self.sameAccount)
      }
      // Under the old account, whose writer hands over what it has.
      pass(fact, order.environment, order.account)
      actions.append(
        .write(.put(Row(MergedAccount.key(order.environment, account), [.text(target.text)]))))
    }
  }

  /// Why a merge is refused: the accounts are one already.
  private static let sameAccount = "same-account"
  /// Why a transfer is refused: an order of that id moved the purchase before. The first one's answer stands.
  private static let decidedBefore = "decided-before"

  // MARK: Chains

  private struct Chain {
    var row: ChainRow
    let before: Account?
    let sharersBefore: [Account]
  }

  private func chain(
    _ environment: Environment, _ original: OriginalTransactionID
  ) throws(FieldFailure) -> Chain {
    // One writer per chain: under another key the record could come to another one.
    guard let key = record.stored.record.key, key.elementsEqual(TopicKey.chain(environment, original).utf8) else {
      throw FieldFailure("key", "is not that of the purchase, environment/originalTransactionId")
    }
    let row = try facts.row(ChainRow.key(environment, original)).map { row throws(FieldFailure) in try ChainRow(row) }
    let chain = row ?? ChainRow(environment: environment, originalTransaction: original)
    return Chain(row: chain, before: chain.account, sharersBefore: sharers(chain))
  }

  /// Writes down whose the chain is now.
  private func settle(_ chain: inout Chain) {
    let owner = chain.row.ownership.owner
    chain.row.account = owner.map { aliases.resolve(chain.row.environment, $0.account) }
    chain.row.basis = owner?.basis ?? .none
    chain.row.unownedSince = owner == nil ? chain.row.unownedSince ?? record.timestamp : nil
  }

  private func sharers(_ chain: ChainRow) -> [Account] {
    var sharers: [Account] = []
    for sharer in chain.ownership.sharers(isRestorable: chain.isRestorable) {
      let account = aliases.resolve(chain.environment, sharer)
      if account != chain.account, !sharers.contains(account) { sharers.append(account) }
    }
    return sharers
  }

  /// Takes access from who shared the chain and does no more: their copy says whose it is, as one who gives it away.
  private mutating func endSharing(
    _ chain: Chain, _ sharers: [Account], proof: String? = nil, orderID: String? = nil
  ) {
    guard let owner = chain.row.account else { return }
    for sharer in chain.sharersBefore where sharer != owner && !sharers.contains(sharer) {
      emit(
        .transferred(
          PurchaseTransferred(
            environment: chain.row.environment, account: sharer, from: sharer, to: owner, basis: chain.row.basis,
            originalTransaction: chain.row.originalTransaction, proof: proof, orderID: orderID, report: nil, parts: []))
      )
    }
  }

  /// A merged account's share goes where the account went; whose the chain is doesn't change by it.
  private mutating func handShare(of chain: Chain, from merged: Account, to account: Account, orderID: String) {
    emit(
      .transferred(
        PurchaseTransferred(
          environment: chain.row.environment, account: merged, from: merged, to: account, basis: .share,
          originalTransaction: chain.row.originalTransaction, proof: nil, orderID: orderID, report: nil, parts: [])))
    if chain.sharersBefore.contains(account) { emit(whole(chain, account, .share)) }
  }

  private func whole(_ chain: Chain, _ account: Account, _ basis: OwnershipBasis) -> OwnedEvent {
    .owned(
      PurchaseOwned(
        environment: chain.row.environment, account: account, basis: basis,
        originalTransaction: chain.row.originalTransaction, proof: nil, signedDate: nil, notification: nil, report: nil,
        parts: chain.row.parts))
  }

  /// Hands what is known of the chain to a new owner. False where there is none, or nothing to hand over.
  private mutating func move(_ chain: Chain, orderID: String?) -> Bool {
    guard let owner = chain.row.account, owner != chain.before else { return false }
    if let from = chain.before {
      transfer(chain, from: from, to: owner, parts: chain.row.parts, orderID: orderID)
    } else {
      guard !chain.row.kept.isEmpty else { return false }
      emit(whole(chain, owner, chain.row.basis))
    }
    return true
  }

  /// Both sides in one transaction: the old owner's copy carries no purchase data, which is the new owner's now.
  private mutating func transfer(
    _ chain: Chain, from: Account, to: Account, parts: [SignedPart], proof: String? = nil, orderID: String? = nil,
    report: Report? = nil
  ) {
    var event = PurchaseTransferred(
      environment: chain.row.environment, account: from, from: from, to: to, basis: chain.row.basis,
      originalTransaction: chain.row.originalTransaction, proof: proof, orderID: orderID, report: nil, parts: [])
    emit(.transferred(event))
    event.account = to
    event.report = report
    event.parts = parts
    emit(.transferred(event))
  }
}
