import PurchasesTestKit
import Testing

@testable import PurchasesCryptography

/// A receipt signer under an RSA root, and wrong ones beside it.
struct ReceiptChain {
  static let shared = ReceiptChain()

  let rootKey = PrivateKey(.rsa2048, seed: [7], label: "root")
  let intermediateKey = PrivateKey(.rsa2048, seed: [7], label: "intermediate")
  let leafKey = PrivateKey(.rsa2048, seed: [7], label: "leaf")
  let root: Certificate
  let intermediate: Certificate
  let leaf: Certificate

  static let start = midnight(2020, 1, 1)
  static let end = midnight(2025, 1, 1)

  init() {
    root = CertificateBuilder(
      subject: [("CN", "Receipt Root")], notBefore: midnight(2010, 1, 1), notAfter: midnight(2035, 1, 1), isCA: true,
      keyUsage: [.certificateSign]
    ).selfSigned(key: rootKey)
    intermediate = Self.intermediateBuilder.signed(publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
    leaf = Self.leafBuilder.signed(publicKey: leafKey, issuer: intermediate, issuerKey: intermediateKey)
  }

  static var intermediateBuilder: CertificateBuilder {
    CertificateBuilder(
      subject: [("CN", "Receipt Intermediate")], serial: [2], notBefore: start, notAfter: end, isCA: true,
      keyUsage: [.certificateSign], markers: [ChainPolicy.intermediateMarker])
  }

  static var leafBuilder: CertificateBuilder {
    CertificateBuilder(
      subject: [("CN", "Receipt Signing")], serial: [0xC3, 0x01], notBefore: start, notAfter: end, isCA: false,
      keyUsage: [.digitalSignature], markers: [ChainPolicy.leafMarker])
  }

  var anchors: TrustAnchors {
    get throws { try TrustAnchors([("root", root.der)]) }
  }

  func sign(_ content: [UInt8], _ form: SignedData.Form = .init()) -> [UInt8] {
    SignedData.sign(content, certificates: [leaf, intermediate, root], signer: leaf, key: leafKey, form: form)
  }
}

struct SignedDataTests {
  let chain = ReceiptChain.shared
  /// Two pieces in the form with open lengths.
  let content = [UInt8]((0..<1500).map { UInt8(truncatingIfNeeded: $0) })

  static let forms: [SignedData.Form] = [SignedData.Digest.sha1, .sha256].flatMap { digest in
    [true, false].flatMap { isIndefinite in
      [true, false].map { SignedData.Form(digest: digest, isIndefinite: isIndefinite, hasAttributes: $0) }
    }
  }

  private func failure(_ bytes: [UInt8]) -> SignedDataFailure? {
    do throws(SignedDataFailure) {
      let signed = try SignedData(parsing: bytes)
      try signed.verify(by: chain.leaf)
      return nil
    } catch { return error }
  }

  @Test(arguments: forms) func everyFormVerifiesAndLeadsToTheRoot(_ form: SignedData.Form) throws {
    let signed = try SignedData(parsing: chain.sign(content, form))
    #expect(signed.content == content && signed.digest == form.digest)
    let judged = try ChainPolicy.inspect(signed, anchors: chain.anchors)
    #expect(judged.leaf == chain.leaf && judged.intermediate == chain.intermediate && judged.anchors == [chain.root])
    #expect(judged.failure(at: ReceiptChain.start) == nil)
    #expect(judged.failure(at: ReceiptChain.start - 1) == .notYetValid)
    #expect(judged.failure(at: ReceiptChain.end + 1000) == .expired)
    #expect(throws: Never.self) { try signed.verify(by: judged.leaf) }
    #expect(throws: SignedDataFailure.signatureInvalid) { try signed.verify(by: chain.intermediate) }
  }

  /// Whatever byte is changed: refused, or it changed nothing that counts.
  @Test(arguments: forms) func noChangedByteChangesWhatIsVerified(_ form: SignedData.Form) throws {
    let small = Array(content.prefix(40))
    let good = chain.sign(small, form)
    let anchors = try chain.anchors
    var refused = 0
    for place in stride(from: 0, to: good.count, by: 3) {
      var bytes = good
      bytes[place] ^= 0x01 << UInt8(place % 8)
      do {
        let signed = try SignedData(parsing: bytes)
        let judged = try ChainPolicy.inspect(signed, anchors: anchors)
        try signed.verify(by: judged.leaf)
        #expect(signed.content == small && judged.leaf == chain.leaf, "byte \(place)")
      } catch { refused += 1 }
    }
    #expect(refused > good.count / 6)
  }

