import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Testing

/// Every shape that Apple has sent.
struct VerifyReceiptShapeTests {
  private func read(_ text: String) throws -> VerifyReceiptAnswer {
    try VerifyReceiptAnswer(parsing: Array(text.utf8), from: .production)
  }

  @Test(arguments: [
    #""transaction_id":"100","original_transaction_id":"99","web_order_line_item_id":"7","quantity":"2""#,
    #""transaction_id":100,"original_transaction_id":99,"web_order_line_item_id":7,"quantity":2"#,
  ])
  func idsAreTextHoweverTheyAreWritten(fields: String) throws {
    let entry = try #require(try read(#"{"latest_receipt_info":[{\#(fields)}]}"#).latest.first)
    #expect(entry.transaction == "100")
    #expect(entry.originalTransaction == "99")
    #expect(entry.webOrderLineItem == "7")
    #expect(entry.quantity == 2)
  }

  @Test func idsAboveTwoToTheFiftyThirdKeepEachDigit() throws {
    let entry = try read(#"{"latest_receipt_info":{"transaction_id":9007199254740993}}"#).latest.first
    #expect(entry?.transaction == "9007199254740993")
  }

  @Test(arguments: [
    (#""latest_receipt_info":{"product_id":"a"}"#, ["a"], 0),
    (#""latest_receipt_info":[{"product_id":"a"}]"#, ["a"], 0),
    (#""latest_receipt_info":[]"#, [], 0), (#""latest_receipt_info":{}"#, [], 0),
    (#""latest_receipt_info":null"#, [], 0),
    (#""other":1"#, [], 0), (#""latest_expired_receipt_info":{"product_id":"b"}"#, ["b"], 0),
    (#""latest_receipt_info":{"product_id":"a"},"latest_expired_receipt_info":[{"product_id":"b"}]"#, ["a", "b"], 0),
    (#""latest_receipt_info":"text""#, [], 1), (#""latest_receipt_info":[1,{"product_id":"a"},null]"#, ["a"], 2),
  ])
  func latestInEachShape(member: String, products: [String], unreadable: Int) throws {
    let answer = try read("{\(member)}")
    #expect(answer.latest.map(\.product) == products)
    #expect(answer.unreadable == unreadable)
  }

  @Test(
    arguments: [
      ("true", true), ("false", false), (#""true""#, true), (#""false""#, false), (#""True""#, true), (#""1""#, true),
      (#""0""#, false), ("1", true), ("0", false), ("null", nil), (#""maybe""#, nil), ("[]", nil),
    ] as [(String, Bool?)])
  func flagsInEachSpelling(value: String, expected: Bool?) throws {
    let answer = try read(
      #"{"latest_receipt_info":[{"is_trial_period":\#(value)}],"pending_renewal_info":[{"is_in_billing_retry_period":\#(value)}]}"#
    )
    #expect(answer.latest.first?.isTrialPeriod == expected)
    #expect(answer.renewals.first?.isInBillingRetry == expected)
  }

  @Test(
    arguments: [
      (#""expires_date_ms":"1375340400000""#, 1_375_340_400_000),
      (#""expires_date_ms":1375340400000"#, 1_375_340_400_000),
      (#""expires_date":"2013-08-01 07:00:00 Etc/GMT""#, 1_375_340_400_000),
      // The oldest form: milliseconds under the plain name.
      (#""expires_date":"1375340400000""#, 1_375_340_400_000),
      (#""expires_date_ms":"1375340400000","expires_date":"2020-01-01 00:00:00 Etc/GMT""#, 1_375_340_400_000),
      (#""expires_date":"2024-02-30 07:00:00 Etc/GMT""#, nil), (#""expires_date":"""#, nil),
      (#""expires_date_pst":"2013-08-01 00:00:00 America/Los_Angeles""#, nil), (#""expires_date_ms":"soon""#, nil),
    ] as [(String, Int64?)])
  func datesInEachForm(member: String, expected: Int64?) throws {
    #expect(try read("{\"latest_receipt_info\":[{\(member)}]}").latest.first?.expiresDate?.milliseconds == expected)
  }

  @Test func theReceiptItself() throws {
    let answer = try read(
      #"{"status":0,"environment":"Production","latest_receipt":"bmV3","receipt":{"receipt_type":"Production","#
        + #""adam_id":1234,"app_item_id":1234,"bundle_id":"com.example.app","application_version":"5","#
        + #""original_application_version":"1.0","receipt_creation_date_ms":"1700000000000","#
        + #""request_date_ms":"1700000001000","in_app":[{"transaction_id":"1","cancellation_date_ms":"5","#
        + #""cancellation_reason":"1","app_account_token":"7F9C24E5-1c7a-4f0e-9a64-0d6c3b0c2f11","#
        + #""in_app_ownership_type":"FAMILY_SHARED","new_member":{"a":1}}]},"#
        + #""pending_renewal_info":[{"auto_renew_product_id":"p","auto_renew_status":"1","expiration_intent":"2","#
        + #""grace_period_expires_date_ms":"6","original_transaction_id":1}]}"#)
    #expect(answer.appAppleID == "1234")
    #expect(answer.receiptType == "Production")
    #expect(answer.receiptCreationDate?.milliseconds == 1_700_000_000_000)
    #expect(answer.requestDate?.milliseconds == 1_700_000_001_000)
    #expect(answer.latestReceipt == "bmV3")
    let purchase = try #require(answer.purchases.first)
    #expect(purchase.cancellationDate?.milliseconds == 5)
    #expect(purchase.cancellationReason == 1)
    #expect(purchase.ownershipType == "FAMILY_SHARED")
    #expect(purchase.raw["new_member"]?["a"]?.int64 == 1)
    let renewal = try #require(answer.renewals.first)
    #expect(renewal.autoRenewStatus == 1)
    #expect(renewal.expirationIntent == 2)
    #expect(renewal.gracePeriodExpiresDate?.milliseconds == 6)
    #expect(renewal.originalTransaction == "1")
  }

  @Test(arguments: [
    #"{"receipt":{"in_app":[]}}"#, #"{"receipt":{}}"#, #"{"receipt":null}"#, #"{"status":0}"#, #"{"receipt":[]}"#,
  ])
  func nothingBoughtIsNoError(body: String) throws {
    let answer = try read(body)
    #expect(!answer.holdsPurchases)
    #expect(answer.unreadable == 0)
    #expect(answer.listsPurchases == body.contains("in_app"))
  }

  @Test(arguments: ["", "{}", "[]", "null", #"{"status":0"#, "<html>"])
  func whatIsNoAnswerIsRefused(body: String) {
    #expect(throws: FieldFailure.self) { try read(body) }
  }

  @Test func theAnswerAgreesWithItsServerOrSaysNothing() throws {
    #expect(try read(#"{"status":0}"#).agrees)
    #expect(try read(#"{"status":0,"environment":"Production"}"#).agrees)
    #expect(try !read(#"{"status":0,"environment":"Sandbox"}"#).agrees)
  }
}
