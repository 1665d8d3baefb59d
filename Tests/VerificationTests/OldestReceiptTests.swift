import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

private struct Answers: Facts {
  let answers: [AppStoreQuestion: AppStoreAnswer]
  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { answers[question] }
  func row(_ key: RowKey) -> Row? { nil }
  func rows(_ need: Need) -> [Row] { [] }
}

/// Receipts of the oldest kind: the App Store is asked, and its answer is judged.
struct OldestReceiptTests {
  private let stage: VerificationStage
  private let judge: ProofJudge
  private static let text =
    "{\n\t\"signature\" = \"c2ln\";\n\t\"purchase-info\" = \"aW5mbw==\";\n\t\"pod\" = \"100\";\n}"
  private let receipt = Base64.encode(Array(text.utf8))

  init() throws {
    let settings = try VerificationSettings(
      apps: [.init(bundleID: TestStore.bundleID, appAppleID: TestStore.appAppleID)], anchors: TestStore.shared.anchors,
      receiptAnchors: TestReceipt.signer.anchors)
    stage = VerificationStage(settings)
    judge = ProofJudge(settings)
  }

  private func body(_ more: String, bundle: String = TestStore.bundleID) -> String {
    #"{"status":0,"receipt":{"transaction_id":"1000","original_transaction_id":"1000","product_id":"coins","quantity":"2","#
      + #""bid":"\#(bundle)","purchase_date_ms":"1375340400000"\#(more)}}"#
  }

  private func given(_ body: String, _ environment: PurchasesCore.Environment = .production) -> AppStoreAnswer {
    .given(AppStoreResponse(body: Array(body.utf8), at: TestStore.now, environment: environment))
  }

  private func judged(_ answer: AppStoreAnswer?, receipt: String? = nil) -> Verdict {
    judge.judge(receipt: Array((receipt ?? self.receipt).utf8), at: TestStore.now, answer: answer)
  }