  @Test(arguments: forms) func everyPrefixIsRefused(_ form: SignedData.Form) {
    let good = chain.sign(Array(content.prefix(40)), form)
    for count in 0..<good.count { #expect(failure(Array(good[..<count])) != nil, "\(count) bytes") }
    #expect(failure(good + [0x05, 0x00]) == .notASN1(BERFailure(.trailingBytes, at: good.count)))
  }

  @Test func wrongSignersHaveNames() {
    #expect(failure(chain.sign(content, signers(0))) == .signerCount)
    #expect(failure(chain.sign(content, signers(2))) == .signerCount)
    #expect(failure(content) != nil)
    #expect(failure([0x31, 0x00]) == .notSignedData)
    #expect(failure([0x30, 0x80, 0, 0]) == .notSignedData)
    let otherKey = SignedData.sign(
      content, certificates: [chain.leaf, chain.intermediate], signer: chain.leaf, key: chain.rootKey)
    #expect(failure(otherKey) == .signatureInvalid)
  }

  private func signers(_ count: Int) -> SignedData.Form {
    var form = SignedData.Form()
    form.signerCount = count
    return form
  }

  @Test func signedAttributesMustSpeakOfThisContent() throws {
    // The signature is good over the attributes; what they name is other content.
    var bytes = chain.sign(content, .init(hasAttributes: true))
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: content.prefix(32)) })
    bytes[place + 5] ^= 1
    #expect(failure(bytes) == .signatureInvalid)
  }

  // MARK: Chains

  private func chainFailure(_ bytes: [UInt8], _ anchors: TrustAnchors) throws -> ChainFailure? {
    let signed = try SignedData(parsing: bytes)
    do throws(ChainFailure) {
      _ = try ChainPolicy.inspect(signed, anchors: anchors)
      return nil
    } catch { return error }
  }

  private func chainFailure(
    leaf: (inout CertificateBuilder) -> Void = { _ in }, intermediate: (inout CertificateBuilder) -> Void = { _ in },
    key: PrivateKey? = nil
  ) throws -> ChainFailure? {
    var (leafBuilder, intermediateBuilder) = (ReceiptChain.leafBuilder, ReceiptChain.intermediateBuilder)
    leaf(&leafBuilder)
    intermediate(&intermediateBuilder)
    let above = intermediateBuilder.signed(
      publicKey: chain.intermediateKey, issuer: chain.root, issuerKey: chain.rootKey)
    let signer = leafBuilder.signed(
      publicKey: key ?? chain.leafKey, issuer: above, issuerKey: chain.intermediateKey)
    let bytes = SignedData.sign(
      content, certificates: [signer, above, chain.root], signer: signer, key: chain.leafKey)
    return try chainFailure(bytes, chain.anchors)
  }

  @Test func everyWrongChainHasItsName() throws {
    #expect(try chainFailure() == nil)
    #expect(try chainFailure(leaf: { $0.markers = [] }) == .markerMissingLeaf)
    #expect(try chainFailure(intermediate: { $0.markers = [] }) == .markerMissingIntermediate)
    #expect(try chainFailure(intermediate: { $0.isCA = false }) == .notACA)
    #expect(try chainFailure(leaf: { $0.isCA = true }) == .leafIsCA)
    #expect(try chainFailure(leaf: { $0.keyUsage = [.certificateSign] }) == .leafMayNotSign)
    #expect(try chainFailure(leaf: { $0.criticalMarkers = ["1.2.3.4"] }) == .unhandledCriticalExtension)
    #expect(try chainFailure(key: PrivateKey(.p256, seed: [1])) == .keyNotRSA)

    func sent(_ certificates: [Certificate]) throws -> ChainFailure? {
      try chainFailure(
        SignedData.sign(content, certificates: certificates, signer: chain.leaf, key: chain.leafKey), chain.anchors)
    }
    // The root need not be sent: trust doesn't come from it.
    #expect(try sent([chain.intermediate, chain.leaf]) == nil)
    #expect(try sent([chain.leaf]) == .wrongChainLength)
    #expect(try sent([]) == .wrongChainLength)
    #expect(try sent([chain.leaf, chain.root]) == .namesDoNotChain)
    #expect(try sent([chain.intermediate, chain.root]) == .wrongChainLength)
    let lookalike = ReceiptChain.intermediateBuilder.signed(
      publicKey: chain.rootKey, issuer: chain.root, issuerKey: chain.rootKey)
    #expect(try sent([chain.leaf, lookalike, chain.root]) == .signatureInvalid)
    #expect(try sent([chain.leaf, lookalike, chain.intermediate]) == nil)
    #expect(try chainFailure(chain.sign(content), AppleRoots.receipts) == .untrustedRoot)
  }

  @Test func moreCertificatesThanAnybodySendsAreRefused() {
    let many = Array(repeating: chain.leaf, count: SignedData.maximumCertificateCount + 1)
    let bytes = SignedData.sign(content, certificates: many, signer: chain.leaf, key: chain.leafKey)
    #expect(failure(bytes) == .tooManyCertificates)
  }

  // MARK: Apple's own

  /// The intermediates that receipts were signed under, SHA-1 and SHA-256, lead to Apple Root CA.
  @Test(arguments: ["real-apple-wwdr-2013", "real-apple-wwdr-g5"])
  func applesIntermediatesLeadToTheShippedRoot(_ name: String) throws {
    let apple = try Certificate(der: Fixtures.certificate(name))
    #expect(apple.isIssued(byNameOf: AppleRoots.inc) && apple.isSigned(by: AppleRoots.inc) && apple.isCA)
    #expect(throws: Never.self) {
      try ChainPolicy.checkUses(leaf: chain.leaf, intermediate: apple, digests: ChainPolicy.receiptDigests)
    }
  }

  /// What Xcode signed: open lengths, content in pieces, one certificate of its own.
  @Test func xcodesReceiptVerifiesByItsCertificateAlone() throws {
    let text = try Fixtures.bytes("receipts/xcode-app-receipt-with-transaction.b64").filter { $0 > 0x20 }
    let signed = try SignedData(parsing: #require(Base64.decode(text)))
    #expect(signed.certificates.count == 1 && signed.digest == .sha256)
    let pinned = try PinnedCertificates([("xcode", signed.certificates[0])])
    let judged = try ChainPolicy.inspect(signed, pinned: pinned)
    #expect(throws: Never.self) { try signed.verify(by: judged.leaf) }
    #expect(throws: ChainFailure.wrongChainLength) { try ChainPolicy.inspect(signed, anchors: AppleRoots.receipts) }
    let other = try PinnedCertificates([("other", chain.leaf.der)])
    #expect(throws: ChainFailure.notConfigured) { try ChainPolicy.inspect(signed, pinned: other) }
  }
}
