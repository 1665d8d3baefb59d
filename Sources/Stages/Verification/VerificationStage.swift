import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// Gives each proof of the topic `received` its verdict, and passes facts without a proof on. One event in `verified` per
/// record; what can't be told yet waits in `parked`. Keeps no state, and what only Apple knows it is handed: a replay comes to
/// the same verdicts.
public struct VerificationStage: Stage {
  public let judge: ProofJudge

  public init(_ settings: VerificationSettings) { judge = ProofJudge(settings) }

  public var name: StageName { .verification }
  public var inputs: [Topic] { [.received, .parked] }

  public func read(_ record: Incoming) -> (any Sendable)? { Reading(record) }

  /// A record, parsed once for its questions and its verdict.
  private enum Reading: Sendable {
    case event(ReceivedEvent, data: [UInt8], subject: String?)
    /// Why it can't be processed.
    case unreadable(String)

    init(_ record: Incoming) {
      guard let envelope = record.event else {
        self = .unreadable("headers: can't be read")
        return
      }
      guard let data = record.stored.record.value else {
        self = .unreadable("value: is missing")
        return
      }
      do throws(FieldFailure) {
        let event = try ReceivedEvent(type: envelope.type, fields: Fields(fromOutside: data))
        self = .event(event, data: data, subject: VerificationStage.subject(event, data, envelope))
      } catch { self = .unreadable(error.description) }
    }
  }

