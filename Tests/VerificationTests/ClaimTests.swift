import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// C02, C04, C05 and C06: what was signed, by a signer who is trusted.
struct ClaimTests {
  let store = TestStore.shared

  func verdict(
    _ payload: JSONObject, _ kind: ProofKind? = .transaction, at: Instant = TestStore.now
  ) throws -> Verdict {
    try store.judge().judge(store.sign(payload), expecting: kind, at: at)
  }

  // MARK: Time (C02)

  @Test func aProofIsJudgedAtTheTimeItWasSigned() throws {
    let judged = [TestStore.now, .at("2026-11-30T00:00:00Z"), .at("2027-06-01T00:00:00Z"), .at("2040-01-01T00:00:00Z")]
    for at in judged { #expect(try verdict(TestStore.transaction(), at: at).code == "verified") }
    let late = Instant.at("2025-12-01T00:00:00Z")
    for at in judged where at > late {
      #expect(
        try verdict(TestStore.transaction(["signedDate": .integer(late.milliseconds)]), at: at).code
          == "chain-expired")
    }
    let early = Instant.at("2023-08-31T00:00:00Z").milliseconds
    #expect(try verdict(TestStore.transaction(["signedDate": .integer(early)])).code == "chain-not-yet-valid")
  }

  @Test func aReplayComesToTheSameVerdictAndEvidence() throws {
    let proof = store.sign(TestStore.transaction())
    let first = try store.judge().judge(proof, at: TestStore.now).verified?.evidence
    #expect(try store.judge().judge(proof, at: TestStore.now).verified?.evidence == first)
    #expect(first?["proof"] == .string(SHA256.digest(proof).hex))
    #expect(first?["chain"] == .string(JudgedChain.digest(of: store.x5c).hex))
    #expect(first?["anchor"] == .string(store.root.fingerprint.hex))
    #expect(first?["signedDate"] == .integer(TestStore.signed.milliseconds))
    #expect(first?["judgedAt"] == .integer(TestStore.now.milliseconds))
    #expect(first?["revocation"]?["answer"] == .string("not-asked"))
  }

  @Test(arguments: [nil, JSON.integer(0), .null]) func withoutADate(_ date: JSON?) throws {
    let rejected = try #require(try verdict(TestStore.transaction(["signedDate": date])).rejected)
    #expect(rejected.reason.code == "missing-field" && rejected.field == "signedDate")
  }

  @Test(arguments: [JSON.string("1759276800000"), .integer(-1), .bool(true), .number("1e99")])
  func aDateThatIsNone(_ date: JSON) throws {
    #expect(try verdict(TestStore.transaction(["signedDate": date])).code == "malformed-field")
  }

  @Test func aDateInTheFutureWaits() throws {
    let at = TestStore.signed.advanced(byMilliseconds: -48 * 3_600_000)
    let pending = try #require(try verdict(TestStore.transaction(), at: at).pending)
    let skew = VerificationSettings.defaultFutureSkewMilliseconds
    #expect(pending.until == TestStore.signed.advanced(byMilliseconds: -skew))
    #expect(try verdict(TestStore.transaction(), at: pending.until).code == "verified")
    let before = pending.until.advanced(byMilliseconds: -1)
    #expect(try verdict(TestStore.transaction(), at: before).code == "pending:signed-in-the-future")
    // What is wrong in itself is not waited for.
    #expect(try verdict(TestStore.transaction(["bundleId": .string("com.other")]), at: at).code == "wrong-bundle")
    #expect(try verdict(TestStore.transaction(["productId": nil]), at: at).code == "missing-field")
    let forged = store.sign(TestStore.transaction(), key: P256PrivateKey(seed: [8]))
    #expect(try store.judge().judge(forged, at: at).code == "jws-signature-invalid")
  }

  @Test func datesWithAFraction() throws {
    let text = "\(TestStore.signed.milliseconds).7099609"
    let verified = try #require(try verdict(TestStore.transaction(["signedDate": .number(text)])).verified)
    #expect(verified.signedDate == TestStore.signed)
  }

  // MARK: Environments (C04, C05)