  private func decide(_ answer: AppStoreAnswer?, more: String = "") throws -> (questions: [AppStoreQuestion], [Action])
  {
    let data =
      #"{"environment":"Production","account":"a1","transactionId":"1000","appReceipt":"\#(receipt)"\#(more)}"#
    let received = try ReceivedRecord(type: .paymentPurchased, data: Array(data.utf8))
    let record = received.record(source: "/test", at: TestStore.now)
    let incoming = Incoming(
      stored: StoredRecord(
        coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0), record: record),
      topic: .received, envelope: .success(try Envelope(reading: record)))
    let moment = Moment(now: TestStore.now)
    let questions = stage.questions(incoming, moment)
    var answers: [AppStoreQuestion: AppStoreAnswer] = [:]
    if let question = questions.first, let answer { answers[question] = answer }
    return (questions, stage.decide(incoming, Answers(answers: answers), moment))
  }

  @Test func theStoreIsAskedForThisKindOnly() throws {
    #expect(try decide(nil).questions == [.receipt(Array(receipt.utf8))])
    // The same question, whether it came as base64, with line breaks in it, or as the text itself.
    let broken = String(receipt.prefix(10)) + "\r\n" + String(receipt.dropFirst(10))
    for form in [receipt, broken, Self.text] {
      #expect(judge.verifyReceiptQuestion(Array(form.utf8)) == .receipt(Array(receipt.utf8)))
    }
    for other in ["", "e30=", "eyJhbGciOiJFUzI1NiJ9.e30.c2ln", TestReceipt().base64] {
      #expect(judge.verifyReceiptQuestion(Array(other.utf8)) == nil)
    }
  }

  @Test func aGenuineOneIsVerifiedWithTheAnswerAsItsEvidence() throws {
    for (status, answer) in [("0", body("")), ("21006", body(#","expires_date":"1400000000000""#))] {
      let body = answer.replacing(#""status":0"#, with: #""status":\#(status)"#)
      guard case .verified(let proof) = judged(given(body)) else {
        Issue.record("\(status) is genuine")
        return
      }
      #expect(proof.kind == .appReceipt && proof.environment == .production && proof.signedDate == TestStore.now)
      #expect(proof.purchases.map(\.transaction.text) == ["1000"])
      #expect(proof.purchases.first?.quantity == 2)
      let evidence = try #require(proof.evidence["verifyReceipt"])
      #expect(evidence["body"]?.string == body)
      #expect(evidence["environment"]?.string == "Production")
      #expect(evidence["at"]?.int64 == TestStore.now.milliseconds)
    }
    guard case .verified(let proof) = judged(given(body(""), .sandbox)) else {
      Issue.record("App Review buys in the sandbox")
      return
    }
    #expect(proof.environment == .sandbox)
  }

  @Test func theNewestStateOfEachTransactionCounts() {
    let more =
      #"},"latest_receipt_info":{"transaction_id":"1000","original_transaction_id":"1000","product_id":"coins","#
      + #""quantity":"2","purchase_date_ms":"1375340400000","cancellation_date_ms":"1375340500000"},"x":{"#
    guard case .verified(let proof) = judged(given(body(more))) else {
      Issue.record("genuine")
      return
    }
    #expect(proof.purchases.count == 1)
    #expect(proof.purchases.first?.revocationDate?.milliseconds == 1_375_340_500_000)
  }

  @Test func eachAnswerHasItsVerdict() {
    let unknown = "pending:verify-receipt-unknown"
    let malformed = Base64.encode(Array(#"{ "purchase-info" = "not base64"; }"#.utf8))
    for (answer, code) in [
      (nil, "pending:needs-verify-receipt"), (.unavailable("an outage"), unknown),
      (given(#"{"status":21003}"#), "receipt-not-authentic"), (given(#"{"status":21010}"#), "receipt-account-unknown"),
      (given(#"{"status":21002}"#), unknown), (given(#"{"status":21005}"#), unknown),
      (given(#"{"status":"0"}"#), unknown),
      (given(#"{"status":21011}"#), unknown), (given("{}"), unknown), (given("<html>"), unknown),
      (given(#"{"status":21004}"#), unknown), (given(body("", bundle: "com.other")), "wrong-bundle"),
      (given(#"{"status":0,"receipt":{}}"#), "missing-field"),
    ] as [(AppStoreAnswer?, String)] {
      #expect(judged(answer).code == code, "\(String(describing: answer))")
    }
    // What Apple calls malformed is refused only where it is malformed by our own reading too.
    #expect(judged(given(#"{"status":21002}"#), receipt: malformed).code == "receipt-oldest-malformed")
    #expect(judged(.given(AppStoreResponse(body: Array(body("").utf8), at: TestStore.now))).code == unknown)
  }

  @Test func aContradictionIsForPeople() throws {
    for body in [
      #"{"status":21007}"#, #"{"status":21008}"#, #"{"status":21199,"is_retryable":false}"#,
      #"{"status":0,"environment":"Sandbox","receipt":{"bid":"x"}}"#,
    ] {
      let actions = try decide(given(body)).1
      guard actions.count == 1, case .quarantine(let reason, _) = actions[0] else {
        Issue.record("\(body): \(actions)")
        return
      }
      #expect(reason.hasPrefix("verifyReceipt: "))
    }
  }

  @Test func whatCannotBeToldIsParkedAndComesBack() throws {
    let parked = try decide(.unavailable("an outage")).1
    #expect(parked.contains { if case .park(_, let reason) = $0 { reason == "verify-receipt-unknown" } else { false } })
    let verified = try decide(given(body(""))).1
    let events = try verified.compactMap { action -> VerifiedEvent? in
      if case .emit(let outgoing) = action { try VerifiedEvent(type: outgoing.type, data: outgoing.data) } else { nil }
    }
    #expect(events.count == 1)
    guard case .verified(let data) = events.first else {
      Issue.record("no verdict")
      return
    }
    #expect(data.report.account?.text == "a1")
    #expect(data.report.transaction?.text == "1000")
  }
}
