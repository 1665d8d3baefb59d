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

struct ReceiptStageTests {
  private struct Told {
    var events: [(outgoing: Outgoing, event: VerifiedEvent)] = []
    var isParked = false
    var quarantined: [String] = []

    var verified: [(key: String?, subject: String?, data: PurchaseVerified)] {
      events.compactMap { outgoing, event in
        if case .verified(let data) = event { (outgoing.key, outgoing.subject, data) } else { nil }
      }
    }

    var rejected: [PurchaseRejected] {
      events.compactMap { if case .rejected(let data) = $0.event { data } else { nil } }
    }
  }

  private func decide(_ type: EventType, _ data: String) throws -> Told {
    let stage = VerificationStage(
      try VerificationSettings(
        apps: [.init(bundleID: TestStore.bundleID, appAppleID: TestStore.appAppleID)],
        anchors: TestStore.shared.anchors, receiptAnchors: TestReceipt.signer.anchors))
    let received = try ReceivedRecord(type: type, data: Array(data.utf8))
    let record = received.record(source: "/test", at: TestStore.now)
    let envelope = try Envelope(reading: record)
    let actions = stage.decide(
      Incoming(
        stored: StoredRecord(
          coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0), record: record),
        topic: .received, envelope: .success(envelope)), NoFacts(), Moment(now: TestStore.now))
    var told = Told()
    for action in actions {
      switch action {
      case .emit(let outgoing):
        told.events.append((outgoing, try VerifiedEvent(type: outgoing.type, data: outgoing.data)))
      case .park: told.isParked = true
      case .quarantine(let reason, _): told.quarantined.append(reason)
      default: Issue.record("an action that verification doesn't have")
      }
    }
    return told
  }

  private func data(_ receipt: TestReceipt, _ more: String = #","transactionId":"1000""#) -> String {
    #"{"environment":"Production","account":"a1","appReceipt":"\#(receipt.base64)"\#(more)}"#
  }

  private let two = TestReceipt(purchases: [
    TestReceipt.purchase(),
    TestReceipt.period("2001", of: "2000", from: "2025-08-01T00:00:00Z", until: "2025-09-01T00:00:00Z"),
    TestReceipt.period("2002", of: "2000", from: "2025-09-01T00:00:00Z", until: "2025-10-01T00:00:00Z"),
  ])

  private func name(_ receipt: TestReceipt, _ transaction: String) -> String {
    AppReceipt.digest(ofReceipt: SHA256.digest(receipt.base64).hex, transaction: transaction)
  }

  @Test func eachChainOfAReceiptGoesToItsOwnWriter() throws {
    let told = try decide(.paymentPurchased, data(two))
    let verified = told.verified
    #expect(verified.map(\.key) == ["Production/1000", "Production/2000"])
    #expect(verified.map(\.subject) == ["Production/1000", nil])
    #expect(verified.allSatisfy { $0.data.kind == .appReceipt && $0.data.signedDate == TestStore.signed })
    #expect(verified[0].data.proof == name(two, "1000") && verified[0].data.parts.count == 1)
    #expect(verified[0].data.report.account?.text == "a1" && verified[0].data.report.transaction?.text == "1000")
    // Nobody reported this one: it is a fact, and nobody's claim.
    #expect(verified[1].data.report.account == nil && verified[1].data.parts.count == 2)
    #expect(verified[1].data.proof == name(two, "2002"))
    let received = try ReceivedRecord(type: .paymentPurchased, data: Array(data(two).utf8))
    #expect(received.permit == name(two, "1000"))
  }

  @Test func aRestoreClaimsAllThatTheReceiptHolds() throws {
    let told = try decide(.paymentRestored, data(two, #","transactionId":"777","productId":"com.example.pro""#))
    let verified = told.verified
    #expect(verified.allSatisfy { $0.data.report.account?.text == "a1" })
    // The restored transaction's own id is in no receipt: its product tells which it is.
    let received = try ReceivedRecord(
      type: .paymentRestored, data: Array(data(two, #","transactionId":"777","productId":"com.example.pro""#).utf8))
    #expect(verified.first { $0.key == "Production/2000" }?.data.proof == received.permit)
  }

  /// C12
  @Test func aReceiptWithoutThePurchaseGrantsNothingAndSaysSo() throws {
    let nothing = TestReceipt(purchases: [])
    for (receipt, more) in [
      (nothing, #","transactionId":"1000""#), (two, #","transactionId":"5""#),
      (two, #","transactionId":"1000","productId":"com.example.dearest""#),
    ] {
      let told = try decide(.paymentPurchased, data(receipt, more))
      let verified = try #require(told.verified.last)
      #expect(verified.key == "Production/a1" && verified.data.parts.isEmpty && verified.subject == nil)
      #expect(verified.data.report.account?.text == "a1")
      let received = try ReceivedRecord(type: .paymentPurchased, data: Array(data(receipt, more).utf8))
      #expect(verified.data.proof == received.permit)
      #expect(told.verified.dropLast().allSatisfy { $0.data.report.account == nil })
      #expect(told.events.count == (receipt.attributes == nothing.attributes ? 1 : 3))
    }
  }

  @Test func aForgedReceiptIsRejectedUnderItsPermitsName() throws {
    var forged = two
    forged.form.signerCount = 0
    let told = try decide(.paymentPurchased, data(forged))
    #expect(told.events.count == 1 && told.rejected.first?.reason == "receipt-signer-count")
    #expect(told.rejected.first?.proof == name(forged, "1000"))
    let wrong = try decide(
      .paymentPurchased,
      #"{"environment":"Sandbox","account":"a1","transactionId":"1000","appReceipt":"\#(two.base64)"}"#)
    #expect(wrong.rejected.map(\.reason) == ["environment-mismatch"])
    let device = try decide(
      .paymentPurchased, data(two, #","transactionId":"1000","deviceId":"\#(TestReceipt.device)""#))
    #expect(device.rejected.map(\.reason) == ["device-mismatch"])
    let nobody = try decide(.paymentPurchased, data(TestReceipt([2: nil])))
    #expect(nobody.quarantined == ["bundleId: is missing in an authentic proof"] && nobody.events.isEmpty)
  }

  /// By its evidence alone each event can be judged again, and yet a receipt of many chains doesn't make the topic explode.
  @Test func eachEventCarriesTheReceiptWhereItsCopiesAreFew() throws {
    for event in try decide(.paymentPurchased, data(two)).verified {
      #expect(event.data.evidence["proofText"]?.string == two.base64 && event.data.evidence["stated"] == nil)
    }
    let many = TestReceipt(
      purchases: (0..<60).map {
        TestReceipt.period(
          "\(2000 + $0)", of: "\(2000 + $0)", from: "2025-08-01T00:00:00Z",
          until: "2025-09-01T00:00:00Z")
      })
    #expect(many.base64.utf8.count < 65_536 && many.base64.utf8.count * 61 > 262_144)
    let told = try decide(.paymentPurchased, data(many, #","transactionId":"1""#))
    #expect(told.verified.count == 61)
    for event in told.verified {
      #expect(event.data.evidence["proofText"] == nil)
      #expect(event.data.evidence["proofNotCarried"]?.string == "its 61 copies are larger than 262144 bytes")
    }
    // Why the reported purchase is none of them: no other event needs it.
    #expect(told.verified.compactMap { $0.data.evidence["stated"]?["transactionId"]?.string } == ["1"])
    var forged = two
    forged.form.signerCount = 0
    #expect(
      try decide(.paymentPurchased, data(forged)).rejected.first?.evidence["proofText"]?.string == forged.base64)
    let device = TestReceipt.device
    let other = try decide(.paymentPurchased, data(two, #","transactionId":"1000","deviceId":"\#(device)""#))
    let evidence = try #require(other.rejected.first?.evidence)
    #expect(evidence["receipt"]?["deviceHash"]?.string?.count == 40)
    #expect(!String(decoding: evidence.bytes, as: UTF8.self).contains(device), "the hash is enough to judge again by")
  }

  @Test func besideASignedTransactionAReceiptOnlyTells() throws {
    let store = TestStore.shared
    let jws = store.sign(TestStore.transaction())
    func both(_ receipt: String) -> String {
      #"{"account":"a1","transactionId":"2000000900000002","signedTransaction":"\#(jws)","appReceipt":"\#(receipt)"}"#
    }
    let told = try decide(.paymentPurchased, both(two.base64))
    #expect(told.verified.map(\.data.kind) == [.transaction, .appReceipt, .appReceipt])
    #expect(told.verified[0].data.proof == SHA256.digest(jws).hex && told.verified[0].data.report.account != nil)
    #expect(told.verified.dropFirst().allSatisfy { $0.data.report.account == nil && $0.subject == nil })
    // Each proof has its own verdict.
    let mixed = try decide(.paymentPurchased, both("AAAA"))
    #expect(mixed.verified.count == 1 && mixed.rejected.map(\.reason) == ["receipt-not-asn1"])
    #expect(mixed.rejected[0].report.account == nil)
    // What waits, waits with the other.
    let future = try decide(
      .paymentPurchased, both(TestReceipt([12: TestReceipt.date("2025-10-05T00:00:00Z")]).base64))
    #expect(future.isParked && future.verified.isEmpty)
    #expect(
      try ReceivedRecord(type: .paymentPurchased, data: Array(both("AAAA").utf8)).permit == SHA256.digest(jws).hex)
  }

  @Test func theOldestKindIsParked() throws {
    let text = String(decoding: try Fixture.bytes("receipts/legacyTransaction.b64").filter { $0 > 0x20 }, as: UTF8.self)
    let told = try decide(
      .paymentPurchased,
      #"{"environment":"Production","account":"a1","transactionId":"33993399","appReceipt":"\#(text)"}"#)
    #expect(told.isParked && told.verified.isEmpty && told.rejected.isEmpty && told.events.count == 1)
  }

  @Test func oneReceiptOfManyReportsHasManyIds() throws {
    func received(_ transaction: String) throws -> ReceivedRecord {
      try ReceivedRecord(
        type: .paymentPurchased,
        data: Array(#"{"account":"a1","appReceipt":"\#(two.base64)","transactionId":"\#(transaction)"}"#.utf8))
    }
    #expect(try received("1000").id != received("2001").id)
    #expect(try received("1000").id == received("1000").id)
    // Nobody said where: the receipt did.
    #expect(try received("1000").environment == .production && received("1000").key == "Production/a1")
  }

  @Test(arguments: [
    (EventType.paymentAdded, #""appReceipt":"AAAA","productId":"p","attemptId":"1""#, "appReceipt"),
    (.paymentPurchased, #""appReceipt":"","transactionId":"1""#, "appReceipt"),
    (.paymentPurchased, #""appReceipt":null,"transactionId":"1""#, "signedTransaction"),
    (.paymentPurchased, #""appReceipt":"AAAA""#, "transactionId"),
    (.paymentPurchased, #""appReceipt":7,"transactionId":"1""#, "appReceipt"),
    (.paymentPurchased, #""appReceipt":"AAAA","transactionId":"1","deviceId":"phone""#, "deviceId"),
  ])
  func whatIsNoEventIsRefusedByName(_ type: EventType, _ members: String, _ field: String) {
    #expect {
      try ReceivedRecord(
        type: type, data: Array(#"{"environment":"Production","account":"a1",\#(members)}"#.utf8))
    } throws: {
      ($0 as? FieldFailure)?.field == field
    }
  }
}
