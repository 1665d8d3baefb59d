import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import Testing

struct ReceivedRecordTests {
  let now = Instant(milliseconds: 1_764_470_000_000)

  func jws(_ payload: String) -> String {
    "eyJhbGciOiJFUzI1NiJ9.\(Base64URL.encode(Array(payload.utf8))).AAAA"
  }

  func accept(_ type: String, _ data: String) throws(FieldFailure) -> ReceivedRecord {
    try ReceivedRecord(type: type, data: Array(data.utf8))
  }

  func record(_ type: String, _ data: String, traceparent: String? = nil) throws -> Record {
    try accept(type, data).record(source: "/test", at: now, traceparent: traceparent)
  }

  func purchased(_ proof: String, account: String = "a1") -> String {
    #"{"environment":"Sandbox","account":"\#(account)","transactionId":"7","signedTransaction":"\#(proof)"}"#
  }

  @Test func aPurchaseIsKeyedByTheOriginalTransactionThatItsProofNames() throws {
    let proof = jws(#"{"environment":"Sandbox","originalTransactionId":"2000000900000001"}"#)
    let received = try accept("payment.purchased.v1", purchased(proof))
    #expect(received.key == "Sandbox/2000000900000001")
    #expect(received.proofDigest == SHA256.digest(proof).hex && received.permit == received.proofDigest)
    let record = received.record(source: "/test", at: now)
    #expect(record.key == Array(received.key.utf8))
    #expect(record.value == Array(purchased(proof).utf8))
    #expect(record.timestamp == now)
    let envelope = try Envelope(reading: record)
    #expect(envelope.id == received.id && envelope.type == .paymentPurchased && envelope.time == now)
    #expect(envelope.subject == "Sandbox/7")
    #expect(ReceivedRecord(received.event).key == received.key)
  }

  @Test func theSameProofHasTheSameIdWhoeverSendsItAndAForgeryAnother() throws {
    let proof = jws(#"{"environment":"Sandbox","originalTransactionId":"1"}"#)
    let first = try accept("payment.purchased", purchased(proof))
    let second = try accept("payment.purchased", purchased(proof, account: "a2"))
    let bare = try accept("payment.purchased", #"{"transactionId":"7","signedTransaction":"\#(proof)"}"#)
    #expect(first.id == second.id && first.id == bare.id)
    #expect(first.id.utf8.count == 64)
    let forged = try accept("payment.purchased", purchased(proof + "A"))
    #expect(forged.id != first.id)
    #expect(forged.key == first.key)
    let restored = try accept("payment.restored", purchased(proof))
    #expect(restored.id != first.id)
  }

  @Test func aFactIsNamedByItsSenderAndKeyedByItsAccount() throws {
    func failed(_ attempt: String, _ account: String, _ environment: String = "Sandbox") throws -> ReceivedRecord {
      try accept(
        "payment.failed",
        #"{"environment":"\#(environment)","account":"\#(account)","attemptId":"\#(attempt)","productId":"p","#
          + #""failure":{"domain":"SKErrorDomain","code":2}}"#)
    }
    let first = try failed("t1", "a1")
    #expect(first.key == "Sandbox/a1")
    #expect(first.proofDigest == nil)
    #expect(try first.id == failed("t1", "a1").id)
    let ids = [
      first.id, try failed("t2", "a1").id, try failed("t1", "a2").id, try failed("t1", "a1", "Production").id,
    ]
    #expect(Set(ids).count == 4)
  }

  @Test func claimsAndTransfersMeetTheirPurchase() throws {
    let claim = try accept(
      "purchase.claimed", #"{"environment":"Sandbox","account":"a1","originalTransactionId":"55","attemptId":"c1"}"#)
    #expect(claim.key == "Sandbox/55")
    let transfer = try accept(
      "access.ordered",
      #"{"environment":"Sandbox","account":"a1","action":"transfer","originalTransactionId":"55","toAccount":"a2","#
        + #""orderId":"o1","operator":"kim","reason":"support"}"#)
    #expect(transfer.key == "Sandbox/55")
    let grant = try accept(
      "access.ordered",
      #"{"environment":"Sandbox","account":"a1","action":"grant","entitlement":"pro","orderId":"o1","operator":"kim","#
        + #""reason":"support"}"#)
    #expect(grant.key == "Sandbox/a1")
    let act = try accept("operator.acted", #"{"actId":"x/1","operator":"kim","reason":"r","action":"replay"}"#)
    #expect(act.key == "operator/\(act.id)")
  }

  @Test func aNotificationIsKeyedByTheProofInside() throws {
    func key(_ payload: String) throws -> String {
      try accept("store.notified", #"{"signedPayload":"\#(jws(payload))"}"#).key
    }
    let inner = jws(#"{"originalTransactionId":"9","environment":"Sandbox"}"#)
    let uuid = "002E14D5-51F5-4503-B5A8-C3A1AF68EB20"
    for member in ["signedTransactionInfo", "signedRenewalInfo"] {
      let payload =
        #"{"notificationType":"DID_RENEW","notificationUUID":"\#(uuid)","#
        + #""data":{"environment":"Sandbox","\#(member)":"\#(inner)"}}"#
      #expect(try key(payload) == "Sandbox/9")
    }
    let test = #"{"notificationType":"TEST","notificationUUID":"\#(uuid)","data":{"environment":"Production"}}"#
    #expect(try key(test) == "Production/\(uuid.lowercased())")
    let token =
      #"{"notificationType":"EXTERNAL_PURCHASE_TOKEN","notificationUUID":"\#(uuid)","#
      + #""externalPurchaseToken":{"externalPurchaseId":"SANDBOX_1"}}"#
    #expect(try key(token) == "Sandbox/\(uuid.lowercased())")
  }

  @Test(arguments: ["x", "a.b.c", "a..c", "eyJ9.e30.AAAA", "....", "é.é.é"])
  func whatCannotBeReadStandsByItself(_ proof: String) throws {
    let received = try accept("store.notified", #"{"signedPayload":"\#(proof)"}"#)
    #expect(received.key == "unreadable/\(SHA256.digest(proof).hex)")
    #expect(try accept("payment.purchased", purchased(proof)).key == "Sandbox/a1")
  }

  @Test func keysAreNotMadeOfWhatWouldBreakThem() throws {
    let proof = jws(#"{"environment":"Sandbox","originalTransactionId":"1/../2"}"#)
    #expect(try accept("payment.purchased", purchased(proof)).key == "Sandbox/a1")
    let foreign = jws(#"{"environment":"Sandbox/x","originalTransactionId":"1"}"#)
    #expect(try accept("payment.purchased", purchased(foreign)).key == "Sandbox/1")
  }

  @Test func badInputNamesWhatIsWrong() {
    func failure(_ type: String, _ data: String) -> FieldFailure? {
      do throws(FieldFailure) {
        _ = try accept(type, data)
        return nil
      } catch { return error }
    }
    #expect(failure("payment.bought", "{}")?.field == "type")
    #expect(failure("payment.added.v9", "{}")?.field == "type")
    #expect(failure("purchase.verified", "{}")?.field == "type")
    #expect(failure("payment.added", "{")?.field == "event")
    #expect(failure("payment.added", "[]")?.field == "event")
    #expect(failure("payment.added", #"{"account":"a","account":"b"}"#)?.field == "account")
    #expect(failure("payment.added", #"{"account":"a"}"#)?.field == "productId")
    #expect(failure("payment.purchased", #"{"transactionId":"1"}"#)?.field == "signedTransaction")
    #expect(failure("payment.purchased", #"{"signedTransaction":"x"}"#)?.field == "transactionId")
    #expect(failure("payment.purchased", #"{"signedTransaction":"x","transactionId":"1a"}"#)?.field == "transactionId")
    let big = String(repeating: "x", count: ReceivedEvent.maximumProofBytes + 1)
    #expect(failure("store.notified", #"{"signedPayload":"\#(big)"}"#)?.field == "signedPayload")
    let bigger = String(repeating: " ", count: ReceivedRecord.maximumBytes + 1)
    #expect(failure("store.notified", bigger)?.field == "event")
  }

  @Test func aDoorTakesOnlyWhatItAllows() {
    #expect(throws: FieldFailure.self) {
      try ReceivedRecord(type: "access.ordered", data: [], allowing: EventType.reported)
    }
  }

  @Test func aLineIsTheSameEventAsItsData() throws {
    let proof = jws(#"{"environment":"Sandbox","originalTransactionId":"1"}"#)
    let line = #"{ "type": "payment.purchased", "transactionId":"7", "x":1.50, "signedTransaction":"\#(proof)" }"#
    let received = try ReceivedRecord(line: Array(line.utf8))
    #expect(try received.id == accept("payment.purchased", purchased(proof)).id)
    #expect(received.data == Array(line.utf8))
    #expect(throws: FieldFailure("type", "is missing")) { try ReceivedRecord(line: Array("{}".utf8)) }
    #expect(throws: FieldFailure("type", "stands there twice")) {
      try ReceivedRecord(line: Array(#"{"type":"a","type":"b"}"#.utf8))
    }
  }

  @Test func onlyAWellFormedTraceTravelsOn() throws {
    let data = purchased("x")
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    #expect(try Envelope(reading: record("payment.purchased", data, traceparent: good)).traceparent == good)
    for bad in ["", "x", good.uppercased(), good + "0", "00-\(String(repeating: "0", count: 32))-b7ad6b7169203331-01"] {
      #expect(try Envelope(reading: record("payment.purchased", data, traceparent: bad)).traceparent == nil)
    }
  }
}
