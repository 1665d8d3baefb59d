import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

private struct NoFacts: Facts {
  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
  func row(_ key: RowKey) -> Row? { nil }
  func rows(_ need: Need) -> [Row] { [] }
}

extension Action {
  fileprivate var event: Outgoing? { if case .emit(let event) = self { event } else { nil } }
  fileprivate var quarantine: String? { if case .quarantine(let reason, nil) = self { reason } else { nil } }
  fileprivate var park: Instant? { if case .park(let until, _) = self { until } else { nil } }
}

struct StageTests {
  let store = TestStore.shared

  func stage() throws -> VerificationStage { VerificationStage(try store.judge().settings) }

  /// As the runner hands it in; a key of the producer's own choosing shows that the stage doesn't rely on it.
  func incoming(_ type: EventType, _ data: String, at: Instant = TestStore.now, subject: String? = nil) -> Incoming {
    let envelope = Envelope(id: "1", source: "/test", type: type, subject: subject)
    let record = Record(
      key: Array("any".utf8), value: Array(data.utf8), headers: envelope.headers, timestamp: at)
    return Incoming(
      stored: StoredRecord(
        coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0), record: record),
      topic: .received, envelope: .success(envelope))
  }

  func decide(
    _ type: EventType, _ data: String, at: Instant = TestStore.now, moment: Moment? = nil, subject: String? = nil
  ) throws -> [Action] {
    try stage().decide(
      incoming(type, data, at: at, subject: subject), NoFacts(), moment ?? Moment(now: TestStore.now))
  }

  func purchased(_ proof: String, _ more: String = "") -> String {
    #"{"account":"a1","transactionId":"2000000900000002","signedTransaction":"\#(proof)"\#(more)}"#
  }

  func event(_ actions: [Action]) throws -> (Outgoing, VerifiedEvent) {
    try #require(actions.count == 1)
    let outgoing = try #require(actions[0].event)
    return (outgoing, try VerifiedEvent(type: outgoing.type, data: outgoing.data))
  }

  func rejection(_ type: EventType, _ data: String) throws -> (key: String?, PurchaseRejected) {
    let (outgoing, event) = try event(try decide(type, data))
    guard case .rejected(let rejected) = event else { throw Unexpected() }
    return (outgoing.key, rejected)
  }

  struct Unexpected: Error {}

  @Test func aPurchaseIsVerifiedUnderItsOwnKey() throws {
    let proof = store.sign(TestStore.transaction())
    let data = purchased(
      proof,
      #","environment":"Production","attemptId":"t1","productId":"com.example.coins","#
        + #""originalTransactionId":"2000000900000001""#)
    let (outgoing, event) = try event(try decide(.paymentPurchased, data, subject: "Production/2000000900000002"))
    guard case .verified(let verified) = event else { throw Unexpected() }
    #expect(outgoing.topic == .verified && outgoing.key == "Production/2000000900000001")
    #expect(outgoing.subject == "Production/2000000900000002")
    #expect(verified.kind == .transaction && verified.proof == SHA256.digest(proof).hex)
    #expect(verified.report.account?.text == "a1" && verified.report.attempt == "t1")
    #expect(verified.report.type == .paymentPurchased && verified.report.product?.text == "com.example.coins")
    #expect(verified.parts.first?.source == .client)
    #expect(try verified.parts.first?.transactionRevision().transaction.text == "2000000900000002")
  }

  @Test(arguments: [nil, "user/42"] as [String?])
  func aVerdictNamesItsTransactionWhateverTheProducerCalledIt(subject: String?) throws {
    let proof = store.sign(TestStore.transaction())
    let verified = try decide(.paymentPurchased, purchased(proof), subject: subject)
    let rejected = try decide(.paymentPurchased, purchased(String(proof.dropLast(4)) + "AAAA"), subject: subject)
    #expect(try event(verified).1.type == .purchaseVerified)
    #expect(try event(rejected).1.type == .purchaseRejected)
    for actions in [verified, rejected] { #expect(try event(actions).0.subject == "Production/2000000900000002") }
  }

  @Test func aNotificationIsVerifiedUnderThePurchaseInside() throws {
    let inner = store.sign(TestStore.transaction())
    let proof = store.sign(TestStore.notification(["signedTransactionInfo": .string(inner)]))
    let (outgoing, event) = try event(try decide(.storeNotified, #"{"signedPayload":"\#(proof)"}"#))
    guard case .verified(let verified) = event else { throw Unexpected() }
    #expect(outgoing.key == "Production/2000000900000001")
    #expect(verified.notification?.type == "DID_RENEW" && verified.parts.first?.source == .notification)
    let backfill = try self.event(try decide(.storeNotified, #"{"signedPayload":"\#(proof)","backfill":true}"#))
    guard case .verified(let filled) = backfill.1 else { throw Unexpected() }
    #expect(filled.parts.first?.source == .backfill)
    let test = store.sign(TestStore.notification([:], ["notificationType": .string("TEST")]))
    let plain = try self.event(try decide(.storeNotified, #"{"signedPayload":"\#(test)"}"#))
    #expect(plain.0.key == "Production/002e14d5-51f5-4503-b5a8-c3a1af68eb20")
  }

  @Test func factsPassAsTheyCameUnderTheirOwnKey() throws {
    let failed =
      #"{"environment":"Sandbox","account":"a1","attemptId":"t1","productId":"p","x": 1.50,"#
      + #""failure":{"domain":"SKErrorDomain","code":2}}"#
    let claimed = #"{"environment":"Sandbox","account":"a1","originalTransactionId":"55","attemptId":"c1"}"#
    let acted = #"{"actId":"x1","operator":"kim","reason":"r","action":"replay"}"#
    for (type, data, key) in [
      (EventType.paymentFailed, failed, "Sandbox/a1"), (.purchaseClaimed, claimed, "Sandbox/55"),
      (.operatorActed, acted, nil),
    ] {
      let (outgoing, event) = try event(try decide(type, data))
      guard case .noted(let noted) = event else { throw Unexpected() }
      #expect(noted.type == type)
      #expect(try noted.event() == ReceivedEvent(type: type, data: Array(data.utf8)))
      if let key { #expect(outgoing.key == key) } else { #expect(outgoing.key?.hasPrefix("operator/") == true) }
      if type == .paymentFailed { #expect(String(decoding: outgoing.data, as: UTF8.self).contains("1.50")) }
    }
  }

  @Test func aReportThatContradictsItsProof() throws {
    let proof = store.sign(TestStore.transaction())
    for (more, code) in [
      (#","environment":"Sandbox""#, "environment-mismatch"), (#","productId":"other""#, "product-mismatch"),
      (#","originalTransactionId":"1""#, "original-transaction-mismatch"),
    ] {
      let (_, rejected) = try rejection(.paymentPurchased, purchased(proof, more))
      #expect(rejected.reason == code && rejected.report.account?.text == "a1")
    }
    let other = #"{"account":"a1","transactionId":"5","signedTransaction":"\#(proof)"}"#
    #expect(try rejection(.paymentRestored, other).1.reason == "transaction-mismatch")
  }

  @Test func aForgeryIsRejectedWithoutAWordOfItsPayload() throws {
    let forged = store.sign(
      TestStore.transaction(["originalTransactionId": .string("777")]), key: P256PrivateKey(seed: [8]))
    let (key, rejected) = try rejection(.paymentPurchased, purchased(forged, #","environment":"Sandbox""#))
    #expect(key == "Production/777" && rejected.environment == .sandbox)
    #expect(rejected.reason == "jws-signature-invalid" && rejected.proof == SHA256.digest(forged).hex)
    #expect(try rejection(.paymentPurchased, purchased(forged)).1.environment == .production)
    #expect(Reason(code: rejected.reason) == .jws(.signatureInvalid))
    let text = "\(rejected.explanation) \(rejected.evidence)"
    #expect(!text.contains("777") && !text.contains("com.example"))
    let (unreadable, garbage) = try rejection(.storeNotified, #"{"signedPayload":"garbage"}"#)
    #expect(unreadable == "unreadable/\(SHA256.digest("garbage").hex)" && garbage.environment == nil)
  }

  @Test func theWrongKindOfProofInAPayment() throws {
    for payload in [TestStore.notification(), TestStore.renewal(), TestStore.appTransaction()] {
      #expect(try rejection(.paymentPurchased, purchased(store.sign(payload))).1.reason == "wrong-kind")
    }
    #expect(
      try rejection(.storeNotified, #"{"signedPayload":"\#(store.sign(TestStore.transaction()))"}"#).1.reason
        == "wrong-kind")
  }

  /// C06, C20: authentic, and nobody can tell whose, or whether it was seen before.
  @Test func whatLacksItsAppOrItsUUIDGoesToQuarantine() throws {
    let proof = store.sign(TestStore.transaction(["bundleId": nil]))
    let actions = try decide(.paymentPurchased, purchased(proof))
    #expect(actions.count == 1 && actions.first?.quarantine == "bundleId: is missing in an authentic proof")
    let nameless = store.sign(TestStore.notification([:], ["notificationUUID": nil]))
    #expect(
      try decide(.storeNotified, #"{"signedPayload":"\#(nameless)"}"#).first?.quarantine
        == "notificationUUID: is missing in an authentic proof")
    let unsigned = store.sign(TestStore.transaction(["bundleId": nil]), key: P256PrivateKey(seed: [8]))
    #expect(try rejection(.paymentPurchased, purchased(unsigned)).1.reason == "jws-signature-invalid")
  }

  @Test func dataThatIsNoEventGoesToQuarantineByItsField() throws {
    for (type, data, field) in [
      (EventType.paymentPurchased, "{", "event"), (.paymentPurchased, "[]", "event"),
      (.paymentPurchased, #"{"transactionId":"1"}"#, "signedTransaction"),
      (.paymentAdded, #"{"productId":"p","productId":"q"}"#, "productId"),
      (.purchaseVerified, "{}", "type"), (.paymentPurchased, #"{"signedTransaction":""}"#, "signedTransaction"),
    ] {
      let actions = try decide(type, data)
      #expect(actions.count == 1 && actions.first?.quarantine?.hasPrefix(field + ":") == true)
    }
    let tombstone = Incoming(
      stored: StoredRecord(
        coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0),
        record: Record(key: nil, value: nil, timestamp: TestStore.now)),
      topic: .received, envelope: .success(Envelope(id: "1", source: "/test", type: .paymentAdded)))
    let actions = try stage().decide(tombstone, NoFacts(), Moment(now: TestStore.now))
    #expect(actions.first?.quarantine == "value: is missing")
  }

  @Test func aProofFromTheFutureWaitsAndIsThenJudgedByItsDueTime() throws {
    let at = TestStore.signed.advanced(byMilliseconds: -48 * 3_600_000)
    let data = purchased(store.sign(TestStore.transaction()))
    var now = at
    var parking: Parking?
    var told: [Int] = []
    var pauses: [Int64] = []
    var verified: PurchaseVerified?
    while verified == nil {
      let actions = try decide(.paymentPurchased, data, at: at, moment: Moment(now: now, parking: parking))
      if let until = actions.last?.park {
        if let outgoing = actions.first?.event {
          guard case .pending(let pending) = try VerifiedEvent(type: outgoing.type, data: outgoing.data) else {
            throw Unexpected()
          }
          #expect(pending.nextTry == until && pending.reason == "signed-in-the-future")
          told.append(pending.attempt)
        }
        pauses.append(until.milliseconds - now.milliseconds)
        let attempt = (parking?.attempt ?? 0) + 1
        parking = Parking(attempt: attempt, firstParkedAt: parking?.firstParkedAt ?? at, notBefore: until)
        // The runner comes back late; the verdict must not depend on how late.
        now = until.advanced(byMilliseconds: 17)
      } else {
        guard case .verified(let event) = try event(actions).1 else { throw Unexpected() }
        verified = event
      }
    }
    #expect(told == [1])
    #expect(pauses.prefix(8) == ([1, 2, 4, 8, 16, 32, 60, 60] as [Int64]).map { $0 * 60_000 }[...])
    #expect(pauses.allSatisfy { $0 <= ParkingPause.longest })
    let skew = VerificationSettings.defaultFutureSkewMilliseconds
    #expect(
      verified?.evidence["judgedAt"]
        == .integer(TestStore.signed.advanced(byMilliseconds: -skew).milliseconds))
  }

  @Test func aWaitOfThreeDaysIsToldOnceMoreAndGoesOn() throws {
    let at = TestStore.signed.advanced(byMilliseconds: -100 * 3_600_000)
    let data = purchased(store.sign(TestStore.transaction()))
    var parking: Parking?
    var now = at
    var told = 0
    for _ in 0..<90 {
      let actions = try decide(.paymentPurchased, data, at: at, moment: Moment(now: now, parking: parking))
      let until = try #require(actions.last?.park)
      told += actions.first?.event == nil ? 0 : 1
      parking = Parking(
        attempt: (parking?.attempt ?? 0) + 1, firstParkedAt: at, notBefore: until)
      now = until
    }
    #expect(told == 2)
  }

  @Test func aSecondRunComesToTheSameBytes() throws {
    let data = purchased(store.sign(TestStore.transaction()))
    let first = try decide(.paymentPurchased, data, moment: Moment(now: TestStore.now)).first?.event
    let later = try decide(.paymentPurchased, data, moment: Moment(now: .at("2035-01-01T00:00:00Z"))).first?.event
    #expect(first != nil && first == later)
  }
}
