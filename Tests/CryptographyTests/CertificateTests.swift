import PurchasesCryptography
import PurchasesTestKit
import Testing

@Suite struct CertificateTests {
  @Test func readsApplesReceiptSigner() throws {
    let certificate = try Certificate(der: Fixtures.certificate("real-apple-signing-certificate"))
    #expect(certificate.serialHex == "47c287cdd9f9e7867f528ada74dc7db7")
    #expect(certificate.subject.contains("CN=Prod ECC Mac App Store and iTunes Store Receipt Signing"))
    #expect(certificate.issuer.contains("OU=G6"))
    #expect(certificate.notBefore == midnight(2025, 9, 19) + 19 * hour + 44 * 60_000 + 51_000)
    #expect(certificate.notAfter == midnight(2027, 10, 13) + 17 * hour + 47 * 60_000 + 23_000)
    #expect(certificate.keyKind == .p256)
    #expect(!certificate.isCA)
    #expect(certificate.keyUsage == .digitalSignature)
    #expect(certificate.hasExtension(ChainPolicy.leafMarker))
    #expect(!certificate.hasExtension(ChainPolicy.intermediateMarker))
    #expect(certificate.signatureDigest == "SHA384")
    #expect(certificate.extensions.filter(\.isCritical).map(\.oid) == ["2.5.29.19", "2.5.29.15"])
    #expect(certificate.extensions.first { $0.oid == ChainPolicy.leafMarker }?.value == [0x05, 0x00])
    let issuer = try Certificate(der: Fixtures.certificate("real-apple-intermediate"))
    #expect(issuer.keyKind == .p384)
    #expect(issuer.isCA)
    #expect(certificate.isSigned(by: issuer))
    #expect(certificate.isIssued(byNameOf: issuer))
    #expect(issuer.isSigned(by: AppleRoots.g3))
    #expect(!certificate.isSigned(by: AppleRoots.g3))
  }

  @Test func embeddedRootsAreApples() throws {
    #expect(try AppleRoots.g3.der == Fixtures.certificate("real-apple-root"))
    #expect(AppleRoots.g3.fingerprint.hex == "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
    #expect(AppleRoots.g3.keyKind == .p384)
    #expect(try AppleRoots.inc.der == Fixtures.certificate("real-apple-inc-root"))
    #expect(AppleRoots.inc.fingerprint.hex == "b0b1730ecbc7ff4505142c49f1295e6eda6bcaed7e2c68c5be91b5a11001f024")
    #expect(AppleRoots.inc.keyKind == .rsa(bits: 2048))
    #expect(AppleRoots.storeKit.certificates == [AppleRoots.g3])
    #expect(AppleRoots.receipts.certificates == [AppleRoots.inc])
    for name in ["real-apple-wwdr-2013", "real-apple-wwdr-g5"] {
      let intermediate = try Certificate(der: Fixtures.certificate(name))
      #expect(intermediate.isSigned(by: AppleRoots.inc) && intermediate.isIssued(byNameOf: AppleRoots.inc))
      #expect(intermediate.signatureDigest == (name.hasSuffix("2013") ? "SHA1" : "SHA256"))
    }
  }

  @Test func serialsAndOldVersions() throws {
    let root = try Certificate(der: Fixtures.certificate("mock-root"))
    #expect(root.serialHex == "b51ce402e21f9a5b")
    #expect(root.keyUsage == [.certificateSign, Certificate.KeyUsage(rawValue: 2)])
    let builder = CertificateBuilder(subject: [("CN", "x")], serial: [0x00, 0x0A, 0xBC], notBefore: 0, notAfter: 1000)
    #expect(builder.selfSigned(key: PrivateKey(.p256, seed: [1])).serialHex == "abc")
  }

