import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

struct InstantTests {
  @Test(
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.001Z", 1), ("1969-12-31T23:59:59.999Z", -1),
      ("2025-11-30T02:29:41.000Z", 1_764_469_781_000), ("2025-11-30t03:29:41+01:00", 1_764_469_781_000),
      ("2025-11-29T18:29:41.0009-08:00", 1_764_469_781_000), ("2024-02-29T00:00:00Z", 1_709_164_800_000),
      ("2000-02-29T12:00:00.5z", 951_825_600_500), ("0001-01-01T00:00:00Z", -62_135_596_800_000),
      ("9999-12-31T23:59:59.999Z", 253_402_300_799_999), ("2025-11-30T02:29:41.123456789Z", 1_764_469_781_123),
      ("2025-11-30T02:29:41-00:00", 1_764_469_781_000),
    ] as [(String, Int64)])
  func readsEveryFormOfRFC3339(_ text: String, _ milliseconds: Int64) {
    #expect(Instant(rfc3339: text)?.milliseconds == milliseconds)
  }

  @Test(arguments: [
    "", "2025", "2025-11-30", "2025-11-30T02:29:41", "2025-11-30 02:29:41Z", "2025-11-30T02:29Z",
    "2025-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2025-04-31T00:00:00Z",
    "2025-00-01T00:00:00Z", "2025-13-01T00:00:00Z", "2025-01-00T00:00:00Z", "2025-01-01T24:00:00Z",
    "2025-01-01T00:60:00Z", "2025-01-01T00:00:60Z", "2025-01-01T00:00:00.Z", "2025-01-01T00:00:00,5Z",
    "2025-01-01T00:00:00+0100", "2025-01-01T00:00:00+24:00", "2025-01-01T00:00:00+01:60", "2025-01-01T00:00:00+01",
    "2025-01-01T00:00:00ZZ", "2025-01-01T00:00:00Z ", " 2025-01-01T00:00:00Z", "+025-01-01T00:00:00Z",
    "２025-01-01T00:00:00Z", "2025-01-01T00:00:00.00000000000000000000000Z", "2025/01/01T00:00:00Z",
  ])
  func refusesTheRest(_ text: String) { #expect(Instant(rfc3339: text) == nil) }

  @Test func whatIsWrittenIsRead() {
    var random = SeededRandom.seeded("Instant")
    for _ in 0..<5000 {
      let instant = Instant(milliseconds: .random(in: -62_135_596_800_000..<253_402_300_800_000, using: &random))
      #expect(Instant(rfc3339: instant.rfc3339) == instant, "\(instant.milliseconds)")
    }
  }

  @Test func theEndsOfTheScaleDoNotTrap() {
    #expect(Instant.distantFuture.advanced(byMilliseconds: 1) == .distantFuture)
    #expect(Instant.distantPast.advanced(byMilliseconds: -1) == .distantPast)
    #expect(Instant(rfc3339: Instant.distantFuture.rfc3339) == nil)
  }

  /// Apple's dates, and Xcode's: a Double as Foundation prints it.
  @Test(
    arguments: [("1764469784512", 1_764_469_784_512), ("1764469784512.7", 1_764_469_784_512), ("1.5e3", 1500)]
      as [(
        String, Int64
      )])
  func appleMillisecondsMayHaveAFraction(_ number: String, _ milliseconds: Int64) throws {
    let fields = try Fields(parsing: Array(#"{"signedDate":\#(number)}"#.utf8))
    #expect(try fields.milliseconds("signedDate")?.milliseconds == milliseconds)
  }

  @Test(arguments: [#""1764469784512""#, "true", "1e300", "[]"])
  func otherDatesAreNamed(_ value: String) throws {
    let fields = try Fields(parsing: Array(#"{"signedDate":\#(value)}"#.utf8))
    #expect(throws: FieldFailure("signedDate", "must be a number of milliseconds")) {
      try fields.milliseconds("signedDate")
    }
  }
}

struct AccountTests {
  @Test func aUUIDHasNoCaseAndOtherNamesDo() {
    let stored = Account("AAAAAAAA-0000-4000-8000-00000000000A")
    #expect(stored == Account(token: "aaaaaaaa-0000-4000-8000-00000000000a"))
    #expect(stored?.text == "aaaaaaaa-0000-4000-8000-00000000000a")
    #expect(Account("User-1") != Account("user-1"))
  }

  @Test(arguments: [
    "", "user-123", "00000000-0000-0000-0000-000000000000", "aaaaaaaa-0000-4000-8000-00000000000",
    "aaaaaaaa-0000-4000-8000-00000000000aa", "aaaaaaaa_0000_4000_8000_00000000000a",
    "gaaaaaaa-0000-4000-8000-00000000000a", "{aaaaaaaa-0000-4000-8000-0000000000}",
  ])
  func aTokenThatNamesNobodyIsAbsent(_ token: String) { #expect(Account(token: token) == nil) }

  /// A purchase with such a token is verified and has no owner; it is not refused.
  @Test(arguments: ["null", #""user-123""#, #""00000000-0000-0000-0000-000000000000""#, "7", "{}"])
  func aMalformedTokenDoesNotRefuseTheTransaction(_ token: String) throws {
    let payload =
      #"{"environment":"Production","transactionId":"1","originalTransactionId":"1","productId":"p","type":"Consumable","#
      + #""signedDate":1,"purchaseDate":1,"appAccountToken":\#(token)}"#
    let revision = try ApplePayload.transaction(
      JSONDocument(parsing: Array(payload.utf8)).root, digest: "d", source: .client)
    #expect(revision.accountToken == nil)
  }

  @Test(arguments: ["", " ", "a b", "a/b", "a\n", "a\u{7f}", String(repeating: "x", count: 129)])
  func namesThatWouldBreakAKeyAreNone(_ text: String) {
    #expect(Account(text) == nil)
    #expect(TransactionID(text) == nil)
    #expect(ProductID(text) == nil)
  }

  @Test func namesMayBeLongAndForeign() {
    #expect(Account(String(repeating: "x", count: 128)) != nil)
    #expect(Account("käthe@example.com")?.text == "käthe@example.com")
  }
}

struct SubjectTests {
  @Test func subjectsAreReadAsTheyWereWritten() throws {
    let transaction = try #require(TransactionID("9123456789012345678"))
    for environment in Environment.allCases {
      let subject = TransactionSubject(environment, transaction)
      #expect(TransactionSubject(subject.text) == subject)
    }
    for foreign in ["", "/", "Production", "Production/", "production/7", "Production/7/8", "urn:x"] {
      #expect(TransactionSubject(foreign) == nil, "\(foreign)")
    }
  }
}

struct TopicTests {
  @Test func namesGoBothWays() {
    let settings = TopicSettings(prefix: "a.b-")
    for topic in Topic.allCases { #expect(settings.topic(named: settings.name(topic)) == topic) }
    for other in ["received", "a.b-", "a.b-other", "purchases.received", "a.b-received.x"] {
      #expect(settings.topic(named: other) == nil)
    }
  }

  @Test func quarantineTakesWhatAnyOtherTopicLetsIn() {
    let specs = TopicSettings().specs
    let largest = specs.filter { !$0.name.hasSuffix(".quarantine") }.map(\.maximumBytes).max() ?? 0
    #expect(specs.contains { $0.name == "purchases.quarantine" && $0.maximumBytes > largest })
    #expect(specs.filter(\.isCompacted).map(\.name) == ["purchases.entitlement-state"])
    #expect(Set(Topic.allCases).subtracting(Topic.audited) == [.entitlementState, .audit])
    #expect(
      Topic.audited.sorted { $0.rawValue < $1.rawValue }
        == Topic.auditedOutputsFirst.sorted { $0.rawValue < $1.rawValue })
  }
}
