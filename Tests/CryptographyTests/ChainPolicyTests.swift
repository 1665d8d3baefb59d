import PurchasesCryptography
import PurchasesTestKit
import Testing

/// The parts of a chain to bend, one at a time.
struct ChainParts {
  static let start = midnight(2023, 9, 1)
  static let end = midnight(2025, 10, 11)
  static let within = midnight(2025, 10, 1)

  let rootKey = PrivateKey(.p256, seed: [1], label: "root")
  let intermediateKey = PrivateKey(.p256, seed: [1], label: "intermediate")
  var leafKey = PrivateKey(.p256, seed: [1], label: "leaf")
  var rootBuilder = CertificateBuilder(
    subject: [("CN", "Test Root"), ("O", "Test")], notBefore: midnight(2020, 1, 1), notAfter: midnight(2040, 1, 1),
    isCA: true, keyUsage: [.certificateSign])
  var intermediateBuilder = CertificateBuilder(
    subject: [("CN", "Test Intermediate")], serial: [2], notBefore: midnight(2021, 1, 1),
    notAfter: midnight(2036, 1, 1), isCA: true, keyUsage: [.certificateSign],
    markers: [ChainPolicy.intermediateMarker])
  var leafBuilder = CertificateBuilder(
    subject: [("CN", "Test Leaf")], serial: [3], notBefore: start, notAfter: end, isCA: false,
    keyUsage: [.digitalSignature], markers: [ChainPolicy.leafMarker])

  var root: Certificate { rootBuilder.selfSigned(key: rootKey) }
  var intermediate: Certificate {
    intermediateBuilder.signed(publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
  }
  var leaf: Certificate {
    leafBuilder.signed(publicKey: leafKey, issuer: intermediate, issuerKey: intermediateKey)
  }
  var x5c: [[UInt8]] { [leaf.der, intermediate.der, root.der] }
  var anchors: TrustAnchors {
    get throws { try TrustAnchors([("root", root.der)]) }
  }
}

private func failure(
  _ x5c: [[UInt8]], _ anchors: TrustAnchors, at time: Int64 = ChainParts.within
) -> ChainFailure? {
  switch ChainPolicy.judge(x5c: x5c, anchors: anchors, at: time) {
  case .success: nil
  case .failure(let failure): failure
  }
}

@Suite struct ChainPolicyTests {
  private let good = ChainParts()

  private func bent(_ bend: (inout ChainParts) -> Void) throws -> ChainFailure? {
    var parts = ChainParts()
    bend(&parts)
    return failure(parts.x5c, try good.anchors)
  }

  @Test func theWellFormedChainPasses() throws {
    let chain = try ChainPolicy.judge(x5c: good.x5c, anchors: good.anchors, at: ChainParts.within).get()
    #expect(chain.leaf == good.leaf)
    #expect(chain.intermediate == good.intermediate)
    #expect(chain.anchors == [good.root])
    #expect(chain.leafKey?.spki == good.leafKey.spki)
    #expect(chain.digest == JudgedChain.digest(of: good.x5c))
    #expect(chain.validFrom == ChainParts.start)
    #expect(chain.validThrough == ChainParts.end + 999)
  }

  // MARK: C01

  @Test func markersAreRequired() throws {
    #expect(try bent { $0.leafBuilder.markers = [] } == .markerMissingLeaf)
    #expect(try bent { $0.leafBuilder.markers = [ChainPolicy.intermediateMarker] } == .markerMissingLeaf)
    #expect(try bent { $0.intermediateBuilder.markers = [] } == .markerMissingIntermediate)
  }

  @Test func intermediateMustBeACA() throws {
    #expect(try bent { $0.intermediateBuilder.isCA = false } == .notACA)
    #expect(try bent { $0.intermediateBuilder.isCA = nil } == .notACA)
    #expect(try bent { $0.intermediateBuilder.keyUsage = [.digitalSignature] } == .notACA)
    #expect(try bent { $0.intermediateBuilder.keyUsage = nil } == nil)
  }

  @Test func leafMustNotBeACAAndMaySign() throws {
    #expect(try bent { $0.leafBuilder.isCA = true } == .leafIsCA)
    #expect(try bent { $0.leafBuilder.keyUsage = [.certificateSign] } == .leafMayNotSign)
    #expect(try bent { $0.leafBuilder.keyUsage = nil } == nil)
    #expect(try bent { $0.leafBuilder.isCA = nil } == nil)
  }

