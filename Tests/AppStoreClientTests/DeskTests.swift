import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesLocalAppStore
import Testing

/// The port as the runner uses it.
@Suite(.timeLimit(.minutes(1)))
struct DeskTests {
  let apple: AppleFixture
  init() throws { apple = try AppleFixture() }

  private func question(_ text: String) -> AppStoreQuestion { .receipt(Array(text.utf8)) }

  @Test func eachQuestionHasAnAnswer() throws {
    let body = Array(#"{"status":0,"environment":"Production"}"#.utf8)
    for index in 0..<30 { apple.books.issue(receipt: "cmVj\(index)", in: .production, answer: body) }
    let desk = AppStoreDesk(receipts: try apple.receipts(), clock: apple.clock)
    let revocation = AppStoreQuestion.revocation(of: [1], issuer: [2])
    let binary = AppStoreQuestion.receipt([0xFF])
    let questions = (0..<30).map { question("cmVj\($0)") } + [revocation, binary]
    let answers = desk.answers(to: questions + questions)
    #expect(answers.count == 32)
    for index in 0..<30 {
      #expect(
        answers[question("cmVj\(index)")]
          == .given(AppStoreResponse(body: body, at: apple.clock.now(), environment: .production)))
    }
    for question in [revocation, binary] {
      guard case .unavailable = answers[question] else {
        Issue.record("nobody could have told")
        return
      }
    }
  }

  @Test func whatSaysSomethingIsGivenAndAllElseIsNot() throws {
    let script = try #require(apple.servers.outages[.production])
    let desk = AppStoreDesk(receipts: try apple.receipts(failures: 1_000), clock: apple.clock)
    func status(_ answer: AppStoreAnswer?) throws -> VerifyReceiptStatus? {
      guard case .given(let response) = answer else { return nil }
      return try VerifyReceiptAnswer(parsing: response.body, from: try #require(response.environment)).status
    }
    for (number, given) in [
      (21_002, VerifyReceiptStatus.malformedOrBusy), (21_003, .notAuthentic), (21_010, .accountUnknown),
    ] as [(Int64, VerifyReceiptStatus)] {
      script.add(.receiptStatus(number, isRetryable: nil), times: number == 21_002 ? 3 : 1)
      #expect(try status(desk.answers(to: [question("cg==")])[question("cg==")]) == given)
    }
    script.add(.receiptStatus(21_199, isRetryable: false))
    #expect(try status(desk.answers(to: [question("cg==")])[question("cg==")]) == .notRetryable(21_199))
    script.add(.receiptStatus(21_007, isRetryable: nil))
    try #require(apple.servers.outages[.sandbox]).add(.receiptStatus(21_008, isRetryable: nil))
    #expect(try status(desk.answers(to: [question("cg==")])[question("cg==")]) == .isProduction)
    for outage in [
      Outage.status(503), .webPage, .emptyObject, .receiptStatus(21_000, isRetryable: nil),
      .receiptStatus(21_004, isRetryable: nil), .receiptStatus(21_005, isRetryable: nil),
      .receiptStatus(5, isRetryable: nil),
    ] {
      script.add(outage)
      guard case .unavailable(let reason) = desk.answers(to: [question("cg==")])[question("cg==")] else {
        Issue.record("\(outage) tells nothing of a receipt")
        return
      }
      #expect(!reason.contains("cg=="))
    }
  }

  @Test func whoeverIsNotSetUpSaysSo() {
    let desk = AppStoreDesk(receipts: nil, clock: apple.clock)
    guard case .unavailable = desk.answers(to: [question("cg==")])[question("cg==")] else {
      Issue.record("nobody was asked")
      return
    }
  }
}
