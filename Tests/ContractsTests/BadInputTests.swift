import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

/// Input that is not what it must be is refused, and the refusal names the member and not what it held.
struct BadInputTests {
  static let payment = #""environment":"Sandbox","account":"a1","attemptId":"t1","productId":"p""#

  func failure(_ type: EventType, _ data: String) -> FieldFailure? {
    do throws(FieldFailure) {
      _ = try ReceivedRecord(type: type, data: Array(data.utf8))
      return nil
    } catch { return error }
  }

  /// An example of that type with one member in place of another value; nil takes it away.
  func doctored(_ type: EventType, _ member: String, _ value: JSON?) throws -> String {
    let example = try #require(JSON(parsing: SchemaFolder.example(type.wireName)).object)
    var members = example.members.filter { $0.name != member }.map { ($0.name, $0.value) }
    if let value { members.append((member, value)) }
    return String(decoding: JSON.object(JSONObject(members)).bytes, as: UTF8.self)
  }

  /// C36: without an id as long as there is none, and never for a purchase.
  @Test func aTransactionMayBeMissingOnlyWhereThereIsNone() throws {
    for type: EventType in [.paymentAdded, .paymentDeferred, .paymentFailed, .paymentFinished] {
      for absent in [nil, JSON.null] {
        #expect(try failure(type, doctored(type, "transactionId", absent)) == nil, "\(type)")
      }
    }
    for type: EventType in [.paymentPurchased, .paymentRestored] {
      for absent in [nil, JSON.null] {
        #expect(
          try failure(type, doctored(type, "transactionId", absent)) == FieldFailure("transactionId", "is missing"))
      }
    }
  }

  /// C31 at the door.
  @Test(arguments: ["0", "-1", "10001", "1000000000"])
  func aQuantityIsOneToTenThousand(_ quantity: String) {
    let data = #"{\#(Self.payment),"quantity":\#(quantity)}"#
    #expect(failure(.paymentAdded, data) == FieldFailure("quantity", "must be 1 to 10000"))
  }

  @Test(arguments: ["1.5", #""2""#, "true", "[1]", "1e30"])
  func aQuantityIsAWholeNumber(_ quantity: String) {
    let data = #"{\#(Self.payment),"quantity":\#(quantity)}"#
    #expect(failure(.paymentAdded, data) == FieldFailure("quantity", "must be a whole number"))
  }

  /// C31 in what Apple signs: absent is 1, text is taken, nonsense is refused.
  @Test func aSignedQuantityIsReadWithMoreCare() throws {
    func quantity(_ member: String) throws -> Int64 {
      let payload =
        #"{"environment":"Production","transactionId":"1","originalTransactionId":"1","productId":"p","#
        + #""type":"Consumable","signedDate":1,"purchaseDate":1\#(member)}"#
      return try ApplePayload.transaction(
        JSONDocument(parsing: Array(payload.utf8)).root, digest: "d", source: .client
      ).quantity
    }
    #expect(try quantity("") == 1)
    #expect(try quantity(#","quantity":3"#) == 3)
    #expect(try quantity(#","quantity":"2""#) == 2)
    for bad in ["0", "-1", "1000000000", #""x""#, #""""#, "1.5"] {
      #expect(throws: FieldFailure("transaction.quantity", "must be 1 to 10000"), "\(bad)") {
        try quantity(#","quantity":\#(bad)"#)
      }
    }
  }

  @Test func idsAreStringsOfDigits() throws {
    for member in ["transactionId", "originalTransactionId"] {
      let number = try failure(.paymentPurchased, doctored(.paymentPurchased, member, .integer(2_000_000_912_345_671)))
      #expect(number == FieldFailure(member, "must be a string"))
      for bad in ["12a", "0x12", "-1", "１２", String(repeating: "1", count: 65)] {
        let failure = try failure(.paymentPurchased, doctored(.paymentPurchased, member, .string(bad)))
        #expect(failure == FieldFailure(member, "must be a string of decimal digits"), "\(bad)")
      }
    }
  }

  @Test func eachWrongMemberIsNamed() throws {
    let wrong: [(EventType, String, JSON?)] = [
      (.paymentAdded, "environment", .string("production")), (.paymentAdded, "environment", .string("")),
      (.paymentAdded, "environment", nil), (.paymentAdded, "account", .string("a/b")),
      (.paymentAdded, "account", .integer(7)), (.paymentAdded, "attemptId", .string("")),
      (.paymentAdded, "attemptId", .string(String(repeating: "x", count: 1025))),
      (.paymentAdded, "occurredAt", .string("today")), (.paymentAdded, "occurredAt", .integer(1_764_469_781_000)),
      (.paymentAdded, "signedTransaction", .string("a.b.c")), (.paymentFinished, "signedTransaction", .string("a.b.c")),
      (.paymentFailed, "failure", nil), (.paymentFailed, "failure", .string("no")),
      (.paymentPurchased, "signedTransaction", .string("")), (.paymentPurchased, "signedTransaction", .null),
      (.paymentPurchased, "environment", .string("Prod")), (.restoreStarted, "attemptId", nil),
      (.storeNotified, "signedPayload", nil), (.storeNotified, "signedPayload", .array([])),
      (.storeNotified, "backfill", .string("yes")), (.purchaseClaimed, "originalTransactionId", nil),
      (.creditSpendRequested, "amount", .integer(0)), (.creditSpendRequested, "amount", .integer(-80)),
      (.creditSpendRequested, "amount", .string("80")), (.creditSpendRequested, "unit", .string("two words")),
      (.creditSpendRequested, "idempotencyKey", .string(String(repeating: "x", count: 257))),
      (.accessOrdered, "action", .string("gift")), (.accessOrdered, "entitlement", nil),
      (.accessOrdered, "until", .string("2025-12-32T00:00:00Z")), (.accessOrdered, "reason", nil),
      (.operatorActed, "operator", nil), (.operatorActed, "arguments", .array([.integer(1)])),
    ]
    for (type, member, value) in wrong {
      let failure = try failure(type, doctored(type, member, value))
      #expect(failure?.field == member, "\(type.rawValue) \(member): \(failure?.description ?? "was taken")")
    }
  }

  @Test func aMemberInsideAMemberIsNamedWithItsPath() {
    let data = #"{\#(Self.payment),"failure":{"domain":"SKErrorDomain"}}"#
    #expect(failure(.paymentFailed, data) == FieldFailure("failure.code", "is missing"))
    let report = #"{"proof":"p","reason":"r","explanation":"e","evidence":{},"report":{"type":"payment.bought"}}"#
    #expect(throws: FieldFailure("report.type", "is not an event of this pipeline")) {
      try VerifiedEvent(type: .purchaseRejected, data: Array(report.utf8))
    }
  }

  @Test func aRefusalQuotesNothing() throws {
    let canary = "canary-4711"
    let wrong: [(EventType, String)] = [
      (.paymentAdded, "environment"), (.paymentAdded, "occurredAt"), (.paymentPurchased, "transactionId"),
      (.accessOrdered, "action"), (.creditSpendRequested, "amount"),
    ]
    for (type, member) in wrong {
      let failure = try failure(type, doctored(type, member, .string(canary)))
      #expect(failure != nil && failure?.description.contains(canary) == false)
    }
    let twice = failure(.paymentAdded, #"{"\#(canary) é":1,"\#(canary) é":2}"#)
    #expect(twice == FieldFailure("event", "has a member twice"))
    for broken in [#"{"a":"\#(canary)"#, #"{"a":\#(canary)}"#] {
      let failure = failure(.paymentAdded, broken)
      #expect(failure?.field == "event" && failure?.description.contains(canary) == false)
    }
  }

  @Test func aStandingThatIsNoneIsRefused() throws {
    let example = String(decoding: try SchemaFolder.example("purchase.owned.v1.notification"), as: UTF8.self)
    let broken = example.replacing(#""standing":"copy""#, with: #""standing":"newest""#)
    #expect(throws: FieldFailure("parts.standing", "must be superseded or copy")) {
      try OwnedEvent(type: .purchaseOwned, data: Array(broken.utf8))
    }
  }

  @Test func eventsOfAnotherTopicAreNotTaken() throws {
    let data = try SchemaFolder.example("clock.ticked.v1")
    #expect(throws: FieldFailure.self) { try ReceivedEvent(type: .clockTicked, data: data) }
    #expect(throws: FieldFailure.self) { try VerifiedEvent(type: .clockTicked, data: data) }
    #expect(throws: FieldFailure.self) { try EntitlementEvent(type: .clockTicked, data: data) }
    #expect(throws: FieldFailure.self) { try AuditEvent(type: .clockTicked, data: data) }
    #expect(throws: FieldFailure.self) { try OwnedEvent(type: .creditAdded, data: data) }
  }

  /// Damaged data is refused by name, or it is an event: then what is written of it is read as the same event again.
  @Test func damagedDataIsRefusedOrAnEvent() throws {
    var random = SeededRandom.seeded("Damaged data")
    var taken = 0
    for example in try GoldenExamples().all() {
      for _ in 0..<60 {
        var data = example.data
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          let index = Int.random(in: data.indices, using: &random)
          switch Int.random(in: 0...2, using: &random) {
          case 0: data[index] = UInt8.random(in: .min ... .max, using: &random)
          case 1: data.remove(at: index)
          default: data.insert(data[Int.random(in: data.indices, using: &random)], at: index)
          }
        }
        do throws(FieldFailure) {
          let written = try GoldenExamples.rewritten(example.type, example.name, data)
          #expect(try GoldenExamples.rewritten(example.type, example.name, written) == written)
          taken += 1
        } catch { #expect(!error.field.isEmpty && !error.reason.isEmpty) }
      }
    }
    #expect(taken > 0)
  }
}
