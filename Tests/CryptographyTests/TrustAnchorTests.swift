import PurchasesCryptography
import Testing

/// C08: anchors that can't be used stop start-up with the file's name; nothing ever means "trust all".
@Suite struct TrustAnchorTests {
  private let key = PrivateKey(.p256, seed: [1])

  private func root(from notBefore: Int64, through notAfter: Int64) -> Certificate {
    CertificateBuilder(
      subject: [("CN", "Root")], notBefore: notBefore, notAfter: notAfter, isCA: true, keyUsage: [.certificateSign]
    ).selfSigned(key: key)
  }

  private func failure(_ sources: [(label: String, der: [UInt8])]) -> TrustAnchorError? {
    do {
      _ = try TrustAnchors(sources)
      return nil
    } catch {
      return error
    }
  }

  @Test func expiredRootBesideAGoodOneIsAllowed() throws {
    let good = root(from: 0, through: midnight(2040, 1, 1))
    let expired = root(from: 0, through: 1000)
    let anchors = try TrustAnchors([("good.der", good.der), ("old.der", expired.der), ("again.der", good.der)])
    #expect(anchors.certificates == [good, expired])
    #expect(try anchors == TrustAnchors([("b", expired.der), ("a", good.der)]))
    #expect(try anchors != TrustAnchors([("a", good.der)]))
  }

  @Test func unusableFilesAreNamedWithTheirFault() throws {
    let der = root(from: 0, through: 1000).der
    let pem = Array(PEM.encode(der, label: "CERTIFICATE").utf8)
    let html = Array("<!DOCTYPE html><html><body>404 Not Found</body></html>".utf8)
    let cases: [([UInt8], TrustAnchorError.Reason)] = [
      (pem, .pem), ([0x0A] + pem, .pem), (html, .text), (Array("\n0 nothing here at all".utf8), .text),
      (Array(der.dropLast()), .truncated), (Array(der.prefix(3)), .malformed), (Array(der.prefix(40)), .truncated),
      (der + der, .trailing), (der + [0x0A], .trailing), ([], .empty), ([0x0A], .empty), ([0x00, 0x01], .malformed),
      ([0x30, 0x02, 0x05, 0x00], .malformed),
    ]
    for (bytes, reason) in cases {
      let error = failure([("good.der", der), ("anchors/bad.cer", bytes)])
      #expect(error == TrustAnchorError(label: "anchors/bad.cer", reason: reason), "\(reason)")
      #expect(error?.description.contains("anchors/bad.cer") == true)
    }
    #expect(failure([])?.reason == .emptySet)
  }

  @Test func onlyRootsAreAnchors() throws {
    #expect(try failure([("leaf", Fixtures.certificate("leaf-cert"))])?.reason == .notARoot)
    #expect(try failure([("ca", Fixtures.certificate("intermediate-ca"))])?.reason == .notARoot)
    var damaged = root(from: 0, through: 1000).der
    damaged[damaged.count - 1] ^= 1
    #expect(failure([("bits", damaged)])?.reason == .notARoot)
    #expect(try failure([("mock", Fixtures.certificate("mock-root"))]) == nil)
    #expect(failure([("g3", AppleRoots.g3.der), ("inc", AppleRoots.inc.der)]) == nil)
  }
}
