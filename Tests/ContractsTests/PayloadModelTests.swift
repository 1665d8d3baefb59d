import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

/// Every payload that Apple signs, in its model. What stands here is made up after Apple's pages; the payloads that Apple
/// publishes are judged in VerificationTests.
struct PayloadModelTests {
  func read<Model: PayloadModel>(_ text: String, _: Model.Type = Model.self) throws -> PayloadReading<Model> {
    PayloadReading(try JSONDocument(parsing: Array(text.utf8)).root)
  }

  @Test func aPurchaseForSeveral() throws {
    let reading = try read(
      """
      {"transactionId":"900000000000000001","originalTransactionId":"900000000000000000","quantity":12,"price":7990,
       "currency":"EUR","inAppOwnershipType":"PURCHASED","transactionReason":"PURCHASE","appTransactionId":"71134",
       "additionalTransactionReason":"SEAT_ADDITION","type":"Auto-Renewable Subscription",
       "multiSeatInfo":{"invitationManagement":"DEVELOPER","revokedSeatQuantity":2,
         "priceTiers":[{"price":9990,"quantity":4},{"price":6990,"quantity":8}]}}
      """, SignedTransaction.self)
    let model = reading.model
    #expect(reading.findings.isEmpty)
    #expect(model.transactionID == "900000000000000001" && model.quantity == 12 && model.appTransactionID == "71134")
    #expect(model.additionalTransactionReason == .known(.seatAddition) && model.ownershipType == .known(.purchased))
    #expect(model.multiSeat?.invitationManagement == .known(.developer) && model.multiSeat?.revokedSeats == 2)
    #expect(model.multiSeat?.priceTiers?.map(\.price) == [9990, 6990])
    #expect(model.multiSeat?.priceTiers?.compactMap(\.quantity).reduce(0, +) == 12)
    #expect(model.revocationDate == nil)
  }

  @Test func anAssignedSeatThatWasTakenBack() throws {
    let model = try read(
      """
      {"inAppOwnershipType":"ASSIGNED","revocationDate":1698148950000,"revocationType":"ASSIGNMENT_REVOKE",
       "revocationPercentage":100000,"revocationReason":0}
      """, SignedTransaction.self
    ).model
    #expect(model.ownershipType == .known(.assigned) && model.revocationType == .known(.assignmentRevoke))
    #expect(model.revocationReason == .known(.other) && model.revocationPercentage == 100_000)
    #expect(model.revocationDate == Instant(milliseconds: 1_698_148_950_000))
  }

  @Test func advancedCommerceItemsByStockKeepingUnit() throws {
    let reading = try read(
      """
      {"advancedCommerceInfo":{"requestReferenceId":"r","taxRate":"0.15","taxExclusivePrice":8490,"estimatedTax":1500,
       "items":[{"SKU":"a","price":1},{"SKU":"b","price":9990,"offer":{"reason":"WIN_BACK","price":0,"period":"P1M",
         "periodCount":1},"refunds":[{"refundAmount":5000,"refundDate":1698149100000,"refundReason":"LEGAL",
         "refundType":"CUSTOM","revokedSeatQuantity":1}]}]}}
      """, SignedTransaction.self)
    #expect(reading.findings.isEmpty)
    let info = try #require(reading.model.advancedCommerce)
    let item = try #require(info.item(sku: "b"))
    #expect(item.price == 9990 && item.offer?.reason == .known(.winBack) && info.taxRate == "0.15")
    let refund = try #require(item.refunds?.first)
    #expect(refund.amount == 5000 && refund.type == .known(.custom) && refund.reason == .known(.legal))
    #expect(refund.revokedSeats == 1 && info.item(sku: "c") == nil)
  }

  @Test func renewalInfoOfACommitment() throws {
    let reading = try read(
      """
      {"renewalQuantity":8,"multiSeatInfo":{"renewalPriceTiers":[{"price":9990,"quantity":8}]},"offerType":5,
       "renewalBillingPlanType":"MONTHLY","eligibleWinBackOfferIds":["a","b"],"autoRenewStatus":0,"expirationIntent":3,
       "commitmentInfo":{"commitmentAutoRenewStatus":1,"commitmentRenewalDate":1698149500000,
         "commitmentRenewalPrice":9990,"commitmentRenewalBillingPlanType":"BILLED_UPFRONT"}}
      """, SignedRenewalInfo.self)
    let model = reading.model
    #expect(reading.findings.isEmpty)
    #expect(model.renewalQuantity == 8 && model.multiSeat?.renewalPriceTiers?.count == 1)
    #expect(model.offerType == .known(.retention) && model.eligibleWinBackOfferIDs == ["a", "b"])
    #expect(model.autoRenewStatus == .known(.off) && model.expirationIntent == .known(.noConsentToPriceIncrease))
    #expect(model.commitment?.billingPlanType == .known(.billedUpFront))
    #expect(model.commitment?.renewalDate == Instant(milliseconds: 1_698_149_500_000))
  }

