import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// Where the targets stand: a store with keys and certificates of its own, always the same, and a deployment that trusts it.
enum Place {
  static let signed = Instant(milliseconds: 1_764_460_800_000)
  static let now = Instant(milliseconds: 1_764_547_200_000)
  static let authority = SigningAuthority(
    seed: Array("fuzz".utf8), name: "Fuzz", notBefore: 1_704_067_200_000, notAfter: 2_366_841_600_000)
  static let header = JSON.object([
    "alg": .string("ES256"), "x5c": .array(authority.x5c.map { .string(Base64.encode($0)) }),
  ]).bytes

  static let judge: ProofJudge = {
    do {
      return ProofJudge(
        try VerificationSettings(
          apps: [.init(bundleID: "com.example.app", appAppleID: 1_234_567_890)], anchors: authority.anchors))
    } catch { fault("\(error)") }
  }()

  /// Receipts have a root of their own, and their signer right under it.
  static let receiptKey = PrivateKey(.rsa2048, seed: Array("fuzz".utf8), label: "receipts")
  static let receiptRoot = CertificateBuilder(
    subject: [("CN", "Fuzz Receipts")], notBefore: 1_704_067_200_000, notAfter: 2_366_841_600_000, isCA: true
  ).selfSigned(key: receiptKey)

  static let receiptJudge: ProofJudge = {
    do {
      return ProofJudge(
        try VerificationSettings(
          apps: [.init(bundleID: "com.example.app", appAppleID: 1_234_567_890)], anchors: authority.anchors,
          receiptAnchors: TrustAnchors([("receipts", receiptRoot.der)])))
    } catch { fault("\(error)") }
  }()

  static func sign(_ payload: [UInt8]) -> String {
    CompactJWS.sign(header: header, payload: payload, key: authority.leafKey)
  }

  /// The input, copied: libFuzzer's own memory ends with the call.
  static func bytes(_ start: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
    Array(UnsafeBufferPointer(start: start, count: count))
  }
}

/// A fault that the sanitizers don't see: what was found doesn't hold.
func hold(_ condition: Bool, _ what: StaticString) { if !condition { fault("\(what)") } }

/// Tells it and ends the run; libFuzzer keeps the input.
func fault(_ what: String) -> Never {
  let line = Array("fault: \(what)\n".utf8)
  _ = write(STDERR_FILENO, line, line.count)
  abort()
}
