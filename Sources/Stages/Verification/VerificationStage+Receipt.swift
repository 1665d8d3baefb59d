import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

extension VerificationStage {
  /// A payment with an app receipt. The receipt speaks of every purchase that the device knows; each chain of them goes to
  /// the writer of its own, in an event of its own.
  /// - Parameter isBeside: the report's own proof is a signed transaction: then the receipt only tells what it tells, and
  ///   answers nobody.
  func receipt(
    _ verdict: Verdict, _ payment: PaymentReported, _ context: Context, isBeside: Bool
  ) -> [Action] {
    let received = ReceivedRecord(context.event, data: context.data)
    let report =
      isBeside
      ? Report(type: payment.type)
      : Report(
        type: payment.type, account: payment.account, attempt: payment.attempt, product: payment.product,
        transaction: payment.transaction)
    // What a permit would be asked by, whatever becomes of the receipt.
    let name = isBeside ? nil : received.permit
    switch verdict {
    case .pending(var proof):
      proof.digest = name ?? proof.digest
      return pending(proof, report, stated: payment.environment, context)
    case .rejected(var proof):
      proof.digest = name ?? proof.digest
      return actions(.rejected(proof), report, stated: payment.environment, isBeside ? context.aside : context)
    case .verified(let proof):
      if let environment = payment.environment, environment != proof.environment {
        let mismatch = ClaimFailure.environmentMismatch
        let rejected = RejectedProof(
          reason: .claim(mismatch), field: nil, digest: name ?? proof.digest, explanation: mismatch.explanation,
          evidence: proof.evidence)
        return actions(.rejected(rejected), report, stated: environment, isBeside ? context.aside : context)
      }
      return chains(proof, isBeside ? nil : payment, report, name, context)
    }
  }

  private func chains(
    _ proof: VerifiedProof, _ payment: PaymentReported?, _ report: Report, _ name: String?, _ context: Context
  ) -> [Action] {
    let match = payment.flatMap { payment in Self.match(payment, proof.purchases) }
    var order: [OriginalTransactionID] = []
    var members: [OriginalTransactionID: [Int]] = [:]
    for (index, purchase) in proof.purchases.enumerated() {
      if members[purchase.originalTransaction] == nil { order.append(purchase.originalTransaction) }
      members[purchase.originalTransaction, default: []].append(index)
    }
    func event(_ digest: String, _ parts: [SignedPart], _ report: Report) -> VerifiedEvent {
      .verified(
        PurchaseVerified(
          environment: proof.environment, kind: .appReceipt, proof: digest, signedDate: proof.signedDate, parts: parts,
          notification: nil, report: report, evidence: proof.evidence))
    }
    var actions: [Action] = []
    for original in order {
      let indices = members[original] ?? []
      let key = ReceivedRecord.key(proof.environment, original)
      let parts = indices.map { proof.parts[$0] }
      if let match, indices.contains(match) {
        actions.append(context.emit(event(name ?? proof.parts[match].digest, parts, report), key: key))
      } else if let newest = indices.max(by: { proof.purchases[$0].purchaseDate < proof.purchases[$1].purchaseDate }) {
        let other = Self.report(report, of: proof.purchases[newest])
        actions.append(context.aside.emit(event(proof.parts[newest].digest, parts, other), key: key))
      }
    }
    // A receipt with nothing in it is as good as any, and the purchase that it was sent for is not in this one.
    if order.isEmpty || (payment != nil && match == nil) {
      let received = ReceivedRecord(context.event, data: context.data)
      let key = report.account.map { ReceivedRecord.key(proof.environment, $0) } ?? received.key
      actions.append(context.aside.emit(event(name ?? proof.digest, [], report), key: key))
    }
    return actions
  }

  /// A restore brings back all that the receipt holds: whoever sends it claims each chain. Who reports one purchase claims
  /// that one.
  private static func report(_ report: Report, of purchase: TransactionRevision) -> Report {
    guard report.type == .paymentRestored, report.account != nil else { return Report(type: report.type) }
    return Report(
      type: report.type, account: report.account, attempt: report.attempt, product: purchase.product,
      transaction: purchase.transaction)
  }

  /// The purchase that the report is about. A restored one has a new transaction id on the device, so that there its first
  /// transaction or its product will do.
  private static func match(_ payment: PaymentReported, _ purchases: [TransactionRevision]) -> Int? {
    let possible = purchases.indices.filter { index in
      (payment.product ?? purchases[index].product) == purchases[index].product
        && (payment.originalTransaction ?? purchases[index].originalTransaction)
          == purchases[index].originalTransaction
    }
    if let found = possible.first(where: { purchases[$0].transaction == payment.transaction }) { return found }
    guard payment.type == .paymentRestored, payment.product != nil || payment.originalTransaction != nil else {
      return nil
    }
    return possible.max { purchases[$0].purchaseDate < purchases[$1].purchaseDate }
  }
}