  @Test func aTokenAndASummary() throws {
    let token = try read(
      """
      {"notificationType":"EXTERNAL_PURCHASE_TOKEN","subtype":"ACTIVE_TOKEN_REMINDER","externalPurchaseToken":{
       "externalPurchaseId":"SANDBOX_1","tokenCreationDate":1,"tokenExpirationDate":2,"tokenType":"LINK_OUT"}}
      """, SignedNotification.self)
    #expect(token.findings.isEmpty && token.model.subtype == .known(.activeTokenReminder))
    #expect(token.model.externalPurchaseToken?.tokenType == .known(.linkOut))
    #expect(token.model.externalPurchaseToken?.tokenExpirationDate == Instant(milliseconds: 2))
    let summary = try read(
      #"{"summary":{"succeededCount":5,"failedCount":1,"storefrontCountryCodes":["USA","DEU"]}}"#,
      SignedNotification.self)
    #expect(summary.model.summary?.storefrontCountryCodes == ["USA", "DEU"] && summary.model.summary?.failedCount == 1)
  }

  @Test(
    arguments: [
      ("1698148900000", 1_698_148_900_000), ("1698148900000.0", 1_698_148_900_000),
      ("1698148900000.999", 1_698_148_900_000), ("1.6981489e12", 1_698_148_900_000), ("-0.5", -1), ("0", 0),
    ] as [(String, Int64)])
  func datesAreCutTowardsThePast(_ written: String, _ milliseconds: Int64) throws {
    let model = try read(#"{"preorderDate":\#(written)}"#, SignedAppTransaction.self).model
    #expect(model.preorderDate == Instant(milliseconds: milliseconds))
  }

  @Test func unknownThingsAreKeptAndNamed() throws {
    let reading = try read(
      """
      {"notificationType":"BRAND_NEW","subtype":"NEVER_SEEN","future":{"x":1},
       "data":{"status":9,"environment":"Moon","novel":[1]}}
      """, SignedNotification.self)
    #expect(reading.model.type == .unknown("BRAND_NEW") && reading.model.type?.raw == "BRAND_NEW")
    #expect(reading.model.type?.known == nil && reading.model.data?.status == .unknown(9))
    #expect(reading.findings.unknownMembers.sorted() == ["data.novel", "future"])
    #expect(
      reading.findings.unknownValues.sorted() == ["data.environment", "data.status", "notificationType", "subtype"])
    #expect(reading.findings.unreadableMembers.isEmpty)
    let type = try read(#"{"type":"New Kind"}"#, SignedTransaction.self)
    #expect(type.model.type == .unknown("New Kind") && type.findings.unknownValues == ["type"])
  }

  @Test func whatIsNotOfItsKindIsNilAndNamed() throws {
    let reading = try read(
      """
      {"transactionId":17,"price":"9","isUpgraded":1,"purchaseDate":"today","offerType":"1","storefront":null,
       "revocationReason":1.5,"multiSeatInfo":[],
       "advancedCommerceInfo":{"items":[{"SKU":"a"},7,{"price":1.5}],"period":{}}}
      """, SignedTransaction.self)
    let model = reading.model
    #expect(model.transactionID == nil && model.price == nil && model.isUpgraded == nil && model.purchaseDate == nil)
    #expect(model.offerType == nil && model.revocationReason == nil && model.multiSeat == nil)
    #expect(model.advancedCommerce?.items?.count == 2)
    #expect(
      Set(reading.findings.unreadableMembers)
        == [
          "transactionId", "price", "isUpgraded", "purchaseDate", "offerType", "revocationReason", "multiSeatInfo",
          "advancedCommerceInfo.items[1]", "advancedCommerceInfo.items[2].price", "advancedCommerceInfo.period",
        ])
  }

  @Test(arguments: ["{}", "[]", "null", "7", #""x""#, "[{}]"]) func anythingReads(_ text: String) throws {
    #expect(try read(text, SignedTransaction.self).model.transactionID == nil)
    #expect(try read(text, SignedNotification.self).findings.isEmpty)
  }

  /// Whatever value stands under whatever name: a model comes out, and what it can't hold is named once.
  @Test func readingIsTotal() throws {
    var random = SeededRandom.seeded("payloads")
    let values = [
      "null", "true", "1", "-1", "1.5", "1e400", "99999999999999999999999", #""""#, #""x""#, "[]", "{}", "[[{}]]",
      #"{"items":[{"refunds":[{"refundDate":"x"}]}]}"#, #"[{"price":1},{"price":{}}]"#, #""MONTHLY""#,
    ]
    var members = SignedTransaction.members
    members += SignedRenewalInfo.members
    members += SignedAppTransaction.members
    members += SignedNotification.members
    members += NotificationData.members
    let names: [String] = members.map(\.name) + ["novel", "x"]
    for _ in 0..<2000 {
      var members: [String: String] = [:]
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        members[names.randomElement(using: &random) ?? "x"] = values.randomElement(using: &random) ?? "1"
      }
      let text = "{" + members.map { #""\#($0.key)":\#($0.value)"# }.joined(separator: ",") + "}"
      for findings in [
        try read(text, SignedTransaction.self).findings, try read(text, SignedRenewalInfo.self).findings,
        try read(text, SignedAppTransaction.self).findings, try read(text, SignedNotification.self).findings,
      ] {
        let named = findings.unknownMembers + findings.unknownValues + findings.unreadableMembers
        #expect(Set(named).count == named.count, "\(text)")
      }
    }
  }
}