  @Test func exactlyThreeCertificates() throws {
    let anchors = try good.anchors
    let (leaf, intermediate, root) = (good.leaf, good.intermediate, good.root)
    #expect(failure([], anchors) == .wrongChainLength)
    #expect(failure([leaf.der], anchors) == .wrongChainLength)
    #expect(failure([leaf.der, root.der], anchors) == .wrongChainLength)
    let second = good.leafBuilder.signed(
      publicKey: PrivateKey(.p256, seed: [9]), issuer: leaf, issuerKey: good.leafKey)
    #expect(failure([second.der, leaf.der, intermediate.der, root.der], anchors) == .wrongChainLength)
    // A leaf used as an issuer, within the right length too.
    #expect(failure([second.der, leaf.der, intermediate.der], anchors) == .untrustedRoot)
    #expect(failure([leaf.der, intermediate.der, []], anchors) == .certificateMalformed)
    #expect(failure([[], [], []], anchors) == .certificateMalformed)
  }

  @Test func foreignRootsAreRefusedWhateverTheirName() throws {
    let anchors = try good.anchors
    let foreignKey = PrivateKey(.p256, seed: [66])
    let foreignRoot = good.rootBuilder.selfSigned(key: foreignKey)
    let foreignIntermediate = good.intermediateBuilder.signed(
      publicKey: good.intermediateKey, issuer: foreignRoot, issuerKey: foreignKey)
    // The foreign root in place of ours, with our intermediate and with its own.
    #expect(failure([good.leaf.der, good.intermediate.der, foreignRoot.der], anchors) == .untrustedRoot)
    #expect(failure([good.leaf.der, foreignIntermediate.der, foreignRoot.der], anchors) == .untrustedRoot)
    // Our root shown, but the intermediate is the foreigner's.
    #expect(failure([good.leaf.der, foreignIntermediate.der, good.root.der], anchors) == .signatureInvalid)
    // A forged root with our name and our public key, signed by nobody we know: it proves nothing, and need not.
    let dressed = good.rootBuilder.signed(publicKey: good.rootKey, issuer: foreignRoot, issuerKey: foreignKey)
    #expect(failure([good.leaf.der, foreignIntermediate.der, dressed.der], anchors) == .signatureInvalid)
    #expect(failure(good.x5c, AppleRoots.storeKit) == .untrustedRoot)
  }

  @Test func orderMatters() throws {
    let anchors = try good.anchors
    #expect(failure(good.x5c.reversed(), anchors) == .unordered)
    let x5c = good.x5c
    for order in [[1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [0, 0, 2], [2, 2, 2], [1, 1, 2], [0, 1, 1]] {
      #expect(failure(order.map { x5c[$0] }, anchors) != nil, "\(order)")
    }
    #expect(failure([x5c[0], x5c[2], x5c[1]], anchors) == .namesDoNotChain)
  }

  @Test func leafKeyMustBeOnP256() throws {
    #expect(try bent { $0.leafKey = PrivateKey(.p384, seed: [1]) } == .keyNotP256)
    #expect(try bent { $0.leafKey = PrivateKey(.rsa2048, seed: [1]) } == .keyNotP256)
  }

  @Test func signaturesAreChecked() throws {
    let stranger = PrivateKey(.p256, seed: [66])
    let leaf = good.leafBuilder.signed(publicKey: good.leafKey, issuer: good.intermediate, issuerKey: stranger)
    #expect(try failure([leaf.der, good.intermediate.der, good.root.der], good.anchors) == .signatureInvalid)
  }

  @Test func criticalExtensionsMustBeUnderstood() throws {
    #expect(try bent { $0.leafBuilder.criticalMarkers = ["1.2.3.4"] } == .unhandledCriticalExtension)
    #expect(try bent { $0.intermediateBuilder.criticalMarkers = ["1.2.3.4"] } == .unhandledCriticalExtension)
    #expect(try bent { $0.leafBuilder.markers.append("1.2.3.4") } == nil)
    #expect(
      try bent {
        $0.leafBuilder.markers = []
        $0.leafBuilder.criticalMarkers = [ChainPolicy.leafMarker]
      } == nil)
  }

  // MARK: C02

