import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesVerification

/// Writes receipts attribute by attribute, and signs them under an RSA root of its own.
struct TestReceipt {
  static let signer = Signer()
  static let device = "6E1E6D7B-0000-4000-8000-0000000000AA"

  /// Encoded attributes in order.
  var attributes: [[UInt8]]
  var form = SignedData.Form()

  init(_ changes: [UInt64: [UInt8]?] = [:], purchases: [[UInt8]] = [purchase()]) {
    var values: [(UInt64, [UInt8])] = [
      (0, Self.text("Production")), (2, Self.text(TestStore.bundleID)), (3, Self.text("7")), (4, [1, 2, 3, 4]),
      (5, [UInt8](repeating: 0, count: 20)), (12, Self.date("2025-10-01T00:00:00Z")), (19, Self.text("1")),
    ]
    values.removeAll { changes.keys.contains($0.0) }
    for (type, value) in changes.sorted(by: { $0.key < $1.key }) { if let value { values.append((type, value)) } }
    attributes = values.map { Self.attribute($0.0, $0.1) } + purchases.map { Self.attribute(17, $0) }
  }

  var content: [UInt8] { BERValue.encode(BERValue.Tag.set, Array(attributes.joined())[...]) }
  var bytes: [UInt8] { Self.signer.sign(content, form) }
  var base64: String { Base64.encode(bytes) }

  func verdict(_ judge: ProofJudge, device: String? = nil, at: Instant = TestStore.now) -> Verdict {
    judge.judge(
      receipt: Array(base64.utf8), device: device.flatMap { DeviceIdentifier($0) }.map { .identifier($0) }, at: at)
  }

  static func judge(_ environments: Set<Environment> = [.production, .sandbox]) throws -> ProofJudge {
    ProofJudge(
      try VerificationSettings(
        apps: [.init(bundleID: TestStore.bundleID, appAppleID: TestStore.appAppleID)],
        receiptAnchors: signer.anchors, environments: environments))
  }

  // MARK: Encoding

  static func purchase(_ changes: [UInt64: [UInt8]?] = [:]) -> [UInt8] {
    var values: [(UInt64, [UInt8])] = [
      (1701, number(1)), (1702, text("com.example.coins")), (1703, text("1000")),
      (1704, date("2025-09-30T12:00:00Z")), (1705, text("1000")), (1706, date("2025-09-30T12:00:00Z")),
      (1707, number(1)), (1708, date("")), (1711, number(0)), (1712, date("")),
    ]
    values.removeAll { changes.keys.contains($0.0) }
    for (type, value) in changes.sorted(by: { $0.key < $1.key }) { if let value { values.append((type, value)) } }
    return BERValue.encode(BERValue.Tag.set, Array(values.map { attribute($0.0, $0.1) }.joined())[...])
  }

  /// A period of a subscription.
  static func period(
    _ transaction: String, of original: String, from: String, until: String, _ more: [UInt64: [UInt8]?] = [:]
  ) -> [UInt8] {
    var changes: [UInt64: [UInt8]?] = [
      1702: text("com.example.pro"), 1703: text(transaction), 1704: date(from), 1705: text(original), 1707: number(3),
      1708: date(until), 1711: number(UInt64(transaction) ?? 0),
    ]
    for (type, value) in more { changes[type] = value }
    return purchase(changes)
  }

  static func attribute(_ type: UInt64, _ value: [UInt8]) -> [UInt8] {
    attribute([number(type), number(1), BERValue.encode(BERValue.Tag.octetString, value[...])])
  }

  static func attribute(_ members: [[UInt8]]) -> [UInt8] {
    BERValue.encode(BERValue.Tag.sequence, Array(members.joined())[...])
  }

  static func text(_ text: String) -> [UInt8] { BERValue.encode(BERValue.Tag.utf8String, Array(text.utf8)[...]) }
  static func date(_ text: String) -> [UInt8] { BERValue.encode(BERValue.Tag.ia5String, Array(text.utf8)[...]) }

  static func number(_ number: UInt64) -> [UInt8] {
    let bytes = withUnsafeBytes(of: number.bigEndian) { Array($0) }.drop { $0 == 0 }
    return BERValue.encode(BERValue.Tag.integer, [0] + bytes)
  }

  struct Signer {
    let rootKey = PrivateKey(.rsa2048, seed: [9], label: "root")
    let intermediateKey = PrivateKey(.rsa2048, seed: [9], label: "intermediate")
    let leafKey = PrivateKey(.rsa2048, seed: [9], label: "leaf")
    let root: Certificate
    let intermediate: Certificate
    let leaf: Certificate

    init() {
      root = TestStore.rootBuilder().selfSigned(key: rootKey)
      intermediate = TestStore.intermediateBuilder().signed(
        publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
      leaf = TestStore.leafBuilder().signed(
        publicKey: leafKey, issuer: intermediate, issuerKey: intermediateKey)
    }

    var anchors: TrustAnchors {
      get throws { try TrustAnchors([("receipt root", root.der)]) }
    }

    func sign(_ content: [UInt8], _ form: SignedData.Form) -> [UInt8] {
      SignedData.sign(content, certificates: [leaf, intermediate, root], signer: leaf, key: leafKey, form: form)
    }
  }
}
