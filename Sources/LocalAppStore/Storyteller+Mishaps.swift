import PurchasesContracts
import PurchasesCore
import PurchasesJSON

extension Storyteller {
  private static let products = [
    DemoCatalogue.coins100, DemoCatalogue.coins550, DemoCatalogue.lifetime, DemoCatalogue.gold, DemoCatalogue.season,
  ]

  /// StoreKit's errors: mostly the user changed their mind (2).
  private mutating func failure() -> PaymentFailure {
    let code = random.chance(70) ? 2 : Int64(random.pick([0, 1, 3, 4, 5, 7]))
    return PaymentFailure(domain: "SKErrorDomain", code: code, userCancelled: code == 2)
  }

  private mutating func fail(_ attempt: String, _ product: Product, at: Instant) {
    var failed = payment(.paymentFailed, attempt, product, at: at)
    failed.failure = failure()
    report(.payment(failed), at: at)
    // A failed payment may be finished at once; the permit says so.
    let event = payment(.paymentFinished, attempt + "-f", product, at: after(at, minutes: 16))
    steps.append(
      Step(
        at: after(at, minutes: 16),
        action: .finish(
          Step.Report(event: .payment(event), proof: nil),
          permit: Step.Permit(environment: environment, account: account, name: .attempt(attempt)))))
  }

  mutating func tellOfAFailure() {
    let at = minute(random.within(Self.beginnings))
    let attempt = attempt()
    let product = random.pick(Self.products)
    report(.payment(payment(.paymentAdded, attempt, product, at: at)), at: at)
    fail(attempt, product, at: after(at, minutes: 1))
  }

  /// A child asks to buy: approved, declined, or never answered.
  mutating func tellOfAnApproval() {
    let at = minute(random.within(Self.beginnings))
    let attempt = attempt()
    // No coins here: the chapter about coins counts them.
    let product = random.chance(50) ? DemoCatalogue.skins : DemoCatalogue.lifetime
    report(.payment(payment(.paymentAdded, attempt, product, at: at)), at: at)
    report(.payment(payment(.paymentDeferred, attempt, product, at: after(at, minutes: 1))), at: after(at, minutes: 1))
    let answered = after(at, minutes: random.within(30...400))
    switch random.below(10) {
    case 0..<6:
      let transaction = newTransaction(product, at: answered)
      show(transaction, attempt, at: answered)
      notify("ONE_TIME_CHARGE", at: after(answered, minutes: 5), transaction: transaction)
    case 6..<9: fail(attempt, product, at: answered)
    default: break
    }
  }

  /// What must come to nothing.
  mutating func tellOfAForgery() {
    let at = minute(random.within(Self.beginnings))
    var transaction = newTransaction(DemoCatalogue.coins550, at: at)
    let proof: Proof
    switch random.below(9) {
    case 0..<5: proof = .forged(transaction, signed: at, random.pick(Proof.Forgery.allCases))
    case 5: proof = .garbage("eyJhbGciOiJFUzI1NiJ9.garbage-\(index).AAAA")
    case 6:
      transaction.bundleID = "com.example.other"
      proof = .transaction(transaction, signed: at)
    case 7:
      proof = .renewal(StoreRenewal(transaction: transaction, next: DemoCatalogue.gold), signed: at)
    default:
      let forged = StoreNotification(
        type: "ONE_TIME_CHARGE", subtype: nil, uuid: random.uuid(), signed: at, environment: environment,
        body: .data(transaction: transaction, renewal: nil))
      deliver(forged, isForged: true, at: at)
      return
    }
    let attempt = attempt()
    report(
      .payment(
        payment(.paymentPurchased, attempt, transaction.product, at: at, transaction: transaction)), proof, at: at)
    // The client asks, and must not be let go.
    finish(transaction, attempt, proof, at: after(at, minutes: 20))
  }

  /// What audit should notice: bought and never finished, finished without a purchase, a product nobody configured.
  mutating func tellOfCarelessness() {
    let at = minute(random.within(10...200))
    switch random.below(3) {
    case 0:
      let transaction = newTransaction(DemoCatalogue.skins, at: at)
      show(transaction, attempt(), at: at, finishes: false)
    case 1:
      let ghost = newTransaction(DemoCatalogue.coins100, at: at)
      report(.payment(payment(.paymentFinished, attempt(), ghost.product, at: at, transaction: ghost)), at: at)
    default:
      let transaction = newTransaction(DemoCatalogue.unlisted, at: at)
      show(transaction, attempt(), at: at, finishes: false)
      notify("ONE_TIME_CHARGE", at: after(at, minutes: 5), transaction: transaction)
    }
  }

  /// Notifications that are about no purchase, and some that nobody has heard of yet.
  mutating func tellOfTheStoreItself() {
    func body(_ more: (String, JSON)...) -> JSONObject {
      JSONObject(
        [
          ("environment", .string(environment.rawValue)), ("appAppleId", .integer(DemoCatalogue.appAppleID)),
          ("bundleId", .string(DemoCatalogue.bundleID)),
        ] + more)
    }
    let summary = body(
      ("requestIdentifier", .string("r-1")), ("productId", .string(DemoCatalogue.gold.id)),
      ("succeededCount", .integer(12)), ("failedCount", .integer(0)))
    let token: JSONObject = [
      "externalPurchaseId": .string((environment == .sandbox ? "SANDBOX_" : "") + random.uuid()),
      "tokenCreationDate": .integer(minute(20).milliseconds), "appAppleId": .integer(DemoCatalogue.appAppleID),
      "bundleId": .string(DemoCatalogue.bundleID),
    ]
    let app: JSONObject = [
      "appTransactionId": .string("7000000000000000001"), "appAppleId": .integer(DemoCatalogue.appAppleID),
      "bundleId": .string(DemoCatalogue.bundleID), "receiptType": .string(environment.rawValue),
      "receiptCreationDate": .integer(minute(25).milliseconds),
      "originalPurchaseDate": .integer(minute(1).milliseconds), "originalPlatform": .string("iOS"),
    ]
    let bodies: [(String, String?, StoreNotification.Body)] = [
      ("TEST", nil, .data(transaction: nil, renewal: nil)),
      ("RENEWAL_EXTENSION", "SUMMARY", .other(member: "summary", summary)),
      ("RESCIND_CONSENT", nil, .other(member: "appData", body(("signedAppTransactionInfo", .object(app))))),
      ("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED", .other(member: "externalPurchaseToken", token)),
      ("BRAND_NEW", "NEVER_SEEN", .data(transaction: nil, renewal: nil)),
    ]
    for (number, (type, subtype, body)) in bodies.enumerated() {
      let at = minute(30 + number)
      deliver(
        StoreNotification(
          type: type, subtype: subtype, uuid: random.uuid(), signed: at, environment: environment, body: body), at: at)
    }
  }
}
