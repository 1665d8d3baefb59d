import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// Each type and subtype that Apple documents, and what stands around the proofs of a notification (C19 to C21, as far as
/// verification goes).
struct NotificationTypeTests {
  let store = TestStore.shared

  func judge(_ payload: JSONObject, source: RevisionSource = .notification) throws -> Verdict {
    try store.judge().judge(
      store.sign(payload), expecting: .notification, source: source, at: TestStore.now)
  }

  /// The body that Apple sends with a type.
  func body(_ type: NotificationType, _ subtype: NotificationSubtype?) -> JSONObject {
    var changes: [String: JSON?] = ["notificationType": .string(type.rawValue)]
    if let subtype { changes["subtype"] = .string(subtype.rawValue) }
    let app: JSONObject = [
      "environment": .string("Production"), "appAppleId": .integer(TestStore.appAppleID),
      "bundleId": .string(TestStore.bundleID),
    ]
    switch type {
    case .externalPurchaseToken:
      var token = app
      token["environment"] = nil
      token["externalPurchaseId"] = .string("b2158121-7af9-49d4-9561-1f588205523e")
      token["tokenCreationDate"] = .integer(TestStore.signed.milliseconds)
      token["tokenType"] = .string("SERVICES")
      changes["data"] = .some(nil)
      changes["externalPurchaseToken"] = .object(token)
      return TestStore.notification([:], changes)
    case .rescindConsent:
      var appData = app
      appData["signedAppTransactionInfo"] = .string(store.sign(TestStore.appTransaction()))
      changes["data"] = .some(nil)
      changes["appData"] = .object(appData)
      return TestStore.notification([:], changes)
    case .renewalExtension where subtype == .summary:
      var summary = app
      summary["requestIdentifier"] = .string("r-1")
      summary["succeededCount"] = .integer(5)
      changes["data"] = .some(nil)
      changes["summary"] = .object(summary)
      return TestStore.notification([:], changes)
    case .test: return TestStore.notification([:], changes)
    default:
      var data: [String: JSON?] = ["signedTransactionInfo": .string(store.sign(TestStore.transaction()))]
      if type != .oneTimeCharge { data["signedRenewalInfo"] = .string(store.sign(TestStore.renewal())) }
      return TestStore.notification(data, changes)
    }
  }

  @Test(arguments: NotificationType.allCases, [nil] + NotificationSubtype.allCases.map(Optional.some))
  func everyTypeWithEverySubtypeVerifies(_ type: NotificationType, _ subtype: NotificationSubtype?) throws {
    let payload = body(type, subtype)
    let verified = try #require(try judge(payload).verified)
    let facts = try #require(verified.notification)
    #expect(facts.statedType == .known(type) && facts.statedSubtype?.known == subtype)
    #expect(verified.environment == .production)
    switch type {
    case .externalPurchaseToken, .test: #expect(verified.parts.isEmpty && verified.originalTransaction == nil)
    case .rescindConsent: #expect(verified.parts.map(\.kind) == [.appTransaction])
    case .renewalExtension where subtype == .summary: #expect(verified.parts.isEmpty)
    case .oneTimeCharge: #expect(verified.parts.map(\.kind) == [.transaction])
    default: #expect(verified.parts.map(\.kind) == [.transaction, .renewalInfo])
    }
    // The same type is refused all the same for another app, another environment, or none.
    let member = try #require(["data", "summary", "appData", "externalPurchaseToken"].first { payload[$0] != nil })
    for (name, value, code) in [
      ("bundleId", JSON.string("com.example.other"), "wrong-bundle"), ("bundleId", nil, "missing-field"),
      ("appAppleId", .integer(1), "wrong-app-apple-id"), ("appAppleId", nil, "missing-field"),
    ] {
      var inner = try #require(payload[member]?.object)
      inner[name] = value
      var changed = payload
      changed[member] = .object(inner)
      #expect(try judge(changed).code == code, "\(type.rawValue) \(name)")
    }
  }