  @Test func validityIsJudgedAtTheGivenTime() throws {
    let anchors = try good.anchors
    #expect(failure(good.x5c, anchors, at: midnight(2025, 10, 1)) == nil)
    #expect(failure(good.x5c, anchors, at: midnight(2025, 12, 1)) == .expired)
    #expect(failure(good.x5c, anchors, at: 0) == .notYetValid)
    #expect(failure(good.x5c, anchors, at: ChainParts.start - 1) == .notYetValid)
    #expect(failure(good.x5c, anchors, at: ChainParts.start) == nil)
    #expect(failure(good.x5c, anchors, at: ChainParts.end + 999) == nil)
    #expect(failure(good.x5c, anchors, at: ChainParts.end + 1000) == .expired)
    #expect(failure(good.x5c, anchors, at: .min) == .notYetValid)
    #expect(failure(good.x5c, anchors, at: .max) == .expired)
  }

  @Test func allThreeMustBeValid() throws {
    var parts = ChainParts()
    parts.intermediateBuilder.notAfter = midnight(2024, 1, 1)
    #expect(failure(parts.x5c, try good.anchors) == .expired)
    parts = ChainParts()
    parts.rootBuilder.notAfter = midnight(2024, 1, 1)
    #expect(failure(parts.x5c, try parts.anchors) == .expired)
    parts.rootBuilder.notAfter = midnight(2040, 1, 1)
    parts.rootBuilder.notBefore = midnight(2025, 11, 1)
    #expect(failure(parts.x5c, try parts.anchors) == .notYetValid)
  }

  /// A root that was renewed under its old key: either form leads to either anchor, and the valid anchor decides.
  @Test func renewedRootBesideTheExpiredOne() throws {
    var old = ChainParts()
    old.rootBuilder.notAfter = midnight(2024, 1, 1)
    let both = try TrustAnchors([("old", old.root.der), ("new", good.root.der)])
    #expect(failure(old.x5c, both) == nil)
    #expect(failure(good.x5c, both) == nil)
    #expect(failure(good.x5c, try old.anchors) == .expired)
  }

  // MARK: Damage

  @Test func everyChangedByteOfLeafOrIntermediateIsRefused() throws {
    let anchors = try good.anchors
    let x5c = good.x5c
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for position in 0..<2 {
      for index in x5c[position].indices {
        var changed = x5c
        changed[position][index] ^= UInt8.random(in: 1...255, using: &source)
        #expect(failure(changed, anchors) != nil, "certificate \(position), byte \(index), seed \(seed)")
      }
      for length in stride(from: 0, to: x5c[position].count, by: 7) {
        var changed = x5c
        changed[position] = Array(x5c[position].prefix(length))
        #expect(failure(changed, anchors) == .certificateMalformed)
      }
    }
    // The root shown is no source of trust: changed, it either stops matching or changes nothing.
    for index in x5c[2].indices {
      var changed = x5c
      changed[2][index] ^= UInt8.random(in: 1...255, using: &source)
      if case .success(let chain) = ChainPolicy.judge(x5c: changed, anchors: anchors, at: ChainParts.within) {
        #expect(chain.anchors == [good.root], "byte \(index), seed \(seed)")
      }
    }
  }

  // MARK: Xcode

  @Test func pinnedCertificatesMatchByteForByte() throws {
    let key = PrivateKey(.p256, seed: [5])
    let builder = CertificateBuilder(
      subject: [("CN", "StoreKit Testing in Xcode")], notBefore: ChainParts.start, notAfter: ChainParts.end, isCA: true)
    let certificate = builder.selfSigned(key: key)
    let pinned = try PinnedCertificates([("StoreKitTest.cer", certificate.der)])
    func failure(_ x5c: [[UInt8]], at time: Int64 = ChainParts.within) -> ChainFailure? {
      if case .failure(let failure) = ChainPolicy.judge(x5c: x5c, pinned: pinned, at: time) { return failure }
      return nil
    }
    #expect(failure([certificate.der]) == nil)
    #expect(failure([certificate.der], at: midnight(2026, 1, 1)) == .expired)
    #expect(failure([certificate.der, certificate.der]) == .wrongChainLength)
    #expect(failure([]) == .wrongChainLength)
    var other = builder
    other.serial = [9]
    #expect(failure([other.selfSigned(key: key).der]) == .notConfigured)
    // What a pinned certificate signed is not thereby trusted.
    #expect(
      failure([good.leafBuilder.signed(publicKey: good.leafKey, issuer: certificate, issuerKey: key).der])
        == .notConfigured)
    #expect(throws: TrustAnchorError.self) { try PinnedCertificates([]) }
  }

  @Test func codesAreUnique() {
    #expect(Set(ChainFailure.allCases.map(\.code)).count == ChainFailure.allCases.count)
    #expect(ChainFailure.untrustedRoot.code == "untrusted-root")
  }
}