  public func questions(_ record: Incoming, _ moment: Moment) -> [AppStoreQuestion] {
    guard case .event(let event, _, _) = record.reading as? Reading ?? Reading(record) else { return [] }
    switch event {
    case .payment(let payment):
      var questions: [AppStoreQuestion] = []
      if let proof = payment.signedTransaction {
        questions += judge.revocationQuestions(Array(proof.utf8), isNotification: false, now: moment.now)
      }
      if let receipt = payment.appReceipt {
        let bytes = Array(receipt.utf8)
        questions += judge.revocationQuestions(receipt: bytes, now: moment.now)
        if let question = judge.verifyReceiptQuestion(bytes) { questions.append(question) }
      }
      return questions
    case .notified(let notified):
      return judge.revocationQuestions(Array(notified.signedPayload.utf8), isNotification: true, now: moment.now)
    case .restore, .claimed, .spendRequested, .ordered, .operatorActed: return []
    }
  }

  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    switch record.reading as? Reading ?? Reading(record) {
    case .unreadable(let reason): return [.quarantine(reason: reason, alarm: nil)]
    case .event(let event, let data, let subject):
      let context = Context(
        record: record, event: event, data: data, subject: subject, moment: moment, facts: facts)
      switch event {
      case .payment(let payment): return self.payment(payment, context)
      case .notified(let notified): return notification(notified, context)
      case .restore, .claimed, .spendRequested, .ordered, .operatorActed: return noted(context)
      }
    }
  }

  /// The transaction that the event is about, so that auditing can follow it: a producer that isn't ours may have left it
  /// out, or have a subject of its own.
  private static func subject(_ event: ReceivedEvent, _ data: [UInt8], _ envelope: Envelope) -> String? {
    if let subject = envelope.subject, TransactionSubject(subject) != nil { return subject }
    guard case .payment(let payment) = event, payment.transaction != nil else { return envelope.subject }
    return ReceivedRecord(event, data: data).subject?.text ?? envelope.subject
  }

  struct Context {
    let record: Incoming
    let event: ReceivedEvent
    let data: [UInt8]
    var subject: String?
    let moment: Moment
    let facts: any Facts

    /// The time that proofs are judged by: the record's, or the time at which it was to come back from `parked`. Both
    /// stand in the log, so a second run judges by the same.
    var time: Instant { moment.parking?.notBefore ?? record.timestamp }

    /// For what is not about the transaction that the record was sent for.
    var aside: Context {
      var context = self
      context.subject = nil
      return context
    }

    func emit(_ event: VerifiedEvent, key: String) -> Action {
      .emit(Outgoing(topic: .verified, key: key, type: event.type, subject: subject, data: event.data))
    }
  }

  private func noted(_ context: Context) -> [Action] {
    // Other producers choose keys of their own; behind this stage each fact lies where its purchase or account does.
    let key = ReceivedRecord(context.event, data: context.data).key
    return [context.emit(.noted(FactNoted(type: context.event.type, data: context.data)), key: key)]
  }

  private func payment(_ payment: PaymentReported, _ context: Context) -> [Action] {
    let bytes = payment.appReceipt.map { Array($0.utf8) }
    let answer = bytes.flatMap { judge.verifyReceiptQuestion($0) }.flatMap { context.facts.answer($0) }
    let fault = judge.verifyReceiptFault(answer)
    // A signed transaction beside it has its verdict all the same; without one the record is for people.
    if let fault, payment.signedTransaction == nil { return [.quarantine(reason: fault, alarm: nil)] }
    var receipt: Verdict?
    if let bytes, fault == nil {
      receipt = judge.judge(
        receipt: bytes, device: payment.device.map { .identifier($0) }, source: .client, at: context.time,
        revocation: RevocationCheck(now: context.moment.now, answer: context.facts.answer), answer: answer)
    }
    guard let proof = payment.signedTransaction else {
      return receipt.map { self.receipt($0, payment, context, isBeside: false) } ?? noted(context)
    }
    let report = Report(
      type: payment.type, account: payment.account, attempt: payment.attempt, product: payment.product,
      transaction: payment.transaction)
    var verdict = judge.judge(
      proof, expecting: .transaction, source: .client, at: context.time,
      revocation: RevocationCheck(now: context.moment.now, answer: context.facts.answer))
    let said = StatedPurchase(payment)
    if case .verified(let verified) = verdict, let mismatch = said.mismatch(verified) {
      verdict = .rejected(
        RejectedProof(
          reason: .claim(mismatch), field: nil, digest: verified.digest, explanation: mismatch.explanation,
          evidence: verified.evidence.with((StatedPurchase.name, said.json))))
    }
    verdict = verdict.carrying(proof)
    guard let receipt else {
      let own = actions(verdict, report, stated: payment.environment, context)
      return own + (fault.map { [.quarantine(reason: $0, alarm: nil)] } ?? [])
    }
    // The record waits as a whole: what can be told already is told once, with the rest.
    if case .pending = verdict { return actions(verdict, report, stated: payment.environment, context) }
    let beside = self.receipt(receipt, payment, context, isBeside: true)
    if case .pending = receipt { return beside }
    let own = actions(verdict, report, stated: payment.environment, context)
    for action in own { if case .quarantine = action { return own } }
    for action in beside { if case .quarantine = action { return beside } }
    return own + beside
  }

  private func notification(_ notified: StoreNotified, _ context: Context) -> [Action] {
    let source: RevisionSource = notified.isBackfill ? .backfill : .notification
    let proof = notified.signedPayload
    let verdict = judge.judge(
      proof, expecting: .notification, source: source, at: context.time,
      revocation: RevocationCheck(now: context.moment.now, answer: context.facts.answer))
    return actions(verdict.carrying(proof), Report(type: .storeNotified), stated: nil, context)
  }

  func actions(_ verdict: Verdict, _ report: Report, stated: Environment?, _ context: Context) -> [Action] {
    switch verdict {
    case .verified(let proof):
      let key =
        proof.originalTransaction.map { ReceivedRecord.key(proof.environment, $0) }
        ?? ReceivedRecord(context.event, data: context.data).key
      let event = PurchaseVerified(
        environment: proof.environment, kind: proof.kind, proof: proof.digest, signedDate: proof.signedDate,
        parts: proof.parts, notification: proof.notification, body: proof.body, report: report, evidence: proof.evidence
      )
      return [context.emit(.verified(event), key: key)]
    case .rejected(let proof):
      if let reason = Self.unattributable(proof) { return [.quarantine(reason: reason, alarm: nil)] }
      let received = ReceivedRecord(context.event, data: context.data)
      let event = PurchaseRejected(
        environment: stated ?? received.environment, proof: proof.digest, reason: proof.reason.code,
        explanation: proof.explanation, report: report, evidence: proof.evidence)
      return [context.emit(.rejected(event), key: received.key)]
    case .pending(let proof): return pending(proof, report, stated: stated, context)
    }
  }

  /// Authentic, but without the field by which it would be told whose it is, or whether it was seen before. That is
  /// neither a forgery nor anything to act on: a person must look.
  private static func unattributable(_ proof: RejectedProof) -> String? {
    guard proof.reason == .claim(.missingField), let field = proof.field,
      let name = field.split(separator: ".").last, name == "bundleId" || name == "notificationUUID"
    else { return nil }
    return "\(field): is missing in an authentic proof"
  }
}