  @Test func builtCertificatesAreRepeatableAndSayWhatWasAsked() throws {
    let key = PrivateKey(.p256, seed: [1])
    let builder = CertificateBuilder(
      subject: [("CN", "Größe"), ("O", "Test"), ("C", "DE")], serial: [0x80, 1], notBefore: midnight(1950, 1, 1),
      notAfter: midnight(2100, 1, 1), isCA: true, keyUsage: [.certificateSign, .digitalSignature],
      markers: ["1.2.3.4"])
    let certificate = builder.selfSigned(key: key)
    #expect(certificate.der == builder.selfSigned(key: PrivateKey(.p256, seed: [1])).der)
    #expect(certificate.subject == "C=DE,O=Test,CN=Größe")
    #expect(certificate.serialHex == "8001")
    #expect(certificate.notBefore == midnight(1950, 1, 1))
    #expect(certificate.notAfter == midnight(2100, 1, 1))
    #expect(certificate.isCA)
    #expect(certificate.keyUsage == [.certificateSign, .digitalSignature])
    #expect(certificate.hasExtension("1.2.3.4"))
    #expect(certificate.isSigned(by: certificate))
    #expect(certificate.hasExtension("2.5.29.14") && certificate.hasExtension("2.5.29.35"))
    var bare = builder
    bare.hasKeyIdentifiers = false
    #expect(bare.selfSigned(key: key).extensions.map(\.oid) == ["2.5.29.19", "2.5.29.15", "1.2.3.4"])
    for kind in PrivateKey.Kind.allCases {
      let child = PrivateKey(kind, seed: [2])
      let built = CertificateBuilder(subject: [("CN", "child")], notBefore: 0, notAfter: 1000)
        .signed(publicKey: child, issuer: certificate, issuerKey: key)
      #expect(built.spki == child.spki)
      #expect(built.isSigned(by: certificate))
      #expect(!built.isCA)
      #expect(built.keyUsage == nil)
      let byChild = CertificateBuilder(subject: [("CN", "self")], notBefore: 0, notAfter: 1000).selfSigned(key: child)
      #expect(byChild.isSigned(by: byChild))
      #expect(
        byChild.der
          == CertificateBuilder(subject: [("CN", "self")], notBefore: 0, notAfter: 1000).selfSigned(key: child).der)
    }
  }

  @Test func validityIncludesBothEnds() {
    let certificate = CertificateBuilder(subject: [("CN", "x")], notBefore: 10_000, notAfter: 20_000)
      .selfSigned(key: PrivateKey(.p256, seed: [1]))
    #expect(!certificate.isValid(at: 9_999))
    #expect(certificate.isValid(at: 10_000))
    #expect(certificate.isValid(at: 20_999))
    #expect(!certificate.isValid(at: 21_000))
  }

  @Test func refusesEveryPrefixAndAnyTrailingByte() throws {
    let der = try Fixtures.certificate("leaf-cert")
    _ = try Certificate(der: der)
    for length in 0..<der.count {
      #expect(throws: CertificateError.self) { try Certificate(der: Array(der.prefix(length))) }
    }
    #expect(throws: CertificateError.notDER) { try Certificate(der: der + [0]) }
    #expect(throws: CertificateError.notDER) { try Certificate(der: der + der) }
    #expect(throws: CertificateError.tooLarge) { try Certificate(der: [UInt8](repeating: 0x30, count: 20_000)) }
  }

  /// The outer length in four bytes instead of two is BER: the same certificate in another spelling, with another digest.
  @Test func refusesAnotherSpelling() throws {
    let der = try Fixtures.certificate("leaf-cert")
    #expect(der[1] == 0x82)
    #expect(throws: CertificateError.notDER) { try Certificate(der: [0x30, 0x83, 0x00] + der[2...]) }
  }

  /// No changed byte may crash the reader or leave a certificate that passes for the issuer's.
  @Test func everyChangedByteBreaksTheSignatureOrTheReading() throws {
    let der = try Fixtures.certificate("leaf-cert")
    let issuer = try Certificate(der: Fixtures.certificate("intermediate-ca"))
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    #expect(try Certificate(der: der).isSigned(by: issuer))
    for index in der.indices {
      for change in [UInt8(1), 0x80, UInt8.random(in: 1...255, using: &source)] {
        var changed = der
        changed[index] ^= change
        guard let certificate = try? Certificate(der: changed) else { continue }
        #expect(!certificate.isSigned(by: issuer), "byte \(index), seed \(seed)")
      }
    }
  }

  @Test func randomBytesNeverCrash() {
    let seed = UInt64.random(in: .min ... .max)
    var source = SeededRandom(seed: seed)
    for _ in 0..<2_000 {
      let bytes = [0x30, 0x82] + source.bytes(Int.random(in: 0..<400, using: &source))
      #expect(throws: CertificateError.self, "seed \(seed)") { try Certificate(der: bytes) }
    }
  }

  /// Extensions came with version 3.
  @Test(arguments: [1, 6] as [UInt8]) func extensionsInAnotherVersion(_ version: UInt8) throws {
    let authority = SigningAuthority(seed: [1], name: "Versions", notBefore: 0, notAfter: 2_000_000_000_000)
    let stated: [UInt8] = [0xa0, 0x03, 0x02, 0x01, 0x02]
    var der = authority.leaf.der
    let place = try #require(der.indices.first { der[$0...].starts(with: stated) })
    #expect(try Certificate(der: der) == authority.leaf)
    der[place + 4] = version
    #expect(throws: CertificateError.malformedExtension) { try Certificate(der: der) }
  }
}
