import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// C01: every chain and header that must not be taken for the App Store's.
struct ChainTests {
  let store = TestStore.shared

  func code(_ proof: String) throws -> String { try store.judge().judge(proof, at: TestStore.now).code }

  func code(chain: [[UInt8]], key: P256PrivateKey? = nil) throws -> String {
    let verdict = try store.judge().judge(
      store.sign(TestStore.transaction(), chain: chain, key: key), at: TestStore.now)
    if let rejected = verdict.rejected {
      #expect(!rejected.reason.isAuthentic)
      // Nothing of the payload's claims shows.
      #expect(!"\(rejected.evidence) \(rejected.explanation)".contains("2000000900000002"))
    }
    return verdict.code
  }

  @Test func theWellFormedChainPasses() throws { #expect(try code(chain: store.x5c) == "verified") }

  @Test func aLeafWithoutItsMarker() throws {
    var builder = TestStore.leafBuilder()
    builder.markers = []
    let leaf = builder.signed(
      publicKey: store.leafKey.key, issuer: store.intermediate, issuerKey: store.intermediateKey)
    #expect(try code(chain: [leaf.der, store.intermediate.der, store.root.der]) == "chain-marker-missing-leaf")
  }

  @Test(arguments: [true, false]) func anIntermediateWithoutMarkerOrCAFlag(_ withoutMarker: Bool) throws {
    var builder = TestStore.intermediateBuilder()
    if withoutMarker { builder.markers = [] } else { builder.isCA = false }
    let intermediate = builder.signed(
      publicKey: store.intermediateKey, issuer: store.root, issuerKey: store.rootKey)
    let expected = withoutMarker ? "chain-marker-missing-intermediate" : "chain-not-a-ca"
    #expect(try code(chain: [store.leaf.der, intermediate.der, store.root.der]) == expected)
  }

  @Test func chainsOfTwoAndFour() throws {
    #expect(try code(chain: [store.leaf.der, store.root.der]) == "chain-wrong-length")
    let key = P256PrivateKey(seed: [9])
    let under = TestStore.leafBuilder().signed(
      publicKey: key.key, issuer: store.leaf, issuerKey: store.leafKey.key)
    #expect(try code(chain: [under.der] + store.x5c, key: key) == "chain-wrong-length")
    // The leaf as issuer, in a chain of three.
    #expect(try code(chain: [under.der, store.leaf.der, store.root.der], key: key) != "verified")
  }

  @Test func aForeignRootOfTheSameName() throws {
    let key = PrivateKey(.p256, seed: [1], label: "foreign")
    let foreign = TestStore.rootBuilder().selfSigned(key: key)
    #expect(try code(chain: [store.leaf.der, store.intermediate.der, foreign.der]) == "chain-untrusted-root")
    let intermediate = TestStore.intermediateBuilder().signed(
      publicKey: store.intermediateKey, issuer: foreign, issuerKey: key)
    #expect(try code(chain: [store.leaf.der, intermediate.der, foreign.der]) == "chain-untrusted-root")
    // The genuine root at the end does not make it better.
    #expect(try code(chain: [store.leaf.der, intermediate.der, store.root.der]) == "chain-signature-invalid")
  }

  @Test func theRightCertificatesReversed() throws {
    #expect(try code(chain: store.x5c.reversed()) == "chain-unordered")
  }

  @Test func anX5CThatIsNoChain() throws {
    func code(_ x5c: JSON?) throws -> String {
      var header = store.header()
      header["x5c"] = x5c
      return try self.code(store.sign(raw: JSON.object(TestStore.transaction()).bytes, header: header))
    }
    #expect(try code(.array([])) == "jws-x5c-empty")
    #expect(try code(nil) == "jws-x5c-absent")
    #expect(try code(.null) == "jws-x5c-absent")
    #expect(try code(.string(Base64.encode(store.leaf.der))) == "jws-x5c-not-strings")
    #expect(try code(.array([.integer(1)])) == "jws-x5c-not-strings")
    let good = store.x5c.map { JSON.string(Base64.encode($0)) }
    #expect(try code(.array([.string("")] + good.dropFirst())) == "jws-x5c-not-base64")
    #expect(try code(.array([good[0], .string(""), good[2]])) == "jws-x5c-not-base64")
    let urlSafe = store.x5c.map { JSON.string(Base64URL.encode($0)) }
    #expect(try code(.array(urlSafe)) == "jws-x5c-not-base64")
    let broken = store.x5c.map { JSON.string(Base64.encode(Array($0.dropLast()))) }
    #expect(try code(.array(broken)) == "chain-certificate-malformed")
  }

  @Test(arguments: ["none", "HS256", "ES384", "es256", ""]) func otherAlgorithms(_ algorithm: String) throws {
    var header = store.header()
    header["alg"] = .string(algorithm)
    let payload = JSON.object(TestStore.transaction()).bytes
    var proof = store.sign(raw: payload, header: header)
    if algorithm == "HS256" {
      let input = Base64URL.encode(JSON.object(header).bytes) + "." + Base64URL.encode(payload)
      let mac = HMACSHA256.authenticate(Array(input.utf8), key: store.leafKey.publicKey.spki).bytes
      #expect(try code(input + "." + Base64URL.encode(mac)) == "jws-wrong-signature-length")
      proof = input + "." + Base64URL.encode(mac + mac)
    }
    #expect(try code(proof) == "jws-algorithm-not-es256")
    header["alg"] = nil
    #expect(try code(store.sign(raw: payload, header: header)) == "jws-algorithm-not-es256")
  }

  @Test(arguments: [PrivateKey.Kind.p384, .rsa2048]) func aLeafWithAnotherKey(_ kind: PrivateKey.Kind) throws {
    let key = PrivateKey(kind, seed: [3], label: "leaf")
    let leaf = TestStore.leafBuilder().signed(
      publicKey: key, issuer: store.intermediate, issuerKey: store.intermediateKey)
    #expect(try code(chain: [leaf.der, store.intermediate.der, store.root.der]) == "chain-key-not-p256")
  }

  @Test func aHeaderThatDemandsOrRepeats() throws {
    var header = store.header()
    header["crit"] = .array([.string("b64")])
    let payload = JSON.object(TestStore.transaction()).bytes
    #expect(try code(store.sign(raw: payload, header: header)) == "jws-critical-header")
    let chain = JSON.array(store.x5c.map { .string(Base64.encode($0)) }).bytes
    let twice = Array(#"{"alg":"ES256","alg":"none","x5c":"#.utf8) + chain + Array("}".utf8)
    let input = Base64URL.encode(twice) + "." + Base64URL.encode(payload)
    let signature = Base64URL.encode(store.leafKey.sign(Array(input.utf8)))
    #expect(try code(input + "." + signature) == "jws-header-duplicate-member")
    for header in ["[]", "1", "\"x\"", "{", ""] {
      let proof = CompactJWS.sign(header: Array(header.utf8), payload: payload, key: store.leafKey)
      #expect(try code(proof) == (header.isEmpty ? "jws-empty-segment" : "jws-header-not-json"))
    }
  }

  @Test func anotherKeysSignature() throws {
    #expect(try code(chain: store.x5c, key: P256PrivateKey(seed: [8])) == "jws-signature-invalid")
  }

  /// C08: an expired root beside a good one is allowed, and judges what was signed in its time.
  @Test func anExpiredRootBesideTheGoodOne() throws {
    var old = TestStore.rootBuilder()
    old.subject = [("CN", "Old Root")]
    old.notAfter = Instant.at("2020-01-01T00:00:00Z").milliseconds
    let expired = old.selfSigned(key: PrivateKey(.p256, seed: [5], label: "old"))
    let anchors = try TrustAnchors([("old", expired.der), ("good", store.root.der)])
    let judge = ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: TestStore.bundleID, appAppleID: TestStore.appAppleID)], anchors: anchors))
    #expect(judge.judge(store.sign(TestStore.transaction()), at: TestStore.now).code == "verified")
  }

  @Test func anchorsThatAreNoneStopTheStart() throws {
    func refusal(_ der: [UInt8]) -> String {
      do {
        _ = try TrustAnchors([("anchors/g3.cer", der)])
        return "accepted"
      } catch { return error.description }
    }
    let pem = Array(PEM.encode(store.root.der, label: "CERTIFICATE").utf8)
    for bad in [pem, Array(store.root.der.dropLast(5)), [], Array("<!DOCTYPE html><html>404</html>".utf8)] {
      let text = refusal(bad)
      #expect(text.contains("anchors/g3.cer") && text != "accepted")
    }
    #expect(throws: TrustAnchorError.self) { try TrustAnchors([(label: String, der: [UInt8])]()) }
  }
}
