import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// What app receipts say folds beside what signed transactions say.
struct ReceiptFlowTests {
  private func event(
    _ parts: [AppReceipt.Purchase], signed: Int64, report: Report, proof: String
  ) throws -> VerifiedEvent {
    var receipt = AppReceipt()
    receipt.purchases = parts
    let date = Instant(milliseconds: signed)
    let told = try receipt.parts(digest: "receipt \(signed)", environment: .production, signed: date, source: .client)
    return .verified(
      PurchaseVerified(
        environment: .production, kind: .appReceipt, proof: proof, signedDate: date, parts: told.map(\.part),
        notification: nil, report: report, evidence: .null))
  }

  private func coins(cancelled: Int64? = nil) -> AppReceipt.Purchase {
    var purchase = AppReceipt.Purchase()
    purchase.product = "coins.100"
    purchase.transaction = "1"
    purchase.purchaseDate = Instant(milliseconds: 5)
    purchase.productType = 1
    purchase.cancellationDate = cancelled.map { Instant(milliseconds: $0) }
    return purchase
  }

  private func gist(_ events: [EntitlementEvent]) -> [String] { events.map { $0.type.rawValue } }

  @Test func aPurchaseInAReceiptIsGrantedOnceAndPermitted() throws {
    let world = World()
    let account = try #require(Account("u1"))
    let name = AppReceipt.digest(ofReceipt: "receipt 10", transaction: "1")
    let report = Report(
      type: .paymentPurchased, account: account, product: ProductID("coins.100"), transaction: TransactionID("1"))
    let granted = world.feed(
      try event([coins()], signed: 10, report: report, proof: name), key: "Production/1", at: 100)
    #expect(gist(granted) == ["credit.added", "payment.finishable"])
    // The same purchase by its signed transaction, and in a later receipt that says nothing new.
    let jws = SampleTransaction("1", original: "1", "coins.100", .consumable, signed: 11, purchased: 5)
    #expect(gist(world.feed(jws, by: "u1", at: 110)) == ["payment.finishable"])
    let later = try event(
      [coins()], signed: 20, report: Report(type: .paymentPurchased),
      proof: AppReceipt.digest(ofReceipt: "receipt 20", transaction: "1"))
    #expect(world.feed(later, key: "Production/1", at: 120).isEmpty)
    // A receipt that calls it cancelled takes it back.
    let cancelled = try event(
      [coins(cancelled: 25)], signed: 30, report: Report(type: .paymentPurchased), proof: "another")
    #expect(gist(world.feed(cancelled, key: "Production/1", at: 130)) == ["credit.removed"])
    #expect(world.quarantined.isEmpty)
  }

  /// C12
  @Test func aReceiptWithoutThePurchaseIsAnsweredAndGrantsNothing() throws {
    let world = World()
    let account = try #require(Account("u1"))
    let report = Report(type: .paymentPurchased, account: account, transaction: TransactionID("1"))
    let events = world.feed(
      try event([], signed: 10, report: report, proof: "name"), key: "Production/u1", at: 100)
    #expect(events.isEmpty)
    let row = world.entitlements.tables.row(
      RowKey(.permit, [.text("Production"), .text("u1"), .text("name")]))
    #expect(row?["status"].text == "refused" && row?["reason"].text == Permit.Reason.nothingBought)
  }
}
