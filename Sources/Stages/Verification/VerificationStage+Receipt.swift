import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

extension VerificationStage {
  /// A payment with an app receipt. The receipt speaks of every purchase that the device knows; each chain of them goes to
  /// the writer of its own, in an event of its own.
  /// - Parameter isBeside: the report's own proof is a signed transaction: then the receipt only tells what it tells, and
  ///   answers nobody.
  func receipt(
    _ verdict: Verdict, _ payment: PaymentReported, _ context: Context, isBeside: Bool
  ) -> [Action] {
    let sent = payment.appReceipt ?? ""
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
      return actions(
        .rejected(proof).carrying(sent), report, stated: payment.environment, isBeside ? context.aside : context)
    case .verified(let proof):
      if let environment = payment.environment, environment != proof.environment {
        let mismatch = ClaimFailure.environmentMismatch
        let rejected = RejectedProof(
          reason: .claim(mismatch), field: nil, digest: name ?? proof.digest, explanation: mismatch.explanation,
          evidence: proof.evidence.with((StatedPurchase.name, StatedPurchase(payment).json)))
        return actions(
          .rejected(rejected).carrying(sent), report, stated: environment, isBeside ? context.aside : context)
      }
      return chains(proof, sent, isBeside ? nil : payment, report, name, context)
    }
  }

  private func chains(
    _ proof: VerifiedProof, _ sent: String, _ payment: PaymentReported?, _ report: Report, _ name: String?,
    _ context: Context
  ) -> [Action] {
    let match = payment.flatMap { payment in StatedPurchase(payment).match(payment.type, proof.purchases) }
    var order: [OriginalTransactionID] = []
    var members: [OriginalTransactionID: [Int]] = [:]
    for (index, purchase) in proof.purchases.enumerated() {
      if members[purchase.originalTransaction] == nil { order.append(purchase.originalTransaction) }
      members[purchase.originalTransaction, default: []].append(index)
    }
    // A receipt with nothing in it is as good as any, and the purchase that it was sent for is not in this one.
    let isUnmatched = order.isEmpty || (payment != nil && match == nil)
    let evidence = proof.evidence.with(
      CarriedProof.member(sent, copies: order.count + (isUnmatched ? 1 : 0)))
    func event(
      _ digest: String, _ parts: [SignedPart], _ report: Report, _ evidence: JSON
    ) -> VerifiedEvent {
      .verified(
        PurchaseVerified(
          environment: proof.environment, kind: .appReceipt, proof: digest, signedDate: proof.signedDate, parts: parts,
          notification: nil, report: report, evidence: evidence))
    }
    var actions: [Action] = []
    for original in order {
      let indices = members[original] ?? []
      let key = ReceivedRecord.key(proof.environment, original)
      let parts = indices.map { proof.parts[$0] }
      if let match, indices.contains(match) {
        actions.append(context.emit(event(name ?? proof.parts[match].digest, parts, report, evidence), key: key))
      } else if let newest = indices.max(by: { proof.purchases[$0].purchaseDate < proof.purchases[$1].purchaseDate }) {
        let other = Self.report(report, of: proof.purchases[newest])
        actions.append(context.aside.emit(event(proof.parts[newest].digest, parts, other, evidence), key: key))
      }
    }
    if isUnmatched {
      let received = ReceivedRecord(context.event, data: context.data)
      // Why none of its purchases is the reported one.
      let unmatched = payment.map { evidence.with((StatedPurchase.name, StatedPurchase($0).json)) } ?? evidence
      let key = report.account.map { ReceivedRecord.key(proof.environment, $0) } ?? received.key
      actions.append(context.aside.emit(event(name ?? proof.digest, [], report, unmatched), key: key))
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
}
