import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

extension GoldenExamples {
  private var coinsReport: Report {
    get throws {
      Report(
        type: .paymentPurchased, account: ann, attempt: "pay-7731", product: try id("com.example.coins.100"),
        transaction: try id("2000000912345671"))
    }
  }

  private var facts: NotificationFacts {
    NotificationFacts(
      uuid: "002e14d5-51f5-4503-b5a8-c3a1af68eb20", type: "DID_RENEW", subtype: nil, version: "2.0",
      signedDate: Instant(milliseconds: 1_764_288_007_300))
  }

  private var goldParts: [SignedPart] {
    [gold.part(.transaction, .notification), goldInfo.part(.renewalInfo, .notification)]
  }

  /// A period that a newer statement had told before, and renewal info that had come before.
  private var overtakenParts: [SignedPart] {
    zip(goldParts, [SignedPart.Standing.superseded, .copy]).map { part, standing in
      var part = part
      part.standing = standing
      return part
    }
  }

  private func evidence(
    _ proof: Proof, judgedAt: Int64, signed: Int64, nested: JSON? = nil, carries: Bool = false
  ) -> JSON {
    var members: [(String, JSON)] = [
      ("verifier", .string("purchases-jws/1")), ("proof", .string(proof.digest)), ("judgedAt", .integer(judgedAt)),
      ("signedDate", .integer(signed)), ("chain", .string(SHA256.digest("chain").hex)),
      ("anchor", .string(SHA256.digest("anchor").hex)),
      (
        "revocation",
        .object(
          JSONObject([
            ("answer", .string("not-asked")),
            ("why", .string("this verifier judges offline and asks no responder")),
          ]))
      ),
    ]
    if let nested { members.append(("nested", nested)) }
    if carries { members.append(("proofText", .string(proof.jws))) }
    return .object(JSONObject(members))
  }