  @Test func whatStandsAroundTheProofsIsKept() throws {
    var payload = body(.consumptionRequest, nil)
    var data = try #require(payload["data"]?.object)
    data["consumptionRequestReason"] = .string("LEGAL")
    data["status"] = .integer(1)
    data["novel"] = .object(["x": .number("1.50")])
    payload["data"] = .object(data)
    payload["future"] = .array([.integer(1)])
    let verified = try #require(try judge(payload).verified)
    let body = try #require(verified.body)
    let reading = PayloadReading<SignedNotification>(try JSONDocument(parsing: body).root)
    #expect(reading.model.data?.consumptionRequestReason == .known(.legal))
    #expect(reading.model.data?.status == .known(.active))
    #expect(reading.findings.unknownMembers.sorted() == ["data.novel", "future"])
    // The proofs are parts; here they would stand twice.
    #expect(reading.model.data?.signedTransactionInfo == nil && reading.model.data?.signedRenewalInfo == nil)
    var expected = payload
    data["signedTransactionInfo"] = nil
    data["signedRenewalInfo"] = nil
    expected["data"] = .object(data)
    #expect(body == JSON.object(expected).bytes)
    #expect(try judge(self.body(.rescindConsent, nil)).verified?.body.map { !$0.isEmpty } == true)
    // What is no notification has no body.
    let transaction = try store.judge().judge(store.sign(TestStore.transaction()), at: TestStore.now)
    #expect(transaction.verified?.body == nil)
  }

  @Test func theBodyTravelsWithTheEvent() throws {
    let data = #"{"signedPayload":"\#(store.sign(body(.subscribed, .initialBuy)))"}"#
    let tests = StageTests()
    let (_, event) = try tests.event(try tests.decide(.storeNotified, data))
    guard case .verified(let verified) = event else { throw StageTests.Unexpected() }
    let body = try JSONDocument(parsing: try #require(verified.body)).root
    #expect(body["data"]?["bundleId"]?.string == TestStore.bundleID && body["subtype"]?.string == "INITIAL_BUY")
    #expect(try VerifiedEvent(type: .purchaseVerified, data: VerifiedEvent.verified(verified).data) == event)
  }

  /// C19: an old notification is as authentic as on its first day; its date decides what it still says.
  @Test func theOrderIsThatOfTheDates() throws {
    func rank(_ signed: Int64, revoked: Int64? = nil, source: RevisionSource = .notification) throws -> RevisionRank {
      let date = TestStore.signed.milliseconds + signed
      var changes: [String: JSON?] = ["signedDate": .integer(date)]
      if let revoked { changes["revocationDate"] = .integer(TestStore.signed.milliseconds + revoked) }
      let inner = store.sign(TestStore.transaction(changes))
      let payload = TestStore.notification(
        ["signedTransactionInfo": .string(inner)], ["signedDate": .integer(date)])
      return try #require(try judge(payload, source: source).verified?.transaction).rank
    }
    let renewed = try rank(1000)
    let refunded = try rank(2000, revoked: 1990)
    let off = try rank(3000)
    #expect(renewed < refunded && refunded < off)
    // A retry keeps its date, and so its place.
    #expect(try rank(1000) == renewed)
    // Equal dates: revoked wins, then the notification over the client.
    #expect(try rank(1000) < rank(1000, revoked: 900) && rank(1000, source: .client) < renewed)
  }

  /// C20: copies give one and the same verdict, and one UUID with another body is another proof.
  @Test func copiesAgreeAndAnotherBodyIsAnotherProof() throws {
    let payload = body(.consumptionRequest, nil)
    let first = try #require(try judge(payload).verified)
    let copy = try #require(try judge(payload).verified)
    #expect(first.digest == copy.digest && first.notification == copy.notification && first.evidence == copy.evidence)
    var upper = payload
    upper["notificationUUID"] = .string("002E14D5-51F5-4503-B5A8-C3A1AF68EB20")
    upper["version"] = .string("2.1")
    let other = try #require(try judge(upper).verified)
    #expect(other.digest != first.digest && other.notification?.uuid == first.notification?.uuid)
  }

  /// C21: nothing in the type, the version or members that nobody knows makes a verdict, and no body is no app.
  @Test func anUnknownTypeIsJudgedByTheSameRules() throws {
    for extra in [JSON.string("3.0"), .number("3.0"), .integer(3), .null] {
      var payload = body(.didRenew, nil)
      payload["notificationType"] = .string("BRAND_NEW")
      payload["version"] = extra
      let verified = try #require(try judge(payload).verified)
      #expect(verified.notification?.statedType == .unknown("BRAND_NEW") && verified.parts.count == 2)
    }
    var payload = body(.didRenew, nil)
    payload["notificationType"] = .string("BRAND_NEW")
    payload["data"] = nil
    #expect(try judge(payload).rejected?.field == "data")
    payload["data"] = .null
    #expect(try judge(payload).rejected?.field == "data")
    payload["data"] = .object([:])
    #expect(try judge(payload).rejected?.field == "data.bundleId")
    payload["data"] = .string("x")
    #expect(try judge(payload).code == "malformed-field")
    payload["notificationType"] = .integer(1)
    payload["data"] = body(.test, nil)["data"]
    #expect(try judge(payload).code == "malformed-field")
  }
}
