import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

struct ReceiptTests {
  private func code(_ receipt: TestReceipt, device: String? = nil, at: Instant = TestStore.now) throws -> String {
    receipt.verdict(try TestReceipt.judge(), device: device, at: at).code
  }

  private func code(text: String) throws -> String {
    try TestReceipt.judge().judge(receipt: Array(text.utf8), at: TestStore.now).code
  }

  @Test func aGoodReceiptTellsWhatItHolds() throws {
    let receipt = TestReceipt(
      [9999: [1], 6: [0xFF], 21: TestReceipt.date("2026-01-01T00:00:00Z")],
      purchases: [
        TestReceipt.purchase([1701: TestReceipt.number(3), 1799: [0xEE]]),
        TestReceipt.period(
          "2001", of: "2000", from: "2025-09-01T00:00:00Z", until: "2025-10-01T00:00:00Z",
          [
            1711: TestReceipt.number(9_223_372_036_854_775_900), 1713: TestReceipt.number(1),
            1719: TestReceipt.number(0), 1721: TestReceipt.text("winback"),
          ]),
      ])
    let proof = try #require(receipt.verdict(try TestReceipt.judge()).verified)
    #expect(proof.kind == .appReceipt && proof.environment == .production && proof.signedDate == TestStore.signed)
    #expect(proof.digest == SHA256.digest(receipt.base64).hex)
    let (coins, pro) = (proof.purchases[0], proof.purchases[1])
    #expect(coins.type == .consumable && coins.quantity == 3 && coins.transaction.text == "1000")
    #expect(coins.expiresDate == nil && coins.webOrderLineItem == nil && !coins.rank.isRevoked)
    #expect(pro.type == .autoRenewable && pro.expiresDate == Instant.at("2025-10-01T00:00:00Z"))
    #expect(pro.originalTransaction.text == "2000" && pro.webOrderLineItem == "9223372036854775900")
    #expect(pro.businessKey.part == "line:9223372036854775900")
    #expect(proof.parts[0].digest == SHA256.digest("\(proof.digest):1000").hex)
    let payload = try proof.parts[1].document()
    #expect(payload["isTrialPeriod"]?.bool == true && payload["isInIntroOfferPeriod"]?.bool == false)
    #expect(payload["promotionalOfferId"]?.string == "winback")
    let told = proof.evidence["receipt"]
    #expect(told?["digest"]?.string == "SHA-256" && told?["unknownAttributes"]?.int64 == 3)
    #expect(told?["purchases"]?.int64 == 2 && told?["device"]?.string == "not-asked")
    #expect(told?["expirationDate"]?.int64 == Instant.at("2026-01-01T00:00:00Z").milliseconds)
    #expect(proof.evidence["verifier"]?.string == "purchases-receipt/1" && proof.evidence["chain"] != nil)
  }

  @Test(arguments: [SignedData.Digest.sha1, .sha256], [false, true])
  func everyFormIsJudgedTheSame(_ digest: SignedData.Digest, _ isIndefinite: Bool) throws {
    for hasAttributes in [false, true] {
      var receipt = TestReceipt()
      receipt.form = .init(digest: digest, isIndefinite: isIndefinite, hasAttributes: hasAttributes)
      let proof = try #require(receipt.verdict(try TestReceipt.judge()).verified)
      #expect(proof.purchases.count == 1 && proof.evidence["receipt"]?["digest"]?.string == digest.rawValue)
    }
  }

  // MARK: C09