  func catalogue() throws -> CataloguePublished {
    let products = [
      CatalogueProduct(
        id: try id("com.example.coins.100"), terms: .consumable(try id("coins"), amount: 120), entitlements: []),
      CatalogueProduct(
        id: try id("com.example.gold.monthly"), terms: .autoRenewable(group: "membership", level: 1),
        entitlements: [try id("gold"), try id("silver")]),
      CatalogueProduct(
        id: try id("com.example.pro.lifetime"), terms: .nonConsumable, entitlements: [try id("pro")], sale: .withdrawn),
      CatalogueProduct(
        id: try id("com.example.season"), terms: .nonRenewing(try #require(CalendarDuration(iso8601: "P30D"))),
        entitlements: [try id("season")], sale: .init(from: try instant("2025-12-01T00:00:00Z"))),
    ]
    return CataloguePublished(
      catalogue: Catalogue(version: "2025-12", products: products), from: try instant("2025-12-01T00:00:00Z"),
      operatorName: "kim")
  }

  private var receiptReport: Report {
    get throws {
      Report(
        type: .paymentPurchased, account: ann, attempt: "pay-7735", product: try id("com.example.coins.100"),
        transaction: try id("2000000912345699"))
    }
  }

  private var receiptDigest: String { SHA256.digest(coinsReceipt).hex }
  private var receiptPurchase: String {
    AppReceipt.digest(ofReceipt: receiptDigest, transaction: "2000000912345699")
  }

  /// What the receipt of the received event says, read out of it.
  private func receipt() throws -> PurchaseVerified {
    let signed = try SignedData(parsing: #require(Base64.decode(coinsReceipt)))
    let receipt = try AppReceipt(content: signed.content)
    let date = try #require(receipt.creationDate)
    let parts = try receipt.parts(digest: receiptDigest, environment: environment, signed: date, source: .client)
    let evidence: JSON = .object(
      JSONObject([
        ("verifier", .string("purchases-receipt/1")), ("proof", .string(receiptDigest)),
        ("judgedAt", .integer(1_764_470_110_200)), ("signedDate", .integer(date.milliseconds)),
        ("chain", .string(SHA256.digest("chain").hex)), ("anchor", .string(SHA256.digest("anchor").hex)),
        (
          "revocation",
          .object(
            JSONObject([
              ("answer", .string("not-asked")),
              ("why", .string("this verifier judges offline and asks no responder")),
            ]))
        ),
        (
          "receipt",
          .object(
            JSONObject([
              ("digest", .string("SHA-256")), ("purchases", .integer(1)), ("unknownAttributes", .integer(2)),
              ("device", .string("checked")), ("applicationVersion", .string("412")),
              ("originalApplicationVersion", .string("300")),
            ]))
        ),
      ]))
    return PurchaseVerified(
      environment: environment, kind: .appReceipt, proof: receiptPurchase, signedDate: date,
      parts: parts.map(\.part), notification: nil, report: try receiptReport, evidence: evidence)
  }

  func verified() throws -> [String: VerifiedEvent] {
    let coinsSigned: Int64 = 1_764_469_784_512
    let goldSigned: Int64 = 1_764_288_007_250
    let judged: Int64 = 1_764_288_007_901
    let forgery = String(coins.jws.dropLast(2)) + "AA"
    let forged = SHA256.digest(forgery).hex
    let nested = JSON.object(
      JSONObject([
        ("signedTransactionInfo", evidence(gold, judgedAt: judged, signed: goldSigned)),
        ("signedRenewalInfo", evidence(goldInfo, judgedAt: judged, signed: goldSigned)),
      ]))
    return [
      "purchase.verified.v1": .verified(
        PurchaseVerified(
          environment: environment, kind: .transaction, proof: coins.digest,
          signedDate: Instant(milliseconds: coinsSigned), parts: [coins.part(.transaction, .client)], notification: nil,
          report: try coinsReport,
          evidence: evidence(coins, judgedAt: 1_764_469_785_302, signed: coinsSigned, carries: true))),
      "purchase.verified.v1.notification": .verified(
        PurchaseVerified(
          environment: environment, kind: .notification, proof: renewal.digest, signedDate: facts.signedDate,
          parts: goldParts, notification: facts, body: try renewal.body(),
          report: Report(type: .storeNotified),
          evidence: evidence(
            renewal, judgedAt: judged, signed: facts.signedDate.milliseconds, nested: nested))),
      "purchase.verified.v1.receipt": .verified(try receipt()),
      "purchase.rejected.v1": .rejected(
        PurchaseRejected(
          environment: environment, proof: forged, reason: "jws-signature-invalid",
          explanation: "The signature does not fit what was signed.", report: try coinsReport,
          evidence: .object(
            JSONObject([
              ("verifier", .string("purchases-jws/1")), ("proof", .string(forged)),
              ("judgedAt", .integer(1_764_469_785_302)), ("proofText", .string(forgery)),
            ])))),
      "purchase.pending.v1": .pending(
        PurchasePending(
          environment: environment, proof: pro.digest, reason: "signed-in-the-future", attempt: 1,
          nextTry: try instant("2025-11-30T02:30:00Z"),
          report: Report(
            type: .paymentRestored, account: bob, attempt: "pay-7734", product: try id("com.example.pro.lifetime"),
            transaction: try id("9123456789012345678")))),
      "fact.noted.v1": .noted(
        FactNoted(type: .creditSpendRequested, data: ReceivedEvent.spendRequested(try spend()).data)),
    ]
  }

  func owned() throws -> [String: OwnedEvent] {
    let lifetime: OriginalTransactionID = try id("9123456789012345678")
    func transferred(under account: Account, _ parts: [SignedPart]) -> OwnedEvent {
      .transferred(
        PurchaseTransferred(
          environment: environment, account: account, from: ann, to: bob, basis: .order, originalTransaction: lifetime,
          proof: nil, orderID: "order-33", report: nil, parts: parts))
    }
    var bobs = try coinsReport
    bobs.account = bob
    return [
      "purchase.owned.v1": .owned(
        PurchaseOwned(
          environment: environment, account: ann, basis: .token, originalTransaction: try id("2000000912345671"),
          proof: coins.digest, signedDate: Instant(milliseconds: 1_764_469_784_512), notification: nil,
          report: try coinsReport, parts: [coins.part(.transaction, .client)])),
      "purchase.owned.v1.notification": .owned(
        PurchaseOwned(
          environment: environment, account: ann, basis: .token, originalTransaction: try id("2000000912345601"),
          proof: renewal.digest, signedDate: facts.signedDate, notification: facts,
          report: Report(type: .storeNotified), parts: overtakenParts)),
      "purchase.transferred.v1": transferred(under: bob, [pro.part(.transaction, .client)]),
      "purchase.transferred.v1.from": transferred(under: ann, []),
      "purchase.unowned.v1": .unowned(
        PurchaseUnowned(
          environment: environment, originalTransaction: try id("2000000912345601"), proof: renewal.digest,
          signedDate: facts.signedDate, notification: facts, parts: goldParts)),
      "clock.ticked.v1": .ticked(
        ClockTicked(
          environment: environment, account: ann, instant: try instant("2025-12-28T00:00:00Z"),
          catalogueVersion: "2025-11", limit: 250, dueAt: try instant("2025-12-27T23:59:59Z"))),
      "consent.rescinded.v1": .consentRescinded(
        ConsentRescinded(
          environment: environment, appTransaction: try #require(AppTransactionID("9223372036854775999")),
          bundleID: "com.example.app", proof: "2a80ae026561f8fc332727ff71176fb33d45c24c43420f944b9fbb0e2eeae41b",
          signedDate: try instant("2025-11-30T00:00:00Z"),
          notification: NotificationFacts(
            uuid: "7b1f6a52-3c0e-4d55-9a7e-5f2d1c8b9e40", type: "RESCIND_CONSENT", subtype: nil, version: "2.0",
            signedDate: try instant("2025-11-30T00:00:00Z")))),
      "fact.noted.v1.owned": .noted(
        AccountFact(
          environment: environment, account: ann,
          fact: FactNoted(type: .creditSpendRequested, data: ReceivedEvent.spendRequested(try spend()).data))),
      "fact.noted.v1.owned.another-account": .noted(
        AccountFact(
          environment: environment, account: bob, outcome: .anotherAccount, reason: "another-account",
          proof: coins.digest, report: bobs)),
      "fact.noted.v1.owned.handed-on": .noted(
        AccountFact(
          environment: environment, account: bob, outcome: .handedOn, via: [ann],
          orderedAt: try instant("2025-11-30T08:00:00Z"),
          fact: FactNoted(type: .accessOrdered, data: try SchemaFolder.example("access.ordered.v1")))),
      "fact.noted.v1.owned.nothing-bought": .noted(
        AccountFact(
          environment: environment, account: ann, outcome: .nothingBought, reason: nil, proof: receiptPurchase,
          report: try receiptReport)),
    ]
  }
}
