import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// Signs as the App Store does, under a root of its own: chains of three certificates with Apple's markers, and beside
/// them the chain of one that Xcode makes. The same seed gives the same keys, certificates and signatures.
public struct LocalAuthority: Sendable {
  /// Long enough for any scenario, and what a certificate's two-digit years can say.
  public static let validFrom = Instant(milliseconds: 1_388_534_400_000)
  public static let validThrough = Instant(milliseconds: 2_493_072_000_000)

  public let authority: SigningAuthority
  /// The certificate that signs for Xcode and local testing, as StoreKit testing keeps one.
  public let localCertificate: Certificate
  private let localKey: P256PrivateKey
  private let header: [UInt8]
  private let localHeader: [UInt8]
  private let lazyReceipts: Lazily<ReceiptAuthority>

  /// - Parameter responder: where the certificates say that one may ask whether they were revoked.
  public init(seed: [UInt8], responder: String? = nil) {
    authority = SigningAuthority(
      seed: seed, name: "Local App Store", notBefore: Self.validFrom.milliseconds,
      notAfter: Self.validThrough.milliseconds, responder: responder)
    localKey = P256PrivateKey(seed: seed, label: "local testing")
    localCertificate = CertificateBuilder(
      subject: [("CN", "StoreKit Testing in Xcode")], notBefore: Self.validFrom.milliseconds,
      notAfter: Self.validThrough.milliseconds, keyUsage: [.digitalSignature]
    ).selfSigned(key: localKey.key)
    header = Self.header(authority.x5c)
    localHeader = Self.header([localCertificate.der])
    lazyReceipts = Lazily { ReceiptAuthority(seed: seed) }
  }

  public init(seed: UInt64, responder: String? = nil) {
    self.init(seed: Array("local app store \(seed)".utf8), responder: responder)
  }

  public var root: Certificate { authority.root }

  /// What signs app receipts; made on first use.
  public var receipts: ReceiptAuthority { lazyReceipts.value }

  static func header(_ chain: [[UInt8]]) -> [UInt8] {
    JSON.object(["alg": .string("ES256"), "x5c": .array(chain.map { .string(Base64.encode($0)) })]).bytes
  }

  /// Signs the bytes as they are.
  public func sign(_ payload: [UInt8]) -> String {
    CompactJWS.sign(header: header, payload: payload, key: authority.leafKey)
  }

  /// Signs with the certificate for Xcode and local testing.
  public func signLocally(_ payload: [UInt8]) -> String {
    CompactJWS.sign(header: localHeader, payload: payload, key: localKey)
  }

  /// Signs what a person wrote. The payload is signed byte for byte, with two exceptions that make it one a store could
  /// sign: in a notification, `data.signedTransactionInfo`, `data.signedRenewalInfo` and
  /// `appData.signedAppTransactionInfo` may be given as objects and are then signed in their own right; and line breaks
  /// around the payload are left off. A payload whose environment is Xcode or LocalTesting is signed with the certificate
  /// for that, unless `asStore` says otherwise.
  public func sign(_ kind: ProofKind, payload: [UInt8], asStore: Bool = false) throws(SigningFailure) -> String {
    let document: JSONDocument
    do { document = try JSONDocument(parsing: payload) } catch { throw .notJSON(error.description) }
    guard document.root.kind == .object else { throw .notAnObject }
    let body = document.root["data"] ?? document.root["appData"] ?? document.root
    let environment = (body["environment"] ?? document.root["receiptType"])?.string.flatMap {
      Environment(rawValue: $0)
    }
    let isLocal = !asStore && environment?.isSignedLocally == true
    let bytes: [UInt8]
    if kind == .notification, Self.hasObjects(document.root) {
      bytes = JSON.object(signingInside(document.root.json.object ?? [:], isLocal: isLocal)).bytes
    } else {
      bytes = Self.trimmed(payload)
    }
    return isLocal ? signLocally(bytes) : sign(bytes)
  }

  private static let inside = [
    ("data", "signedTransactionInfo"), ("data", "signedRenewalInfo"), ("appData", "signedAppTransactionInfo"),
  ]

  private static func hasObjects(_ root: JSONView) -> Bool {
    inside.contains { root[$0.0]?[$0.1]?.kind == .object }
  }

  private func signingInside(_ root: JSONObject, isLocal: Bool) -> JSONObject {
    var root = root
    for (member, name) in Self.inside {
      guard var body = root[member]?.object, let payload = body[name], payload.object != nil else { continue }
      body[name] = .string(isLocal ? signLocally(payload.bytes) : sign(payload.bytes))
      root[member] = .object(body)
    }
    return root
  }

  private static func trimmed(_ payload: [UInt8]) -> [UInt8] {
    func isBreak(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }
    let start = payload.firstIndex { !isBreak($0) } ?? payload.endIndex
    let end = payload.lastIndex { !isBreak($0) }.map { $0 + 1 } ?? start
    return Array(payload[start..<end])
  }
}

/// Why a payload can't be signed.
public enum SigningFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case notJSON(String)
  case notAnObject

  public var description: String {
    switch self {
    case .notJSON(let reason): "the payload is \(reason)"
    case .notAnObject: "the payload is not a JSON object"
    }
  }
}
