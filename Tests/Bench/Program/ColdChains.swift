import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesVerification

/// Signed transactions that each come under a leaf and an intermediate of their own, below one root.
struct ColdChains {
  /// Of root and intermediate; the leaf is always on P-256.
  enum Curve: String, CaseIterable {
    /// As Apple's are.
    case p384
    /// As the local App Store's are: the same checks for a fifth of the time, so that all else weighs more.
    case p256
  }

  let proofs: [[UInt8]]
  let settings: VerificationSettings

  static let count = 400

  init(_ curve: Curve) throws {
    let kind: PrivateKey.Kind = curve == .p384 ? .p384 : .p256
    let seed = Array("cold chains".utf8)
    let rootKey = PrivateKey(kind, seed: seed, label: "root")
    let root = Self.builder("Root CA", 1, isCA: true, []).selfSigned(key: rootKey)
    let payload = try CompactJWS.split(Day(accounts: 100).transactions(1)[0]).payload
    proofs = (1...Self.count).map { number in
      let (key, leafKey) = (
        PrivateKey(kind, seed: seed, label: "\(number)"), P256PrivateKey(seed: seed, label: "\(number)")
      )
      let intermediate = Self.builder("Developer Relations", number, isCA: true, [ChainPolicy.intermediateMarker])
        .signed(publicKey: key, issuer: root, issuerKey: rootKey)
      let leaf = Self.leaf(number).signed(publicKey: leafKey.key, issuer: intermediate, issuerKey: key)
      return Self.proof([leaf, intermediate, root], payload, leafKey)
    }
    settings = try VerificationSettings(
      apps: [.init(bundleID: DemoCatalogue.bundleID, appAppleID: DemoCatalogue.appAppleID)],
      anchors: TrustAnchors([("cold chains", root.der)]))
  }

  static func leaf(_ number: Int) -> CertificateBuilder {
    builder("Store Signing", number, isCA: false, [ChainPolicy.leafMarker])
  }

  private static func builder(_ name: String, _ number: Int, isCA: Bool, _ markers: [String]) -> CertificateBuilder {
    let serial = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * (7 - $0))) }
    let year: Int64 = 365 * 86_400_000
    return CertificateBuilder(
      subject: [("CN", "Bench \(name)"), ("O", "Bench")], serial: serial,
      notBefore: Day.begin.milliseconds - year, notAfter: Day.begin.milliseconds + year, isCA: isCA,
      keyUsage: isCA ? [.certificateSign] : [.digitalSignature], markers: markers)
  }

  static func proof(_ chain: [Certificate], _ payload: [UInt8], _ key: P256PrivateKey) -> [UInt8] {
    let x5c = chain.map { JSON.string(Base64.encode($0.der)) }
    let header = JSON.object(["alg": .string("ES256"), "x5c": .array(x5c)]).bytes
    return Array(CompactJWS.sign(header: header, payload: payload, key: key).utf8)
  }

  /// Judges each proof by a judge that saw none before, again and again for so many seconds of processor time.
  func run(seconds: Double) throws -> Sample {
    try pass()
    return try Sample.while(seconds) { _ in try pass() }
  }

  @discardableResult private func pass() throws -> Int {
    let judge = ProofJudge(settings)
    for proof in proofs { try VerificationRun.verify(proof, judge) }
    return proofs.count
  }
}

/// Transactions under an endless row of leafs, each new, below one intermediate.
struct Strangers {
  let authority: SigningAuthority

  func proof(_ number: Int, payload: [UInt8]) -> [UInt8] {
    let leaf = ColdChains.leaf(number + 1).signed(
      publicKey: authority.leafKey.key, issuer: authority.intermediate, issuerKey: authority.intermediateKey)
    return ColdChains.proof([leaf, authority.intermediate, authority.root], payload, authority.leafKey)
  }
}
