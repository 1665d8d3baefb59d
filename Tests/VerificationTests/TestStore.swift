import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// Signs what the App Store would sign, under a root of its own, and builds every kind of wrong chain beside it.
struct TestStore {
  static let bundleID = "com.example.app"
  static let appAppleID: Int64 = 1_234_567_890
  /// 2023-09-01 to 2025-10-11, as in case C02.
  static let leafFrom = Instant.at("2023-09-01T00:00:00Z")
  static let leafThrough = Instant.at("2025-10-11T00:00:00Z")
  static let now = Instant.at("2025-10-02T00:00:00Z")
  static let signed = Instant.at("2025-10-01T00:00:00Z")

  static let shared = TestStore()

  let seed = Array("verification tests".utf8)
  let rootKey: PrivateKey
  let intermediateKey: PrivateKey
  let leafKey: P256PrivateKey
  let root: Certificate
  let intermediate: Certificate
  let leaf: Certificate

  init() {
    rootKey = PrivateKey(.p256, seed: seed, label: "root")
    intermediateKey = PrivateKey(.p256, seed: seed, label: "intermediate")
    leafKey = P256PrivateKey(seed: seed, label: "leaf")
    root = Self.rootBuilder().selfSigned(key: rootKey)
    intermediate = Self.intermediateBuilder().signed(publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
    leaf = Self.leafBuilder().signed(publicKey: leafKey.key, issuer: intermediate, issuerKey: intermediateKey)
  }

  static func rootBuilder() -> CertificateBuilder {
    CertificateBuilder(
      subject: [("CN", "Test Root")], notBefore: Instant.at("2014-01-01T00:00:00Z").milliseconds,
      notAfter: Instant.at("2039-01-01T00:00:00Z").milliseconds, isCA: true, keyUsage: [.certificateSign])
  }

  static func intermediateBuilder() -> CertificateBuilder {
    CertificateBuilder(
      subject: [("CN", "Test Intermediate")], serial: [2], notBefore: Instant.at("2020-01-01T00:00:00Z").milliseconds,
      notAfter: Instant.at("2036-01-01T00:00:00Z").milliseconds, isCA: true, keyUsage: [.certificateSign],
      markers: [ChainPolicy.intermediateMarker])
  }

  static func leafBuilder() -> CertificateBuilder {
    CertificateBuilder(
      subject: [("CN", "Test Leaf")], serial: [3], notBefore: leafFrom.milliseconds,
      notAfter: leafThrough.milliseconds, isCA: false, keyUsage: [.digitalSignature], markers: [ChainPolicy.leafMarker])
  }

  var x5c: [[UInt8]] { [leaf.der, intermediate.der, root.der] }
  var anchors: TrustAnchors {
    get throws { try TrustAnchors([("test root", root.der)]) }
  }

  func judge(
    environments: Set<Environment> = [.production, .sandbox], local: PinnedCertificates? = nil
  ) throws -> ProofJudge {
    ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: Self.bundleID, appAppleID: Self.appAppleID)], anchors: anchors,
        environments: environments, localCertificates: local))
  }

  func header(_ chain: [[UInt8]]? = nil) -> JSONObject {
    ["alg": .string("ES256"), "x5c": .array((chain ?? x5c).map { .string(Base64.encode($0)) })]
  }

  func sign(_ payload: JSONObject, chain: [[UInt8]]? = nil, key: P256PrivateKey? = nil) -> String {
    sign(raw: JSON.object(payload).bytes, header: header(chain), key: key)
  }

  func sign(raw payload: [UInt8], header: JSONObject? = nil, key: P256PrivateKey? = nil) -> String {
    CompactJWS.sign(header: JSON.object(header ?? self.header()).bytes, payload: payload, key: key ?? leafKey)
  }

  // MARK: Payloads

  static func transaction(_ changes: [String: JSON?] = [:]) -> JSONObject {
    var payload: JSONObject = [
      "transactionId": .string("2000000900000002"), "originalTransactionId": .string("2000000900000001"),
      "bundleId": .string(bundleID), "productId": .string("com.example.coins"), "type": .string("Consumable"),
      "purchaseDate": .integer(signed.milliseconds - 1000), "quantity": .integer(1),
      "signedDate": .integer(signed.milliseconds), "environment": .string("Production"),
    ]
    for (name, value) in changes { payload[name] = value }
    return payload
  }

  static func renewal(_ changes: [String: JSON?] = [:]) -> JSONObject {
    var payload: JSONObject = [
      "originalTransactionId": .string("2000000900000001"), "autoRenewProductId": .string("com.example.pro"),
      "productId": .string("com.example.pro"), "autoRenewStatus": .integer(1),
      "signedDate": .integer(signed.milliseconds), "environment": .string("Production"),
    ]
    for (name, value) in changes { payload[name] = value }
    return payload
  }

  static func appTransaction(_ changes: [String: JSON?] = [:]) -> JSONObject {
    var payload: JSONObject = [
      "receiptType": .string("Production"), "bundleId": .string(bundleID), "appAppleId": .integer(appAppleID),
      "receiptCreationDate": .integer(signed.milliseconds), "applicationVersion": .string("1"),
    ]
    for (name, value) in changes { payload[name] = value }
    return payload
  }

  static func notification(_ data: [String: JSON?] = [:], _ changes: [String: JSON?] = [:]) -> JSONObject {
    var body: JSONObject = [
      "bundleId": .string(bundleID), "appAppleId": .integer(appAppleID), "environment": .string("Production"),
    ]
    for (name, value) in data { body[name] = value }
    var payload: JSONObject = [
      "notificationType": .string("DID_RENEW"), "notificationUUID": .string("002e14d5-51f5-4503-b5a8-c3a1af68eb20"),
      "version": .string("2.0"), "signedDate": .integer(signed.milliseconds), "data": .object(body),
    ]
    for (name, value) in changes { payload[name] = value }
    return payload
  }
}

extension Instant {
  static func at(_ text: String) -> Instant {
    guard let instant = Instant(rfc3339: text) else { preconditionFailure("not a time: \(text)") }
    return instant
  }
}

extension Verdict {
  var code: String {
    switch self {
    case .verified: "verified"
    case .rejected(let proof): proof.reason.code
    case .pending(let proof): "pending:" + proof.reason.rawValue
    }
  }

  var verified: VerifiedProof? { if case .verified(let proof) = self { proof } else { nil } }
  var rejected: RejectedProof? { if case .rejected(let proof) = self { proof } else { nil } }
  var pending: PendingProof? { if case .pending(let proof) = self { proof } else { nil } }
}

/// Files beside the tests' sources.
enum Fixture {
  static func bytes(_ path: String) throws -> [UInt8] {
    let folder = #filePath.split(separator: "/").dropLast().joined(separator: "/")
    let file = "/" + folder + "/Fixtures/" + path
    guard let handle = fopen(file, "rb") else { throw Missing(path: path) }
    defer { fclose(handle) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&buffer, 1, buffer.count, handle)
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
  }

  struct Missing: Error { let path: String }
}
