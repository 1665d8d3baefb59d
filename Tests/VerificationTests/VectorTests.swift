import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// Files that nobody on this project made; what must come out stands beside each in the vectors' own description.
struct VectorTests {
  let now = Instant.at("2026-11-30T00:00:00Z")

  func judge() throws -> ProofJudge {
    ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: "com.example")],
        anchors: TrustAnchors([("mock-root.der", try Fixture.bytes("certs/mock-root.der"))]),
        environments: [.sandbox]))
  }

  func verdict(_ file: String, _ kind: ProofKind? = nil) throws -> Verdict {
    try judge().judge(try Fixture.bytes("jws/\(file).jws"), expecting: kind, at: now)
  }

  @Test(arguments: [nil, ProofKind.renewalInfo]) func renewalInfoVerifies(_ kind: ProofKind?) throws {
    let proof = try #require(try verdict("renewalInfo", kind).verified)
    #expect(proof.kind == .renewalInfo && proof.environment == .sandbox)
    #expect(proof.signedDate == Instant(milliseconds: 1_672_956_154_000))
  }

  @Test(arguments: [nil, ProofKind.notification]) func testNotificationVerifies(_ kind: ProofKind?) throws {
    let proof = try #require(try verdict("testNotification", kind).verified)
    #expect(proof.notification?.type == "TEST" && proof.notification?.uuid == "9ad56bd2-0bc6-42e0-af24-fd996d87a1e6")
    #expect(proof.parts.isEmpty && proof.environment == .sandbox)
  }

  @Test(arguments: [nil, ProofKind.transaction]) func aTransactionWithoutIdsIsANamedRejection(_ kind: ProofKind?) throws
  {
    let proof = try #require(try verdict("transactionInfo", kind).rejected)
    #expect(proof.reason.code == "missing-field" && proof.field == "transactionId")
    #expect(proof.reason.isAuthentic)
  }

  @Test func anotherAppsBundle() throws { #expect(try verdict("wrongBundleId").code == "wrong-bundle") }

  @Test func aHeaderWithoutAChain() throws { #expect(try verdict("missingX5CHeaderClaim").code == "jws-x5c-absent") }

  /// Apple signs these at test time; here with a key of ours, under Apple's own chain of markers.
  @Test(arguments: ["signedTransaction", "signedRenewalInfo", "signedExternalPurchaseTokenNotification"])
  func modelsVerify(_ name: String) throws {
    let store = TestStore.shared
    let model = try Fixture.bytes("models/\(name).json")
    let isToken = name.contains("Token")
    let local = try localCertificate()
    let environments: Set<Environment> = isToken ? [.production] : [.localTesting]
    let judge = ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: "com.example", appAppleID: 55555)], anchors: store.anchors, environments: environments,
        localCertificates: isToken ? nil : local.pinned))
    let proof =
      isToken ? store.sign(raw: model) : store.sign(raw: model, header: store.header([local.der]), key: local.key)
    let verified = try #require(judge.judge(proof, at: now).verified)
    switch name {
    case "signedTransaction":
      #expect(verified.parts.first?.payload == model)
      let revision = try #require(verified.transaction)
      #expect(revision.transaction.text == "23456" && revision.revocationReason == 1 && revision.isUpgraded)
      #expect(revision.price == 10990 && revision.offerDiscountType == "PAY_AS_YOU_GO")
      #expect(revision.accountToken?.text == "7e3fb20b-4cdb-47cc-936d-99d65f608138")
    case "signedRenewalInfo":
      #expect(verified.parts.first?.payload == model)
      let revision = try #require(try verified.parts.first?.renewalRevision())
      #expect(revision.expirationIntent == 1 && revision.isInBillingRetry == true)
      #expect(revision.gracePeriodExpiresDate == Instant(milliseconds: 1_698_148_900_000))
    default:
      #expect(verified.environment == .production && verified.notification?.type == "EXTERNAL_PURCHASE_TOKEN")
      #expect(verified.notification?.subtype == "UNREPORTED" && verified.notification?.version == "2.0")
    }
  }

  /// Everything that Apple's own examples hold has a place in the models.
  @Test func modelsHoldAllOfThePublishedPayloads() throws {
    func root(_ name: String) throws -> JSONView {
      try JSONDocument(parsing: try Fixture.bytes("models/\(name).json")).root
    }
    let transaction = PayloadReading<SignedTransaction>(try root("signedTransaction"))
    #expect(transaction.findings.isEmpty && transaction.model.storefrontID == "143441")
    #expect(transaction.model.commitment?.totalBillingPeriods == 12 && transaction.model.price == 10990)
    let item = try #require(transaction.model.advancedCommerce?.item(sku: "com.example.sku.premium"))
    #expect(item.refunds?.first?.type == .known(.prorated) && item.price == 9990)
    let renewal = PayloadReading<SignedRenewalInfo>(try root("signedRenewalInfo"))
    #expect(renewal.findings.isEmpty && renewal.model.commitment?.renewalPrice == 9990)
    #expect(renewal.model.advancedCommerce?.items?.first?.priceIncrease?.status == .known(.pending))
    let notification = PayloadReading<SignedNotification>(try root("signedNotification"))
    #expect(notification.findings.isEmpty && notification.model.data?.status == .known(.active))
    let token = PayloadReading<SignedNotification>(try root("signedExternalPurchaseTokenNotification"))
    #expect(token.findings.isEmpty && token.model.externalPurchaseToken?.appAppleID == 55555)
  }

  /// The notification's model holds words in place of the proofs inside: each is judged, and the first one says no.
  @Test func theNotificationModelIsRejectedForItsNestedProof() throws {
    let store = TestStore.shared
    let local = try localCertificate()
    let judge = ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: "com.example")], anchors: store.anchors, environments: [.localTesting],
        localCertificates: local.pinned))
    let model = try Fixture.bytes("models/signedNotification.json")
    let verdict = judge.judge(
      store.sign(raw: model, header: store.header([local.der]), key: local.key), expecting: .notification, at: now)
    #expect(verdict.code == "jws-wrong-segment-count")
    #expect(verdict.rejected?.field == "data.signedTransactionInfo")
  }

  private func localCertificate() throws -> (der: [UInt8], key: P256PrivateKey, pinned: PinnedCertificates) {
    let key = P256PrivateKey(seed: [7], label: "xcode")
    let certificate = CertificateBuilder(
      subject: [("CN", "StoreKit Testing in Xcode")], notBefore: Instant.at("2020-01-01T00:00:00Z").milliseconds,
      notAfter: Instant.at("2040-01-01T00:00:00Z").milliseconds
    ).selfSigned(key: key.key)
    return (certificate.der, key, try PinnedCertificates([("xcode", certificate.der)]))
  }

  // MARK: Certificates

  private func chain(_ files: [String]) throws -> [[UInt8]] { try files.map { try Fixture.bytes("certs/\($0).der") } }

  private func failure(_ files: [String], root: String, at: String) throws -> String? {
    let anchors = try TrustAnchors([(root, try Fixture.bytes("certs/\(root).der"))])
    switch ChainPolicy.judge(x5c: try chain(files), anchors: anchors, at: Instant.at(at).milliseconds) {
    case .success: return nil
    case .failure(let failure): return failure.code
    }
  }

  @Test func applesOwnChain() throws {
    let files = ["real-apple-signing-certificate", "real-apple-intermediate", "real-apple-root"]
    #expect(try failure(files, root: "real-apple-root", at: "2025-11-01T00:00:00Z") == nil)
    #expect(try failure(files, root: "real-apple-root", at: "2027-10-14T00:00:00Z") == "expired")
    #expect(try failure(files, root: "root-ca", at: "2025-11-01T00:00:00Z") == "untrusted-root")
    #expect(try AppleRoots.g3.der == Fixture.bytes("certs/real-apple-root.der"))
    #expect(try AppleRoots.inc.der == Fixture.bytes("certs/real-apple-inc-root.der"))
  }

  @Test func theMockChainAndItsMarkers() throws {
    let at = "2025-01-01T00:00:00Z"
    #expect(try failure(["leaf-cert", "intermediate-ca", "root-ca"], root: "root-ca", at: at) == nil)
    let unmarked = ["leaf-cert-for-intermediate-ca-invalid-oid", "intermediate-ca-invalid-oid", "root-ca"]
    #expect(try failure(unmarked, root: "root-ca", at: at) == "marker-missing-intermediate")
    let leaf = ["leaf-cert-invalid-oid", "intermediate-ca", "root-ca"]
    #expect(try failure(leaf, root: "root-ca", at: at) == "marker-missing-leaf")
  }
}
