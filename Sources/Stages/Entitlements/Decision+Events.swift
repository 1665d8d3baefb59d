import PurchasesContracts
import PurchasesCore

extension Decision {
  mutating func emit(
    _ change: AccountChange, _ version: Int64, _ subject: Subject, _ cause: Cause, _ asOf: Instant
  ) {
    let environment = Value.text(subject.environment.rawValue)
    let account = Value.text(subject.account.text)
    let content: EntitlementEvent.Content
    let rule: String
    let about: String
    switch change {
    case .entitlement(let id, let step, let before, let after, let cause):
      content = .entitlement(
        EntitlementChanged(entitlement: id, step: step, before: before, after: after, rule: cause))
      (rule, about) = (cause.rawValue, id.text)
    case .credit(let credit):
      let entry = credit.request ?? "\(credit.transaction?.text ?? "")/\(version)"
      content = .credit(
        CreditChanged(
          unit: credit.unit, amount: Int64(clamping: credit.amount.magnitude), isAddition: credit.amount > 0,
          balanceBefore: credit.before, balanceAfter: credit.after, entry: entry, transaction: credit.transaction,
          product: credit.product, rule: credit.rule))
      (rule, about) = (credit.rule.rawValue, credit.unit.text)
      let other = credit.counterpart.rawValue
      actions.append(
        .write(
          .insert(
            Row(
              subject.ledgerKey(credit.unit, entry),
              [
                .text(credit.amount > 0 ? other : LedgerLine.account),
                .text(credit.amount > 0 ? LedgerLine.account : other),
                .integer(Int64(clamping: credit.amount.magnitude)), .integer(version),
                .integer(record.timestamp.milliseconds),
              ]))))
      actions.append(
        .write(
          .put(
            Row(RowKey(.balance, [environment, account, .text(credit.unit.text)]), [.integer(credit.after)]))))
    case .permit(let permit):
      content = .finishable(
        PaymentFinishable(
          proof: permit.proof, content: permit.content, reason: permit.reason, transaction: permit.transaction,
          product: permit.product, attempt: permit.attempt))
      (rule, about) = (permit.reason, permit.proof)
    }
    let event = EntitlementEvent(
      environment: subject.environment, account: subject.account, version: version, asOf: asOf,
      catalogueVersion: catalogue.version, cause: cause, content: content)
    let outgoing = Outgoing(
      topic: .entitlements, key: event.key, type: event.type, subject: event.subject, data: event.data)
    let id = Envelope.derivedID(
      source: sourceID, stage: StageName.entitlements.rawValue, index: emitted, type: outgoing.type, key: outgoing.key)
    actions.append(.emit(outgoing))
    emitted += 1
    actions.append(
      .write(
        .insert(
          Row(
            RowKey(.change, [environment, account, .integer(version)]),
            [
              .text(id), .text(outgoing.type.rawValue), .text(about), .text(record.coordinates.description),
              .text(rule), .integer(record.timestamp.milliseconds),
            ]))))
    if case .entitlement(let entitlement, _, _, let after, _) = change {
      actions.append(
        .write(
          .put(
            Row(
              RowKey(.entitlement, [environment, account, .text(entitlement.text)]),
              [
                .integer(after.isActive ? 1 : 0), Value(after.endsAt), Value(after.product?.text),
                Value(after.originalTransaction?.text), .text(catalogue.version), .integer(version),
                .bytes(outgoing.data),
              ]))))
      actions.append(
        .emit(
          Outgoing(
            topic: .entitlementState,
            key: TopicKey.entitlement(subject.environment, subject.account, entitlement), type: outgoing.type,
            subject: outgoing.subject, data: outgoing.data)))
      emitted += 1
    }
  }

  mutating func write(_ permit: Permit, _ subject: Subject) {
    actions.append(
      .write(
        .put(
          Row(
            subject.permitKey(permit.proof),
            [
              .text(permit.status.rawValue), .text(permit.content.rawValue), .text(permit.reason),
              Value(permit.transaction?.text), Value(permit.product?.text), .text(sourceID),
              .integer(record.timestamp.milliseconds),
            ]))))
  }
}