  @Test func aHandMadeReceiptNamesNothing() throws {
    let good = TestReceipt()
    var bytes = good.bytes
    bytes[bytes.count - 1] ^= 1
    #expect(try code(text: Base64.encode(bytes)) == "receipt-signature-invalid")
    bytes = good.bytes
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: "com.example.coins".utf8) })
    bytes[place + 12] ^= 1
    let judged = try TestReceipt.judge().judge(receipt: Array(Base64.encode(bytes).utf8), at: TestStore.now)
    #expect(judged.code == "receipt-signature-invalid")
    #expect(judged.rejected?.reason.isAuthentic == false)
    #expect(judged.rejected?.evidence["receipt"] == nil)
    #expect(try code(text: Base64.encode(good.content)) == "receipt-not-signed-data")
    for count in [0, 2] {
      var receipt = good
      receipt.form.signerCount = count
      #expect(try code(receipt) == "receipt-signer-count")
    }
    bytes = good.bytes
    let type = try #require(bytes.indices.first { bytes[$0...].starts(with: [0x01, 0x07, 0x02]) })
    bytes[type + 2] = 3
    #expect(try code(text: Base64.encode(bytes)) == "receipt-not-signed-data")
  }

  // MARK: C10

  @Test func attributesThatAreNoneAreRefused() throws {
    func with(_ attribute: [UInt8]) -> TestReceipt {
      var receipt = TestReceipt()
      receipt.attributes.append(attribute)
      return receipt
    }
    let number = TestReceipt.number(7)
    let value = BERValue.encode(BERValue.Tag.octetString, [1])
    #expect(try code(with(TestReceipt.attribute([number, value]))) == "payload-not-receipt")
    #expect(try code(with(TestReceipt.attribute([number, number, value, value]))) == "payload-not-receipt")
    let nine: [UInt8] = [0x02, 0x09, 0x01, 0, 0, 0, 0, 0, 0, 0, 0]
    #expect(try code(with(TestReceipt.attribute([nine, number, value]))) == "payload-not-receipt")
    let padded: [UInt8] = [0x02, 0x09, 0x00, 1, 0, 0, 0, 0, 0, 0, 0]
    #expect(try code(with(TestReceipt.attribute([padded, number, value]))) == "verified")
    #expect(try code(with(TestReceipt.attribute([number, number, [0x04, 0x00]]))) == "verified")
    #expect(try code(with(TestReceipt.attribute(2, TestReceipt.text("com.other")))) == "malformed-field")
    #expect(try code(TestReceipt(purchases: [[0x30, 0x00]])) == "malformed-field")
    #expect(try code(TestReceipt(purchases: [[0x31, 0x80]])) == "malformed-field")
    var broken = TestReceipt()
    broken.attributes.append(Array(repeating: [0x30, 0x80], count: 10_000).flatMap(\.self))
    #expect(try code(broken) == "payload-not-receipt")
    #expect(
      try code(TestReceipt(purchases: [TestReceipt.purchase(), TestReceipt.purchase([1703: TestReceipt.text("2")])]))
        == "verified")
  }

  @Test(
    arguments: [
      (12, "", "missing-field"), (12, "2024-02-30T00:00:00Z", "malformed-field"),
      (12, "2024-06-01T00:00:00+0000", "malformed-field"), (12, "2024-06-01T00:00:00+00:00", "verified"),
      (12, "1969-12-31T23:59:59Z", "malformed-field"), (21, "", "verified"), (21, "soon", "malformed-field"),
    ] as [(UInt64, String, String)])
  func datesAreRFC3339(_ type: UInt64, _ text: String, _ expected: String) throws {
    #expect(try code(TestReceipt([type: TestReceipt.date(text)])) == expected)
  }

  @Test func purchasesMustBeWhole() throws {
    func purchase(_ changes: [UInt64: [UInt8]?]) throws -> String {
      try code(TestReceipt(purchases: [TestReceipt.purchase(changes)]))
    }
    for type in [1702, 1703, 1704] as [UInt64] {
      #expect(try purchase([type: nil]) == "missing-field")
      #expect(try purchase([type: []]) == "missing-field")
    }
    #expect(try purchase([1704: TestReceipt.text("2024-02-30T00:00:00Z")]) == "malformed-field")
    for number in [0, 10_001, 1_000_000_000, UInt64.max] {
      #expect(try purchase([1701: TestReceipt.number(number)]) == "malformed-field")
    }
    #expect(try purchase([1701: nil]) == "verified")
    #expect(try purchase([1705: nil]) == "verified")
    #expect(try purchase([1711: [0x02, 0x09, 0x01, 0, 0, 0, 0, 0, 0, 0, 0]]) == "malformed-field")
    #expect(try purchase([1713: TestReceipt.number(2)]) == "malformed-field")
    #expect(try purchase([1702: [0x0C, 0x02, 0xC3, 0x28]]) == "malformed-field")
    #expect(try purchase([1702: TestReceipt.text("a/b")]) == "malformed-field")
  }

  @Test func typesAreToldOrLeftOpen() throws {
    func type(_ changes: [UInt64: [UInt8]?]) throws -> ProductType? {
      TestReceipt(purchases: [TestReceipt.purchase(changes)]).verdict(try TestReceipt.judge()).verified?.purchases[0]
        .type
    }
    let end = TestReceipt.date("2025-12-01T00:00:00Z")
    #expect(try type([1707: TestReceipt.number(0)]) == .nonConsumable)
    #expect(try type([1707: TestReceipt.number(2)]) == .nonRenewing)
    #expect(try type([1707: TestReceipt.number(3), 1708: end]) == .autoRenewable)
    #expect(try type([1707: nil, 1708: end]) == .autoRenewable)
    for changes in [[1707: nil], [1707: TestReceipt.number(3)], [1707: TestReceipt.number(9)]] as [[UInt64: [UInt8]?]] {
      guard case .unknown = try type(changes) else {
        Issue.record("a type out of nothing")
        return
      }
    }
  }

  @Test func aCancelledPurchaseIsRevoked() throws {
    let receipt = TestReceipt(purchases: [
      TestReceipt.purchase([1712: TestReceipt.date("2025-09-30T13:00:00Z")])
    ])
    let purchase = try #require(receipt.verdict(try TestReceipt.judge()).verified?.purchases.first)
    #expect(purchase.rank.isRevoked && purchase.revocationDate == Instant.at("2025-09-30T13:00:00Z"))
  }

  @Test func noBytesBringItDown() throws {
    let judge = try TestReceipt.judge()
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = Xorshift(state: seed | 1)
    let good = TestReceipt().bytes
    for round in 0..<400 {
      var bytes = good
      for _ in 0...(round % 4) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      let verdict = judge.judge(receipt: Array(Base64.encode(bytes).utf8), at: TestStore.now)
      // What is still verified says the same: what was hit is not signed and says nothing.
      if let proof = verdict.verified { #expect(proof.purchases.map(\.transaction.text) == ["1000"], "seed \(seed)") }
    }
    let noise = (0..<2_000_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    #expect(judge.judge(receipt: Array(Base64.encode(noise).utf8), at: TestStore.now).code == "receipt-too-large")
    #expect(
      judge.judge(receipt: Array(Base64.encode(Array(noise.prefix(900_000))).utf8), at: TestStore.now).code
        == "receipt-not-asn1")
  }

  private struct Xorshift: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  // MARK: C12

  @Test func aReceiptWithNothingInItIsGood() throws {
    let proof = try #require(TestReceipt(purchases: []).verdict(try TestReceipt.judge()).verified)
    #expect(proof.parts.isEmpty && proof.purchases.isEmpty)
  }

  @Test func whatIsNoReceiptIsToldApart() throws {
    let good = TestReceipt().base64
    #expect(try code(text: "") == "receipt-empty")
    #expect(try code(text: "\r\n") == "receipt-empty")
    #expect(try code(text: TestStore.shared.sign(TestStore.transaction())) == "receipt-is-jws")
    #expect(try code(text: Base64.encode(Array(good.utf8))) == "receipt-encoded-twice")
    #expect(try code(text: "null") == "receipt-not-asn1")
    #expect(try code(text: #"{"status":0,"receipt":{"in_app":[]}}"#) == "receipt-not-base64")
    #expect(try code(text: good + "*") == "receipt-not-base64")
    #expect(try code(text: String(good.dropLast(4)) + "====") == "receipt-not-base64")
    // Lines of 76 characters, as encoders for mail write them.
    var lines = ""
    for (index, character) in good.enumerated() {
      lines.append(character)
      if index % 76 == 75 { lines += "\r\n" }
    }
    #expect(try code(text: lines) == "verified")
  }

  // MARK: App, environment, date, device

  @Test(arguments: [
    ("Production", "verified", Environment.production), ("ProductionVPP", "verified", .production),
    ("ProductionSandbox", "verified", .sandbox), ("Sandbox", "verified", .sandbox),
    ("ProductionVPPSandbox", "verified", .sandbox), ("production", "unknown-environment", .production),
    ("Xcode", "environment-not-of-signer", .xcode), ("LocalTesting", "environment-not-of-signer", .localTesting),
  ])
  func environmentsAreThoseOfAttributeZero(_ name: String, _ expected: String, _ environment: Environment) throws {
    let verdict = TestReceipt([0: TestReceipt.text(name)]).verdict(try TestReceipt.judge())
    #expect(verdict.code == expected)
    if let proof = verdict.verified { #expect(proof.environment == environment) }
    if name == "Production" {
      #expect(TestReceipt().verdict(try TestReceipt.judge([.sandbox])).code == "environment-not-accepted")
    }
  }

  @Test func appAndEnvironmentAreNeeded() throws {
    #expect(try code(TestReceipt([2: TestReceipt.text("com.other")])) == "wrong-bundle")
    #expect(try code(TestReceipt([2: nil])) == "missing-field")
    #expect(try code(TestReceipt([0: nil])) == "missing-field")
    #expect(try code(TestReceipt([12: nil])) == "missing-field")
  }

  /// C02 for receipts: the chain is judged at the receipt's date, whenever that is asked.
  @Test func theChainIsJudgedAtTheReceiptsDate() throws {
    let late = Instant.at("2035-01-01T00:00:00Z")
    #expect(try code(TestReceipt(), at: late) == "verified")
    #expect(try code(TestReceipt([12: TestReceipt.date("2025-12-01T00:00:00Z")]), at: late) == "chain-expired")
    #expect(try code(TestReceipt([12: TestReceipt.date("2023-08-31T00:00:00Z")]), at: late) == "chain-not-yet-valid")
    #expect(
      try code(TestReceipt([12: TestReceipt.date("2025-10-04T00:00:00Z")])) == "pending:signed-in-the-future")
  }

  @Test func theDeviceIsCheckedWhereItIsNamed() throws {
    let device = try #require(DeviceIdentifier(TestReceipt.device))
    let bundle = TestReceipt.text(TestStore.bundleID)
    let receipt = TestReceipt([5: SHA1.digest(device.bytes + [1, 2, 3, 4] + bundle)])
    #expect(try code(receipt, device: TestReceipt.device) == "verified")
    #expect(try code(receipt, device: "6E1E6D7B-0000-4000-8000-0000000000AB") == "device-mismatch")
    #expect(try code(receipt, device: "00:1b:44:11:3a:b7") == "device-mismatch")
    #expect(try code(receipt) == "verified")
    #expect(try code(TestReceipt([4: nil]), device: TestReceipt.device) == "missing-field")
    #expect(DeviceIdentifier("") == nil && DeviceIdentifier("not hex") == nil && DeviceIdentifier("abc") == nil)
  }

  // MARK: Apple's vectors

  @Test func xcodesReceiptCountsWhereItsCertificateIsConfigured() throws {
    let text = try Fixture.bytes("receipts/xcode-app-receipt-with-transaction.b64")
    let signed = try SignedData(parsing: #require(Base64.decode(text.filter { $0 > 0x20 })))
    let bundleID = "com.example.naturelab.backyardbirds.example"
    let settings = try VerificationSettings(
      apps: [.init(bundleID: bundleID)], environments: [.xcode],
      localCertificates: PinnedCertificates([("xcode", signed.certificates[0])]))
    let proof = try #require(ProofJudge(settings).judge(receipt: text, at: TestStore.now).verified)
    #expect(proof.environment == .xcode && proof.purchases.count == 1)
    #expect(proof.purchases[0].transaction.text == "0" && proof.purchases[0].product.text == "pass.premium")
    #expect(proof.purchases[0].type == .autoRenewable)

    // In production it is refused for what it is, and its signer with it.
    #expect(try TestReceipt.judge().judge(receipt: text, at: TestStore.now).code == "receipt-signed-locally")
    let other = try VerificationSettings(
      apps: [.init(bundleID: bundleID)], environments: [.xcode],
      localCertificates: PinnedCertificates([("other", TestReceipt.signer.leaf.der)]))
    #expect(ProofJudge(other).judge(receipt: text, at: TestStore.now).code == "chain-not-configured")
  }

  @Test func theOldestKindWaitsForTheStore() throws {
    let text = try Fixture.bytes("receipts/legacyTransaction.b64")
    #expect(try TestReceipt.judge().judge(receipt: text, at: TestStore.now).code == "pending:needs-verify-receipt")
    let plain = try #require(Base64.decode(text.filter { $0 > 0x20 }))
    #expect(try TestReceipt.judge().judge(receipt: plain, at: TestStore.now).code == "pending:needs-verify-receipt")
    #expect(try code(text: "{}") == "receipt-not-base64")
  }
}
