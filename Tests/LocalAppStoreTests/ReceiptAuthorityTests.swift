import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesVerification
import Testing

@testable import PurchasesLocalAppStore

struct ReceiptAuthorityTests {
  private let authority = LocalAuthority(seed: 7)
  private let at = LocalAuthority.validFrom.advanced(byMilliseconds: 86_400_000)

  private func receipt(_ environment: String = "ProductionSandbox") throws -> AppReceipt {
    let text = """
      {"environment":"\(environment)","bundleId":"com.example","receiptCreationDate":"2014-01-02T00:00:00Z",
      "deviceId":"6E1E6D7B-0000-4000-8000-0000000000AA","inApp":[
      {"transactionId":"1","productId":"coins","purchaseDate":"2014-01-01T12:00:00Z","type":"Consumable","quantity":2},
      {"transactionId":"3","originalTransactionId":"2","productId":"pro","purchaseDate":"2014-01-01T12:00:00Z",
      "expiresDate":"2014-02-01T12:00:00Z","webOrderLineItemId":"9007199254740993","type":"Auto-Renewable Subscription"}]}
      """
    return try AppReceipt(Fields(parsing: Array(text.utf8)))
  }

  private func verdict(_ signed: String, isLocal: Bool = false, device: String? = nil) throws -> Verdict {
    let receipts = authority.receipts
    let judge = ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: "com.example")], receiptAnchors: TrustAnchors([("root", receipts.root.der)]),
        environments: isLocal ? [.xcode] : [.sandbox],
        localCertificates: isLocal ? PinnedCertificates([("xcode", receipts.localCertificate.der)]) : nil))
    return judge.judge(
      receipt: Array(signed.utf8), device: device.flatMap { DeviceIdentifier($0).map { .identifier($0) } }, at: at)
  }

  @Test(arguments: [SignedData.Digest.sha1, .sha256], [false, true])
  func whatItSignsIsVerified(_ digest: SignedData.Digest, _ isIndefinite: Bool) throws {
    for hasAttributes in [false, true] {
      let form = SignedData.Form(digest: digest, isIndefinite: isIndefinite, hasAttributes: hasAttributes)
      let signed = authority.receipts.sign(try receipt(), form: form)
      let again = LocalAuthority(seed: 7).receipts.sign(try receipt(), form: form)
      #expect(signed == again)
      guard case .verified(let proof) = try verdict(signed, device: "6e1e6d7b-0000-4000-8000-0000000000aa") else {
        Issue.record("not verified")
        return
      }
      #expect(proof.environment == .sandbox && proof.purchases.map(\.transaction.text) == ["1", "3"])
      #expect(proof.purchases[0].quantity == 2 && proof.purchases[1].webOrderLineItem == "9007199254740993")
    }
  }

  @Test(arguments: ReceiptFault.allCases, [false, true])
  func whatIsWrongOnPurposeIsRefused(_ fault: ReceiptFault, _ isIndefinite: Bool) throws {
    let signed = authority.receipts.sign(try receipt(), form: .init(isIndefinite: isIndefinite), fault: fault)
    guard case .rejected(let proof) = try verdict(signed) else {
      Issue.record("\(fault) was not rejected")
      return
    }
    let expected =
      switch fault {
      case .brokenSignature, .changedContent: "receipt-signature-invalid"
      case .noSigner, .twoSigners: "receipt-signer-count"
      case .foreignRoot: "chain-untrusted-root"
      case .bareContent, .enveloped: "receipt-not-signed-data"
      case .cut, .trailing: "receipt-not-asn1"
      }
    #expect(proof.reason.code == expected)
  }

  @Test func xcodesReceiptsAreSignedByItsOwnCertificate() throws {
    let signed = authority.receipts.sign(try receipt("Xcode"))
    guard case .verified(let proof) = try verdict(signed, isLocal: true) else {
      Issue.record("not verified")
      return
    }
    #expect(proof.environment == .xcode)
    guard case .rejected(let refused) = try verdict(signed) else {
      Issue.record("not rejected")
      return
    }
    #expect(refused.reason.code == "receipt-signed-locally")
  }
}
