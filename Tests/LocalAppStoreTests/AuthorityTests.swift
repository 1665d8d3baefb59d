import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification
import Testing

@testable import PurchasesLocalAppStore

struct AuthorityTests {
  let at = LocalAuthority.validFrom.advanced(byMilliseconds: 86_400_000)

  func judge(_ authority: LocalAuthority, local: Bool = false) throws -> ProofJudge {
    ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: "com.example")], anchors: TrustAnchors([("root", authority.root.der)]),
        environments: local ? [.sandbox, .xcode] : [.sandbox],
        localCertificates: local ? PinnedCertificates([("xcode", authority.localCertificate.der)]) : nil))
  }

  func transaction(_ environment: String) -> String {
    #"{"transactionId":"1","originalTransactionId":"1","bundleId":"com.example","productId":"p","purchaseDate":1,"#
      + #""type":"Consumable","signedDate":\#(at.milliseconds),"environment":"\#(environment)"}"#
  }

  @Test func theSameSeedSignsTheSameBytes() throws {
    let payload = Array(transaction("Sandbox").utf8)
    #expect(LocalAuthority(seed: 7).root == LocalAuthority(seed: 7).root)
    #expect(LocalAuthority(seed: 7).root != LocalAuthority(seed: 8).root)
    #expect(LocalAuthority(seed: 7).sign(payload) == LocalAuthority(seed: 7).sign(payload))
  }

  @Test func whatItSignsIsVerifiedUnderItsRootOnly() throws {
    let authority = LocalAuthority(seed: 7)
    let signed = try authority.sign(.transaction, payload: Array((transaction("Sandbox") + "\n").utf8))
    guard case .verified(let proof) = try judge(authority).judge(signed, at: at) else {
      Issue.record("not verified")
      return
    }
    #expect(proof.parts.first?.payload == Array(transaction("Sandbox").utf8))
    guard case .rejected(let rejected) = try judge(LocalAuthority(seed: 8)).judge(signed, at: at) else {
      Issue.record("not rejected")
      return
    }
    #expect(rejected.reason.code == "chain-untrusted-root")
  }

  @Test func xcodeHasItsOwnCertificate() throws {
    let authority = LocalAuthority(seed: 7)
    let payload = Array(transaction("Xcode").utf8)
    let signed = try authority.sign(.transaction, payload: payload)
    guard case .verified(let proof) = try judge(authority, local: true).judge(signed, at: at) else {
      Issue.record("not verified")
      return
    }
    #expect(proof.environment == .xcode)
    guard case .rejected = try judge(authority).judge(signed, at: at) else {
      Issue.record("taken without the switch")
      return
    }
    let asStore = try authority.sign(.transaction, payload: payload, asStore: true)
    guard case .rejected(let rejected) = try judge(authority, local: true).judge(asStore, at: at) else {
      Issue.record("not rejected")
      return
    }
    #expect(rejected.reason.code == "environment-not-of-signer")
  }

  @Test func objectsInsideANotificationAreSigned() throws {
    let authority = LocalAuthority(seed: 7)
    let payload =
      #"{"notificationType":"ONE_TIME_CHARGE","notificationUUID":"u","signedDate":\#(at.milliseconds),"x":1.50,"#
      + #""data":{"bundleId":"com.example","environment":"Sandbox","signedTransactionInfo":\#(transaction("Sandbox"))}}"#
    let signed = try authority.sign(.notification, payload: Array(payload.utf8))
    guard case .verified(let proof) = try judge(authority).judge(signed, expecting: .notification, at: at) else {
      Issue.record("not verified")
      return
    }
    #expect(proof.parts.map(\.kind) == [.transaction] && proof.transaction?.transaction.text == "1")
  }

  @Test func whatIsNoPayloadIsNotSigned() {
    let authority = LocalAuthority(seed: 7)
    for bad in ["", "{", "[]", "1"] {
      #expect(throws: SigningFailure.self) { try authority.sign(.transaction, payload: Array(bad.utf8)) }
    }
  }

  // MARK: Folders

  private func withFolder(_ body: (String) throws -> Void) throws {
    var template = Array("/tmp/authority.XXXXXX".utf8CString)
    let folder = String(cString: try #require(mkdtemp(&template)))
    defer {
      for file in ["seed", "root.der", "xcode.der"] { unlink(folder + "/" + file) }
      rmdir(folder)
    }
    try body(folder)
  }

  @Test func aFolderKeepsItsAuthority() throws {
    try withFolder { folder in
      let first = try LocalAuthority(folder: folder)
      #expect(try LocalAuthority(folder: folder).root == first.root)
      var status = stat()
      #expect(stat(folder + "/seed", &status) == 0 && status.st_mode & 0o777 == 0o600)
      #expect(stat(folder + "/root.der", &status) == 0 && Int(status.st_size) == first.root.der.count)
      // Another folder, another root.
      try withFolder { other in
        let second = try LocalAuthority(folder: other)
        #expect(second.root != first.root)
      }
    }
  }

  @Test func aFolderThatDoesNotAgreeIsRefused() throws {
    try withFolder { folder in
      _ = try LocalAuthority(folder: folder)
      unlink(folder + "/seed")
      #expect(throws: AuthorityFolderFailure.self) { try LocalAuthority(folder: folder) }
    }
    #expect(throws: AuthorityFolderFailure.self) { try LocalAuthority(folder: "/proc/nowhere") }
  }
}