  @Test func xcodeAndLocalTestingAreNothingWithoutTheSwitch() throws {
    let key = P256PrivateKey(seed: [4])
    let own = CertificateBuilder(
      subject: [("CN", "Mine")], notBefore: TestStore.leafFrom.milliseconds,
      notAfter: TestStore.leafThrough.milliseconds
    ).selfSigned(key: key.key)
    for environment in ["Xcode", "LocalTesting"] {
      let payload = TestStore.transaction([
        "environment": .string(environment), "transactionId": .string("0"), "originalTransactionId": .string("0"),
      ])
      for environments in [[Environment.production, .sandbox], [.sandbox]] {
        let judge = try store.judge(environments: Set(environments))
        #expect(
          judge.judge(store.sign(payload, chain: [own.der], key: key), at: TestStore.now).code
            == "chain-wrong-length")
        #expect(judge.judge(store.sign(payload), at: TestStore.now).code == "environment-not-of-signer")
      }
      // Behind the switch: the configured certificate, and no other.
      let pinned = try PinnedCertificates([("own", own.der)])
      let judge = try store.judge(environments: [.sandbox, .xcode, .localTesting], local: pinned)
      let proof = store.sign(payload, chain: [own.der], key: key)
      #expect(judge.judge(proof, at: TestStore.now).verified?.environment.rawValue == environment)
      let other = CertificateBuilder(
        subject: [("CN", "Mine")], serial: [2], notBefore: TestStore.leafFrom.milliseconds,
        notAfter: TestStore.leafThrough.milliseconds
      ).selfSigned(key: key.key)
      #expect(
        judge.judge(store.sign(payload, chain: [other.der], key: key), at: TestStore.now).code
          == "chain-not-configured")
      #expect(
        judge.judge(store.sign(payload, chain: [own.der], key: P256PrivateKey(seed: [5])), at: TestStore.now).code
          == "jws-signature-invalid")
      // The local signer signs for itself only.
      for real in ["Sandbox", "Production"] {
        let claimed = TestStore.transaction(["environment": .string(real)])
        #expect(
          judge.judge(store.sign(claimed, chain: [own.der], key: key), at: TestStore.now).code
            == "environment-not-of-signer")
      }
      #expect(
        judge.judge(store.sign(TestStore.transaction(["environment": .string("Sandbox")])), at: TestStore.now).code
          == "verified")
      let late = TestStore.transaction([
        "environment": .string(environment), "signedDate": .integer(TestStore.leafThrough.milliseconds + 5000),
      ])
      #expect(
        judge.judge(store.sign(late, chain: [own.der], key: key), at: .at("2026-01-01T00:00:00Z")).code
          == "chain-expired")
    }
  }

  @Test(arguments: ["production", "", "PROD", "Sandbox ", "Family"]) func environmentsThatDoNotExist(_ name: String)
    throws
  {
    #expect(try verdict(TestStore.transaction(["environment": .string(name)])).code == "unknown-environment")
  }

  @Test func environmentAbsentOrNoText() throws {
    #expect(try verdict(TestStore.transaction(["environment": nil])).rejected?.field == "environment")
    #expect(try verdict(TestStore.transaction(["environment": .integer(1)])).code == "malformed-field")
  }

  @Test func productionAndSandboxAndWhatIsAccepted() throws {
    let sandbox = TestStore.transaction(["environment": .string("Sandbox")])
    #expect(try verdict(TestStore.transaction()).verified?.environment == .production)
    #expect(try verdict(sandbox).verified?.environment == .sandbox)
    let onlySandbox = try store.judge(environments: [.sandbox])
    #expect(
      onlySandbox.judge(store.sign(TestStore.transaction()), at: TestStore.now).code
        == "environment-not-accepted")
    let refused = onlySandbox.judge(store.sign(TestStore.transaction()), at: TestStore.now).rejected
    #expect(refused?.field == "environment")
    let notification = onlySandbox.judge(store.sign(TestStore.notification([:])), at: TestStore.now).rejected
    #expect(notification?.field == "data.environment", "the member that says it, and not the one around it")
    #expect(notification?.reason.code == "environment-not-accepted")
    #expect(onlySandbox.judge(store.sign(sandbox), at: TestStore.now).code == "verified")
  }

  @Test func appAppleIDIsNeededInProductionOnly() throws {
    func code(_ environment: String, _ id: JSON?) throws -> String {
      let data: [String: JSON?] = ["environment": .string(environment), "appAppleId": id]
      let notification = try verdict(TestStore.notification(data), .notification).code
      let app = try verdict(
        TestStore.appTransaction(["receiptType": .string(environment), "appAppleId": id]), .appTransaction
      ).code
      #expect(app == notification)
      return notification
    }
    #expect(try code("Production", .integer(TestStore.appAppleID)) == "verified")
    #expect(try code("Production", .integer(1)) == "wrong-app-apple-id")
    #expect(try code("Production", nil) == "missing-field")
    #expect(try code("Production", .string("\(TestStore.appAppleID)")) == "malformed-field")
    #expect(try code("Sandbox", nil) == "verified")
    #expect(try code("Sandbox", .integer(1)) == "verified")
  }

  @Test func aTransactionThatNamesAnotherAppIsNotOurs() throws {
    #expect(try verdict(TestStore.transaction(["appAppleId": .integer(1)])).code == "wrong-app-apple-id")
    #expect(try verdict(TestStore.transaction(["appAppleId": .integer(TestStore.appAppleID)])).code == "verified")
  }

  @Test func incompleteSettingsCannotBeBuilt() throws {
    let app = VerificationSettings.App(bundleID: "com.example.app")
    let full = VerificationSettings.App(bundleID: "com.example.app", appAppleID: 1)
    let pinned = try PinnedCertificates([("own", store.root.der)])
    func failure(
      _ apps: [VerificationSettings.App], _ environments: Set<Environment>, _ local: PinnedCertificates? = nil,
      skew: Int64 = 0
    ) -> VerificationSettingsFailure? {
      do throws(VerificationSettingsFailure) {
        _ = try VerificationSettings(
          apps: apps, environments: environments, localCertificates: local, futureSkewMilliseconds: skew)
        return nil
      } catch { return error }
    }
    #expect(failure([], [.sandbox]) == .noApp)
    #expect(failure([.init(bundleID: "")], [.sandbox]) == .emptyBundleID)
    #expect(failure([app, app], [.sandbox]) == .repeatedBundleID)
    #expect(failure([app], []) == .noEnvironment)
    #expect(failure([app], [.sandbox], skew: -1) == .negativeSkew)
    #expect(failure([app], [.production]) == .appAppleIDMissing(bundleID: "com.example.app"))
    #expect(failure([full, .init(bundleID: "b")], [.production]) == .appAppleIDMissing(bundleID: "b"))
    #expect(failure([full], [.production, .xcode], pinned) == .localTestingInProduction)
    #expect(failure([full], [.production], pinned) == .localTestingInProduction)
    #expect(failure([full], [.production, .localTesting]) == .localTestingInProduction)
    #expect(failure([app], [.xcode]) == .localCertificatesMissing)
    #expect(failure([app], [.sandbox], pinned) == .localCertificatesUnused)
    #expect(failure([full], [.production, .sandbox]) == nil)
    #expect(failure([app], [.sandbox, .xcode], pinned) == nil)
  }

  // MARK: Kinds and fields (C06)

  @Test func theWrongKindIsToldApart() throws {
    let payloads: [(ProofKind, JSONObject)] = [
      (.transaction, TestStore.transaction()), (.renewalInfo, TestStore.renewal()),
      (.notification, TestStore.notification()), (.appTransaction, TestStore.appTransaction()),
    ]
    for (kind, payload) in payloads {
      #expect(try verdict(payload, nil).verified?.kind == kind)
      for expected in ProofKind.allCases {
        #expect(try verdict(payload, expected).code == (expected == kind ? "verified" : "wrong-kind"))
      }
    }
    #expect(try verdict(["a": .integer(1)], nil).code == "unknown-kind")
  }

  @Test func segmentsAndEncodings() throws {
    func code(_ proof: String) throws -> String {
      try store.judge().judge(proof, expecting: .transaction, at: TestStore.now).code
    }
    let good = store.sign(TestStore.transaction())
    let parts = good.split(separator: ".").map(String.init)
    #expect(try code("") == "jws-wrong-segment-count")
    #expect(try code("..") == "jws-empty-segment")
    #expect(try code(parts[0] + "." + parts[1]) == "jws-wrong-segment-count")
    #expect(try code(good + ".x") == "jws-wrong-segment-count")
    #expect(try code(parts[0] + ".." + parts[2]) == "jws-empty-segment")
    #expect(try code(good + "=") != "verified")
    #expect(try code(good + "\n") != "verified")
    #expect(try code(" " + good) != "verified")
    #expect(try code(parts[0] + "." + parts[1] + "=." + parts[2]) == "jws-payload-not-base64url")
    #expect(try code(parts[0] + "+." + parts[1] + "." + parts[2]) == "jws-header-not-base64url")
  }

  @Test(arguments: ["transactionId", "originalTransactionId", "productId", "purchaseDate", "type", "bundleId"])
  func aMissingFieldIsNamed(_ name: String) throws {
    for value in [nil, JSON.null] {
      let rejected = try #require(try verdict(TestStore.transaction([name: value])).rejected)
      #expect(rejected.reason.code == "missing-field" && rejected.field == name)
      #expect(rejected.explanation.contains(name) && rejected.reason.isAuthentic)
    }
  }

  @Test func anotherApp() throws {
    #expect(try verdict(TestStore.transaction(["bundleId": .string("com.other")])).code == "wrong-bundle")
    // Bundle ids are compared to the letter.
    #expect(try verdict(TestStore.transaction(["bundleId": .string("com.example.APP")])).code == "wrong-bundle")
  }

  @Test(arguments: [JSON.integer(0), .integer(-1), .integer(1_000_000_000), .string("x"), .number("1.5")])
  func quantitiesThatAreNone(_ quantity: JSON) throws {
    let rejected = try #require(try verdict(TestStore.transaction(["quantity": quantity])).rejected)
    #expect(rejected.reason.code == "malformed-field" && rejected.field?.hasPrefix("quantity") == true)
  }

  @Test func quantitiesThatAreSome() throws {
    #expect(try verdict(TestStore.transaction(["quantity": nil])).verified?.transaction?.quantity == 1)
    #expect(try verdict(TestStore.transaction(["quantity": .string("2")])).verified?.transaction?.quantity == 2)
  }

  @Test func payloadsThatAreNoObject() throws {
    func code(_ payload: String) throws -> String {
      try store.judge().judge(store.sign(raw: Array(payload.utf8)), at: TestStore.now).code
    }
    for payload in ["[]", "1", "{", "{}}", "\"x\"", "\u{FEFF}{}"] { #expect(try code(payload) == "payload-not-json") }
    #expect(try code(#"{"environment":"Sandbox","environment":"Production"}"#) == "payload-duplicate-member")
    #expect(try code(#"{"environment":"Sandbox","x":{"a":1,"\u0061":2}}"#) == "payload-duplicate-member")
    #expect(try code("{}") == "unknown-kind")
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    #expect(try code(#"{"x":\#(deep)}"#) == "payload-not-json")
  }

  @Test func unknownValuesAreKept() throws {
    let payload = TestStore.transaction([
      "type": .string("New Kind"), "brandNew": .object(["a": .array([.integer(1)])]),
      "offerDiscountType": .string("FUTURE"),
    ])
    let verified = try #require(try verdict(payload).verified)
    #expect(verified.transaction?.type == .unknown("New Kind"))
    #expect(verified.parts.first?.payload == JSON.object(payload).bytes)
  }

  /// A proof of another kind of number: what Apple calls it is a decimal string, and stays one beyond 2^53.
  @Test func identifiersBeyondDoubles() throws {
    let payload = TestStore.transaction(["transactionId": .string("9007199254740993")])
    #expect(try verdict(payload).verified?.transaction?.transaction.text == "9007199254740993")
    #expect(try verdict(TestStore.transaction(["transactionId": .integer(1)])).code == "malformed-field")
    #expect(try verdict(TestStore.transaction(["transactionId": .string("1/2")])).code == "malformed-field")
  }

  /// What nothing is decided by must not lose anybody a purchase: it is kept as it was signed.
  @Test(arguments: [
    "price", "currency", "offerType", "offerDiscountType", "transactionReason", "storefront", "inAppOwnershipType",
    "revocationReason", "revocationType", "isUpgraded", "multiSeatInfo", "advancedCommerceInfo", "offerPeriod",
  ]) func aClaimThatDecidesNothingMayBeOfAnyKind(_ name: String) throws {
    for value in [JSON.array([]), .object([:]), .number("1.5"), .string("")] {
      let payload = TestStore.transaction([name: value])
      let verified = try #require(try verdict(payload).verified, "\(name)")
      #expect(verified.parts.first?.payload == JSON.object(payload).bytes)
    }
  }

  @Test(arguments: [
    "productId", "expirationIntent", "renewalDate", "recentSubscriptionStartDate", "priceIncreaseStatus",
  ])
  func renewalInfoToo(_ name: String) throws {
    let payload = TestStore.renewal([name: .array([])])
    #expect(try store.judge().judge(store.sign(payload), at: TestStore.now).code == "verified")
  }
}
