import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// C21, and the rules about proofs inside a notification.
struct NotificationTests {
  let store = TestStore.shared

  func verdict(_ payload: JSONObject, at: Instant = TestStore.now) throws -> Verdict {
    try store.judge().judge(store.sign(payload), expecting: .notification, source: .notification, at: at)
  }

  func nested(_ transaction: JSONObject?, _ renewal: JSONObject? = nil) -> [String: JSON?] {
    var data: [String: JSON?] = [:]
    if let transaction { data["signedTransactionInfo"] = .string(store.sign(transaction)) }
    if let renewal { data["signedRenewalInfo"] = .string(store.sign(renewal)) }
    return data
  }

  @Test func partsAreVerifiedInTheirOwnRight() throws {
    let transaction = TestStore.transaction()
    let renewal = TestStore.renewal()
    let verified = try #require(try verdict(TestStore.notification(nested(transaction, renewal))).verified)
    #expect(verified.parts.map(\.kind) == [.transaction, .renewalInfo])
    #expect(verified.parts.allSatisfy { $0.source == .notification })
    #expect(verified.parts.map(\.digest) == [transaction, renewal].map { SHA256.digest(store.sign($0)).hex })
    #expect(verified.parts.map(\.payload) == [transaction, renewal].map { JSON.object($0).bytes })
    #expect(verified.originalTransaction?.text == "2000000900000001")
    #expect(verified.evidence["nested"]?["data.signedTransactionInfo"]?["chain"] != nil)
    #expect(verified.evidence["nested"]?["data.signedRenewalInfo"]?["signedDate"] != nil)
  }

  @Test func oneTimeChargeWithoutRenewalInfo() throws {
    let payload = TestStore.notification(
      nested(TestStore.transaction()), ["notificationType": .string("ONE_TIME_CHARGE")])
    #expect(try verdict(payload).verified?.parts.count == 1)
  }

