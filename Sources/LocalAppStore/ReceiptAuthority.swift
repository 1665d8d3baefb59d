import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import Synchronization

/// Signs app receipts under an RSA root of its own, as the App Store does under Apple Root CA; beside it the certificate
/// that signs for Xcode alone. The same seed gives the same keys, certificates and receipts.
public struct ReceiptAuthority: Sendable {
  public let root: Certificate
  public let intermediate: Certificate
  public let leaf: Certificate
  /// What signs for Xcode and local testing.
  public let localCertificate: Certificate
  let leafKey: PrivateKey
  private let localKey: PrivateKey

  public init(seed: [UInt8]) {
    let from = LocalAuthority.validFrom.milliseconds
    let through = LocalAuthority.validThrough.milliseconds
    let name = "Local App Store Receipts"
    func key(_ label: String) -> PrivateKey { PrivateKey(.rsa2048, seed: seed, label: "receipts \(label)") }
    let (rootKey, intermediateKey) = (key("root"), key("intermediate"))
    leafKey = key("leaf")
    localKey = key("local testing")
    root = CertificateBuilder(
      subject: [("CN", name + " Root CA"), ("O", name)], serial: [1], notBefore: from, notAfter: through, isCA: true,
      keyUsage: [.certificateSign]
    ).selfSigned(key: rootKey)
    intermediate = CertificateBuilder(
      subject: [("CN", name + " Developer Relations"), ("O", name)], serial: [2], notBefore: from, notAfter: through,
      isCA: true, keyUsage: [.certificateSign], markers: [ChainPolicy.intermediateMarker]
    ).signed(publicKey: intermediateKey, issuer: root, issuerKey: rootKey)
    leaf = CertificateBuilder(
      subject: [("CN", name + " Signing"), ("O", name)], serial: [3], notBefore: from, notAfter: through, isCA: false,
      keyUsage: [.digitalSignature], markers: [ChainPolicy.leafMarker]
    ).signed(publicKey: leafKey, issuer: intermediate, issuerKey: intermediateKey)
    localCertificate = CertificateBuilder(
      subject: [("CN", "StoreKit"), ("O", "StoreKit")], notBefore: from, notAfter: through,
      keyUsage: [.digitalSignature]
    ).selfSigned(key: localKey)
  }

  /// A receipt as a client sends it: base64 of signed data. One whose environment is Xcode's or local testing's is signed
  /// with the certificate for that.
  public func sign(_ receipt: AppReceipt, form: SignedData.Form = .init(), fault: ReceiptFault? = nil) -> String {
    let isLocal = receipt.environment?.isSignedLocally == true
    return Base64.encode(sign(receipt.encoded, form: form, isLocal: isLocal, fault: fault))
  }

  func sign(_ content: [UInt8], form: SignedData.Form, isLocal: Bool, fault: ReceiptFault?) -> [UInt8] {
    guard let fault else { return sign(content, form, isLocal) }
    var form = form
    switch fault {
    case .bareContent: return content
    case .foreignRoot: return Self.foreign.sign(content, form, isLocal)
    case .noSigner: form.signerCount = 0
    case .twoSigners: form.signerCount = 2
    default: break
    }
    var bytes = sign(content, form, isLocal)
    switch fault {
    case .brokenSignature:
      // The signature stands last, before the ends of contents of the three values around it.
      bytes[bytes.count - 1 - (form.isIndefinite ? 6 : 0)] ^= 1
    case .changedContent:
      // A byte of the first text attribute; the header and the first attributes' heads lie before.
      let word = content.prefix(64).suffix(24)
      if let place = Self.place(of: word, in: bytes) { bytes[place + word.count - 1] ^= 1 }
    case .enveloped:
      // The last byte of the content type's identifier: signed data to enveloped data.
      if let place = Self.place(of: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02], in: bytes) {
        bytes[place + 8] = 3
      }
    case .cut: bytes.removeLast(min(40, bytes.count))
    case .trailing: bytes += [0x05, 0x00]
    case .bareContent, .foreignRoot, .noSigner, .twoSigners: break
    }
    return bytes
  }

  private func sign(_ content: [UInt8], _ form: SignedData.Form, _ isLocal: Bool) -> [UInt8] {
    isLocal
      ? SignedData.sign(
        content, certificates: [localCertificate], signer: localCertificate, key: localKey, form: form)
      : SignedData.sign(
        content, certificates: [leaf, intermediate, root], signer: leaf, key: leafKey, form: form)
  }

  private static let foreign = ReceiptAuthority(seed: Array("not the local app store".utf8))

  private static func place(of word: ArraySlice<UInt8>, in bytes: [UInt8]) -> Int? {
    guard !word.isEmpty, bytes.count >= word.count else { return nil }
    return (0...(bytes.count - word.count)).first { bytes[$0..<$0 + word.count].elementsEqual(word) }
  }
}

/// What can be wrong with a receipt on purpose.
public enum ReceiptFault: String, Sendable, Hashable, CaseIterable {
  case brokenSignature = "broken-signature"
  case changedContent = "changed-content"
  case noSigner = "no-signer"
  case twoSigners = "two-signers"
  /// Signed under a root that looks like ours.
  case foreignRoot = "foreign-root"
  /// The attributes alone, signed by nobody.
  case bareContent = "bare-content"
  /// Another content type of PKCS#7.
  case enveloped
  case cut
  case trailing
}

/// Makes a value when it is first asked for: RSA keys take a while, and most who hold an authority sign no receipt.
final class Lazily<Value: Sendable>: Sendable {
  private let made = Mutex<Value?>(nil)
  private let make: @Sendable () -> Value

  init(_ make: @escaping @Sendable () -> Value) { self.make = make }

  var value: Value {
    made.withLock { made in
      if let made { return made }
      let value = make()
      made = value
      return value
    }
  }
}
