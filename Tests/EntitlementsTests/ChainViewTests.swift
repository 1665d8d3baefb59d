import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

/// What is shown of a purchase: Apple's facts side by side, as of an instant.
@Suite struct ChainViewTests {
  private func part(_ kind: ProofKind, _ json: String, digest: String, source: RevisionSource = .notification)
    -> SignedPart
  {
    SignedPart(kind: kind, digest: digest, source: source, payload: Array(json.utf8))
  }

  private func view(_ parts: [SignedPart], at instant: Int64) throws -> ChainView {
    var row = ChainRow(environment: .production, originalTransaction: try #require(OriginalTransactionID("1")))
    for part in parts {
      switch part.kind {
      case .renewalInfo:
        _ = row.keep(ChainRow.Kept(part: nil, rank: try part.renewalRevision().rank, signed: part))
      default:
        let revision = try part.transactionRevision()
        _ = row.keep(ChainRow.Kept(part: revision.businessKey.part, rank: revision.rank, signed: part))
      }
    }
    // As the store has it.
    return try ChainView(try ChainRow(row.row), at: Instant(milliseconds: instant))
  }

  private func transaction(_ id: String, _ start: Int64, _ end: Int64, signed: Int64? = nil, _ more: String = "")
    -> SignedPart
  {
    part(
      .transaction,
      #"""
      {"transactionId":"\#(id)","originalTransactionId":"1","bundleId":"com.example.app","productId":"gold.monthly",
       "type":"Auto-Renewable Subscription","environment":"Production","signedDate":\#(signed ?? start),
       "purchaseDate":\#(start),"expiresDate":\#(end),"webOrderLineItemId":"9\#(id)",
       "subscriptionGroupIdentifier":"20","inAppOwnershipType":"PURCHASED","appTransactionId":"7040"\#(more)}
      """#, digest: "t\(id) \(signed ?? start) \(more.count)")
  }

  private func renewal(_ signed: Int64, _ more: String) -> SignedPart {
    part(
      .renewalInfo,
      #"""
      {"originalTransactionId":"1","productId":"gold.monthly","environment":"Production","signedDate":\#(signed)\#(more)}
      """#, digest: "r\(signed)")
  }

  private func milliseconds(_ value: Int64) -> Instant { Instant(milliseconds: value) }

  @Test func priceOfferAndPeriodAsSigned() throws {
    let trial =
      #","price":0,"currency":"EUR","offerType":1,"offerDiscountType":"FREE_TRIAL","offerPeriod":"P1W","offerIdentifier":"intro""#
    let view = try view(
      [transaction("1", 100, 1000, trial), transaction("2", 1000, 2000, #","price":9990,"currency":"EUR""#)], at: 500)
    #expect(view.purchase.paidThrough == milliseconds(1000))
    #expect(view.purchase.price == 0 && view.purchase.currency == "EUR")
    #expect(
      view.purchase.offer
        == ChainView.Offer(type: 1, isTrial: true, discountType: "FREE_TRIAL", identifier: "intro", period: "P1W"))
    #expect(view.purchase.appTransaction == "7040" && view.purchase.ownershipType == "PURCHASED")
    #expect(view.renewal == nil && view.pending.isEmpty && view.seats == nil)
    let later = try self.view(
      [transaction("1", 100, 1000, trial), transaction("2", 1000, 2000, #","price":9990,"currency":"EUR""#)], at: 1000)
    #expect(later.purchase.transaction.text == "2" && later.purchase.price == 9990 && later.purchase.offer == nil)
    #expect(later.purchase.signedAt == milliseconds(1000))
  }

  /// Each fact by itself: none of them is told by another.
  @Test func factsStandSideBySide() throws {
    let failing = try view(
      [
        transaction("1", 100, 1000),
        renewal(
          1000,
          #","autoRenewProductId":"gold.monthly","autoRenewStatus":1,"isInBillingRetryPeriod":true,"gracePeriodExpiresDate":1500,"expirationIntent":2,"renewalDate":1000,"renewalPrice":9990,"currency":"EUR""#
        ),
      ], at: 1200)
    let facts = try #require(failing.renewal)
    #expect(facts.autoRenews == true && facts.isInBillingRetry && facts.graceUntil == milliseconds(1500))
    #expect(facts.expirationIntent == 2 && facts.price == 9990 && facts.renewsAt == milliseconds(1000))
    #expect(failing.pending.isEmpty && failing.purchase.revokedAt == nil && !failing.purchase.isUpgraded)
    let revoked = try view(
      [
        transaction(
          "1", 100, 1000, signed: 600,
          #","revocationDate":550,"revocationReason":1,"revocationType":"REFUND_PRORATED","revocationPercentage":50000,"isUpgraded":true"#
        ), renewal(600, #","autoRenewStatus":0"#),
      ], at: 700)
    #expect(revoked.purchase.revokedAt == milliseconds(550) && revoked.purchase.revocationPercentage == 50_000)
    #expect(revoked.purchase.revocationType == "REFUND_PRORATED" && revoked.purchase.revocationReason == 1)
    #expect(revoked.purchase.isUpgraded && revoked.renewal?.autoRenews == false)
    // What is revoked has nothing left to change.
    #expect(revoked.pending.isEmpty)
  }

  @Test(
    arguments: [
      (#","autoRenewStatus":0,"autoRenewProductId":"silver""#, [("end", 1000, nil)]),
      (#","autoRenewStatus":1,"autoRenewProductId":"silver","renewalDate":1010"#, [("product", 1010, "silver")]),
      (#","autoRenewStatus":1,"autoRenewProductId":"silver""#, [("product", 1000, "silver")]),
      (#","autoRenewStatus":1,"autoRenewProductId":"gold.monthly""#, []),
      (#","autoRenewStatus":1,"priceIncreaseStatus":0"#, [("price-consent", 1000, nil)]),
      (#","autoRenewStatus":1,"priceIncreaseStatus":1"#, []),
    ] as [(String, [(String, Int64, String?)])])
  func pendingChangesHaveTheirDate(_ info: String, _ expected: [(String, Int64, String?)]) throws {
    let changes = try view([transaction("1", 100, 1000), renewal(500, info)], at: 600).pending
    #expect(changes.map(\.kind.rawValue) == expected.map(\.0))
    #expect(changes.map(\.at) == expected.map { milliseconds($0.1) })
    #expect(changes.map(\.to) == expected.map(\.2))
    // Said before the running period began: it has come about, or not.
    let later = try view(
      [transaction("1", 100, 1000), transaction("2", 1000, 2000), renewal(500, info)], at: 1100)
    #expect(later.pending.isEmpty)
  }

  @Test func seatsAreThoseOfThePeriodThatNobodyTookBack() throws {
    let parts = [
      transaction(
        "1", 100, 1000,
        #","quantity":5,"multiSeatInfo":{"revokedSeatQuantity":2},"additionalTransactionReason":"SEAT_ADDITION""#),
      transaction("2", 400, 1000, #","quantity":3,"multiSeatInfo":{},"additionalTransactionReason":"SEAT_ADDITION""#),
      transaction(
        "3", 500, 1000,
        #","quantity":9,"multiSeatInfo":{},"additionalTransactionReason":"SEAT_ADDITION","revocationDate":450"#),
      renewal(500, #","autoRenewStatus":1,"autoRenewProductId":"gold.monthly","renewalQuantity":4"#),
    ]
    let view = try view(parts, at: 600)
    #expect(view.seats == 6)
    #expect(
      try self.view(Array(parts[..<2]) + [renewal(500, #","autoRenewStatus":1,"renewalQuantity":4"#)], at: 600).pending
        .map(\.to) == ["4"])
    // The next period has its own.
    let next = transaction("4", 1000, 2000, #","quantity":4,"multiSeatInfo":{}"#)
    #expect(try self.view(parts + [next], at: 1000).seats == 4)
  }

  @Test func itemsWithTheirRefunds() throws {
    let items =
      #","advancedCommerceInfo":{"items":[{"SKU":"a","price":990},{"SKU":"b","price":500,"revocationDate":700,"refunds":[{"refundAmount":300,"refundType":"CUSTOM"},{"refundAmount":200}]},{"price":1}]}"#
    let view = try view([transaction("1", 100, 1000, signed: 800, items)], at: 900)
    #expect(
      view.purchase.items == [
        ChainView.Item(sku: "a", price: 990, revokedAt: nil, refunded: nil),
        ChainView.Item(sku: "b", price: 500, revokedAt: milliseconds(700), refunded: 500),
      ])
  }

  /// A receipt knows no price and says trials in its own way; where it is the newer one, its cancellation counts.
  @Test func whatAReceiptSaysIsTakenInWhereItIsNewer() throws {
    let listed = part(
      .appReceipt,
      #"""
      {"transactionId":"1","originalTransactionId":"1","productId":"gold.monthly","type":"Auto-Renewable Subscription",
       "environment":"Production","signedDate":900,"purchaseDate":100,"expiresDate":1000,"webOrderLineItemId":"91",
       "isTrialPeriod":true,"revocationDate":850}
      """#, digest: "r", source: .client)
    let alone = try view([listed], at: 950)
    #expect(alone.purchase.offer?.isTrial == true && alone.purchase.price == nil)
    let seats = transaction("1", 100, 1000, #","quantity":5,"price":10,"currency":"EUR","multiSeatInfo":{}"#)
    let both = try view([seats, listed], at: 950)
    #expect(both.purchase.price == 10 && both.purchase.revokedAt == milliseconds(850))
  }

  @Test func asJSON() throws {
    let view = try view(
      [
        transaction("1", 100, 1000, #","price":9990,"currency":"EUR""#),
        renewal(500, #","autoRenewStatus":0,"isInBillingRetryPeriod":false"#),
      ], at: 600)
    var writer = JSONWriter()
    view.write(&writer)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self)
        == #"{"originalTransactionId":"1","basis":"none","transactionId":"1","productId":"gold.monthly","type":"Auto-Renewable Subscription","ownershipType":"PURCHASED","subscriptionGroup":"20","appTransactionId":"7040","purchasedAt":"1970-01-01T00:00:00.100Z","paidThrough":"1970-01-01T00:00:01.000Z","upgraded":false,"quantity":1,"price":9990,"currency":"EUR","signedAt":"1970-01-01T00:00:00.100Z","autoRenews":false,"inBillingRetry":false,"renewalSignedAt":"1970-01-01T00:00:00.500Z","pendingChanges":[{"change":"end","at":"1970-01-01T00:00:01.000Z"}]}"#
    )
  }

  @Test func onlyOnesOwnChainsOfTheEnvironment() throws {
    let reader = InMemoryStoreReader()
    for (id, environment, account) in [
      ("1", Environment.production, "u1"), ("2", .sandbox, "u1"), ("3", .production, "u2"), ("4", .production, "u1"),
    ] {
      let sample = SampleTransaction(
        id, "pro.lifetime", .nonConsumable, signed: 10, purchased: 5, environment: environment)
      var row = ChainRow(environment: environment, originalTransaction: try #require(OriginalTransactionID(id)))
      row.account = Account(account)
      _ = row.keep(ChainRow.Kept(part: "once", rank: sample.revision.rank, signed: sample.part()))
      reader.put(row.row)
    }
    let account = try #require(Account("u1"))
    let chains = try reader.chains(.production, account, at: milliseconds(20))
    #expect(chains.views.map(\.originalTransaction.text) == ["1", "4"] && chains.areComplete)
    // Claimed before anything was bought: there is nothing to show.
    var claimed = ChainRow(environment: .production, originalTransaction: try #require(OriginalTransactionID("9")))
    claimed.account = account
    reader.put(claimed.row)
    #expect(try reader.chains(.production, account, at: milliseconds(20)).views.count == 2)
  }
}