  @Test func aForgedPartRejectsTheWhole() throws {
    let forged = store.sign(TestStore.transaction(), key: P256PrivateKey(seed: [8]))
    let rejected = try #require(
      try verdict(TestStore.notification(["signedTransactionInfo": .string(forged)])).rejected)
    #expect(rejected.reason.code == "jws-signature-invalid" && rejected.field == "data.signedTransactionInfo")
    let renewal = store.sign(TestStore.renewal(), chain: [store.leaf.der, store.root.der])
    #expect(try verdict(TestStore.notification(["signedRenewalInfo": .string(renewal)])).code == "chain-wrong-length")
    #expect(try verdict(TestStore.notification(["signedRenewalInfo": .integer(1)])).code == "malformed-field")
    #expect(try verdict(TestStore.notification(["signedRenewalInfo": .string("")])).code == "jws-wrong-segment-count")
  }

  @Test func partsAgreeWithTheBodyAroundThem() throws {
    let sandbox: [String: JSON?] = ["environment": .string("Sandbox")]
    func code(_ payload: JSONObject) throws -> String { try verdict(payload).code }
    // C05: outer says Sandbox, inner Production, and the other way round.
    var data = nested(TestStore.transaction())
    data["environment"] = .string("Sandbox")
    #expect(try code(TestStore.notification(data)) == "nested-environment-mismatch")
    #expect(try code(TestStore.notification(nested(TestStore.transaction(sandbox)))) == "nested-environment-mismatch")
    #expect(
      try code(TestStore.notification(nested(TestStore.transaction(), TestStore.renewal(sandbox))))
        == "nested-environment-mismatch")
    let other = TestStore.renewal(["originalTransactionId": .string("1")])
    #expect(
      try code(TestStore.notification(nested(TestStore.transaction(), other))) == "nested-transaction-mismatch")
    let nameless = TestStore.renewal(["originalTransactionId": nil])
    let rejected = try #require(try verdict(TestStore.notification(nested(nil, nameless))).rejected)
    #expect(rejected.field == "data.signedRenewalInfo.originalTransactionId")
    // Two apps of one deployment: the inner one is acceptable, but not in there.
    let judge = ProofJudge(
      try VerificationSettings(
        apps: [
          .init(bundleID: TestStore.bundleID, appAppleID: TestStore.appAppleID),
          .init(bundleID: "com.example.two", appAppleID: 2),
        ], anchors: store.anchors))
    let two = nested(TestStore.transaction(["bundleId": .string("com.example.two")]))
    #expect(
      judge.judge(store.sign(TestStore.notification(two)), at: TestStore.now).code == "nested-bundle-mismatch")
  }

  @Test func aPartOfAnotherKind() throws {
    let data: [String: JSON?] = ["signedTransactionInfo": .string(store.sign(TestStore.renewal()))]
    let rejected = try #require(try verdict(TestStore.notification(data)).rejected)
    #expect(rejected.reason.code == "wrong-kind" && rejected.field == "data.signedTransactionInfo")
    // No way into an endless nesting.
    let own: [String: JSON?] = ["signedTransactionInfo": .string(store.sign(TestStore.notification()))]
    #expect(try verdict(TestStore.notification(own)).code == "wrong-kind")
  }

  @Test func aPartFromTheFutureHoldsTheWholeBack() throws {
    let later = TestStore.transaction(["signedDate": .integer(TestStore.signed.milliseconds + 3_600_000)])
    #expect(
      try verdict(TestStore.notification(nested(later)), at: TestStore.signed).code
        == "pending:signed-in-the-future")
    #expect(try verdict(TestStore.notification(nested(later))).code == "verified")
  }

  @Test func kindsWithoutATransaction() throws {
    let test = TestStore.notification([:], ["notificationType": .string("TEST")])
    #expect(try verdict(test).verified?.notification?.type == "TEST")

    func with(_ member: String, _ body: JSONObject, _ type: String) -> JSONObject {
      var payload = TestStore.notification([:], ["notificationType": .string(type), "data": nil])
      payload[member] = .object(body)
      return payload
    }
    let summary: JSONObject = [
      "environment": .string("Production"), "appAppleId": .integer(TestStore.appAppleID),
      "bundleId": .string(TestStore.bundleID), "productId": .string("com.example.pro"),
      "succeededCount": .integer(5), "failedCount": .integer(0), "requestIdentifier": .string("r"),
    ]
    var extended = with("summary", summary, "RENEWAL_EXTENSION")
    extended["subtype"] = .string("SUMMARY")
    #expect(try verdict(extended).verified?.notification?.subtype == "SUMMARY")

    let app = store.sign(TestStore.appTransaction())
    let appData: JSONObject = [
      "environment": .string("Production"), "appAppleId": .integer(TestStore.appAppleID),
      "bundleId": .string(TestStore.bundleID), "signedAppTransactionInfo": .string(app),
    ]
    let consent = try #require(try verdict(with("appData", appData, "RESCIND_CONSENT")).verified)
    #expect(consent.parts.map(\.kind) == [.appTransaction] && consent.originalTransaction == nil)

    func token(_ id: String, _ apple: JSON? = .integer(TestStore.appAppleID)) -> JSONObject {
      var body: JSONObject = [
        "externalPurchaseId": .string(id), "tokenCreationDate": .integer(1), "bundleId": .string(TestStore.bundleID),
      ]
      body["appAppleId"] = apple
      return with("externalPurchaseToken", body, "EXTERNAL_PURCHASE_TOKEN")
    }
    #expect(try verdict(token("b2158121")).verified?.environment == .production)
    #expect(try verdict(token("SANDBOX_b2158121", nil)).verified?.environment == .sandbox)
    #expect(try verdict(token("b2158121", nil)).code == "missing-field")
    #expect(try verdict(token("b2158121", .integer(1))).code == "wrong-app-apple-id")
  }

  @Test func bundleAndEnvironmentAreCheckedWhereverTheyAre() throws {
    for member in ["data", "summary", "appData", "externalPurchaseToken"] {
      var payload = TestStore.notification([:], ["data": nil])
      func code(_ body: JSONObject) throws -> String {
        payload[member] = .object(body)
        return try verdict(payload).code
      }
      #expect(try code([:]) == "missing-field")
      #expect(try code(["bundleId": .string("com.other")]) == "wrong-bundle")
      #expect(try verdict(payload).rejected?.field == "\(member).bundleId")
      let good: JSONObject = ["bundleId": .string(TestStore.bundleID)]
      #expect(try code(good) == "missing-field")
      #expect(
        try verdict(payload).rejected?.field
          == (member == "externalPurchaseToken" ? "\(member).externalPurchaseId" : "\(member).environment"))
    }
    // Nothing carries them: an empty body is not trusted.
    #expect(try verdict(TestStore.notification([:], ["data": nil])).rejected?.field == "data")
    // Two bodies that contradict each other.
    let two: JSONObject = ["bundleId": .string(TestStore.bundleID), "environment": .string("Sandbox")]
    #expect(try verdict(TestStore.notification([:], ["appData": .object(two)])).code == "nested-environment-mismatch")
  }

  /// What no event can hold as its version makes no verdict and no event that can't be read: it stays in the body.
  @Test(arguments: [
    JSON.string(""), .string(String(repeating: "2", count: 1025)), .string("2\0"), .object([:]), .bool(true),
    .number(String(repeating: "2", count: 1025)),
  ])
  func aVersionThatNoEventCanHoldStaysInTheBody(_ version: JSON) throws {
    let proof = try #require(try verdict(TestStore.notification([:], ["version": version])).verified)
    #expect(proof.notification?.version == nil)
    let event = VerifiedEvent.verified(
      PurchaseVerified(
        environment: proof.environment, kind: proof.kind, proof: proof.digest, signedDate: proof.signedDate,
        parts: proof.parts, notification: proof.notification, body: proof.body, report: Report(type: .storeNotified),
        evidence: proof.evidence))
    let read = try VerifiedEvent(type: .purchaseVerified, data: event.data)
    #expect(read.data == event.data)
    #expect(try JSON(parsing: proof.body ?? [])["version"] == version)
  }

  @Test func unknownTypesSubtypesAndVersions() throws {
    let raw: [String: JSON?] = [
      "notificationType": .string("BRAND_NEW"), "subtype": .string("NEVER_SEEN"), "version": .string("3.0"),
      "future": .object(["x": .integer(1)]),
    ]
    let facts = try #require(try verdict(TestStore.notification([:], raw)).verified)
    #expect(facts.notification?.type == "BRAND_NEW" && facts.notification?.subtype == "NEVER_SEEN")
    #expect(facts.notification?.version == "3.0" && facts.parts.isEmpty)
    let carrying = try #require(try verdict(TestStore.notification(nested(TestStore.transaction()), raw)).verified)
    #expect(carrying.parts.count == 1 && carrying.transaction != nil)
    #expect(
      try verdict(TestStore.notification([:], ["version": .number("3.0")])).verified?.notification?.version == "3.0")
    let kind = TestStore.transaction(["type": .string("New Kind")])
    #expect(try verdict(TestStore.notification(nested(kind))).verified?.transaction?.type == .unknown("New Kind"))
  }

  @Test func theCaseOfAUUIDCarriesNoMeaning() throws {
    let upper: [String: JSON?] = ["notificationUUID": .string("002E14D5-51F5-4503-B5A8-C3A1AF68EB20")]
    #expect(
      try verdict(TestStore.notification([:], upper)).verified?.notification?.uuid
        == "002e14d5-51f5-4503-b5a8-c3a1af68eb20")
    let rejected = try #require(try verdict(TestStore.notification([:], ["notificationUUID": nil])).rejected)
    #expect(rejected.reason.code == "missing-field" && rejected.field == "notificationUUID")
  }
}
