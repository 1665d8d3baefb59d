import Foundation
import Testing

@testable import PurchasesCryptography

/// Answers of a responder, made with real keys, and what must never pass for one.
struct RevocationTests {
  static let from: Int64 = 1_700_000_000_000
  static let day: Int64 = 86_400_000
  static let authority = SigningAuthority(
    seed: Array("revocation".utf8), name: "Revocation Test", notBefore: from - 100 * day, notAfter: from + 100 * day)

  private var leaf: Certificate { Self.authority.leaf }
  private var issuer: Certificate { Self.authority.intermediate }
  private var responder: OCSPResponder {
    OCSPResponder(issuer: Self.authority.intermediate, key: Self.authority.intermediateKey)
  }

  private func read(
    _ answer: [UInt8], about certificate: Certificate? = nil, at: Int64 = Self.from + 1
  ) throws(RevocationFailure) -> RevocationAnswer {
    try RevocationAnswer(reading: answer, about: certificate ?? leaf, issuer: issuer, at: at)
  }

  private func answer(_ status: RevocationAnswer.Status, of certificate: Certificate? = nil) -> [UInt8] {
    responder.answer(
      about: certificate ?? leaf, status, thisUpdate: Self.from, nextUpdate: Self.from + 2 * Self.day)
  }

  @Test(arguments: [RevocationAnswer.Status.good, .unknown, .revoked(since: from - day)])
  func eachStatusIsReadAsItWasGiven(status: RevocationAnswer.Status) throws {
    let read = try read(answer(status))
    #expect(read.status == status)
    #expect(read.thisUpdate == Self.from)
    #expect(read.nextUpdate == Self.from + 2 * Self.day)
  }

  @Test func anAnswerHoldsWhileItIsInForce() throws {
    let good = answer(.good)
    #expect(try read(good, at: Self.from + 2 * Self.day).status == .good)
    #expect(throws: RevocationFailure.expired) { try read(good, at: Self.from + 2 * Self.day + 1) }
    #expect(try read(good, at: Self.from - 300_000).status == .good, "clocks differ")
    #expect(throws: RevocationFailure.notYetValid) { try read(good, at: Self.from - 300_001) }
  }

  @Test func whatIsNoAnswerAboutThisCertificateSaysNothing() throws {
    let sister = CertificateBuilder(
      subject: [("CN", "sister")], serial: [77], notBefore: Self.from, notAfter: Self.from + Self.day
    ).signed(publicKey: Self.authority.leafKey.key, issuer: issuer, issuerKey: Self.authority.intermediateKey)
    #expect(throws: RevocationFailure.otherCertificate) { try read(answer(.good, of: sister)) }
    #expect(throws: RevocationFailure.tryLater) { try read(OCSPResponder.tryLater) }
    #expect(throws: RevocationFailure.malformed) { try read(Array("<html>busy</html>".utf8)) }
    #expect(throws: RevocationFailure.malformed) { try read([]) }
    #expect(throws: RevocationFailure.tooLarge) {
      try read([UInt8](repeating: 0x30, count: OCSP.maximumAnswerBytes + 1))
    }
    // Signed by a stranger, and by the certificate that is asked about itself.
    let stranger = SigningAuthority(
      seed: [9], name: "Revocation Test", notBefore: Self.from - Self.day, notAfter: Self.from + Self.day)
    let forged = OCSPResponder(issuer: stranger.intermediate, key: stranger.intermediateKey)
      .answer(about: leaf, .good, thisUpdate: Self.from, nextUpdate: Self.from + Self.day)
    #expect(throws: RevocationFailure.signatureInvalid) { try read(forged) }
    let own = OCSPResponder(issuer: leaf, key: Self.authority.leafKey.key)
      .answer(about: leaf, .good, thisUpdate: Self.from, nextUpdate: Self.from + Self.day)
    #expect(throws: RevocationFailure.signatureInvalid) { try read(own) }
  }

  /// Whatever byte is changed, an answer never turns into another one; most are refused.
  @Test func noChangedByteMakesAnotherAnswer() throws {
    let revoked = answer(.revoked(since: Self.from - Self.day))
    for index in revoked.indices {
      for change: UInt8 in [0x01, 0x80, 0xFF] {
        var changed = revoked
        changed[index] ^= change
        guard let read = try? read(changed) else { continue }
        #expect(read.status == .revoked(since: Self.from - Self.day), "byte \(index), \(change)")
      }
    }
  }

  @Test func theQuestionNamesTheCertificateAndNothingElse() throws {
    let request = OCSP.request(about: leaf, issuer: issuer)
    #expect(OCSPResponder.serials(in: request) == [leaf.serialHex])
    #expect(request == OCSP.request(about: leaf, issuer: issuer))
    #expect(OCSPResponder.serials(in: Array("no request".utf8)) == nil)
  }

  @Test func aCertificateSaysWhereToAsk() throws {
    #expect(OCSP.responders(of: leaf) == [])
    let key = PrivateKey(.p256, seed: [1], label: "leaf")
    var builder = CertificateBuilder(subject: [("CN", "leaf")], notBefore: Self.from, notAfter: Self.from + Self.day)
    builder.responder = "http://ocsp.example/one"
    let named = builder.signed(publicKey: key, issuer: issuer, issuerKey: Self.authority.intermediateKey)
    #expect(OCSP.responders(of: named) == ["http://ocsp.example/one"])
    builder.responder = "ldap://ocsp.example/one"
    let other = builder.signed(publicKey: key, issuer: issuer, issuerKey: Self.authority.intermediateKey)
    #expect(OCSP.responders(of: other) == [], "only HTTP is spoken")
  }

  /// OpenSSL's own command reads the request and judges the answer.
  @Test func opensslUnderstandsBoth() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ocsp-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
      let url = folder.appendingPathComponent(name)
      try Data(bytes).write(to: url)
      return url.path
    }
    func pem(_ certificate: Certificate) -> [UInt8] {
      Array(PEM.encode(certificate.der, label: "CERTIFICATE").utf8)
    }
    // Its command judges by today's clock.
    let now = Int64(Date().timeIntervalSince1970) * 1000
    let authority = SigningAuthority(
      seed: Array("today".utf8), name: "Today", notBefore: now - Self.day, notAfter: now + Self.day)
    let answer = OCSPResponder(issuer: authority.intermediate, key: authority.intermediateKey)
      .answer(
        about: authority.leaf, .revoked(since: now - 3_600_000), thisUpdate: now - 60_000, nextUpdate: now + 60_000)
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "openssl", "ocsp", "-issuer", try file("issuer.pem", pem(authority.intermediate)), "-cert",
      try file("leaf.pem", pem(authority.leaf)), "-respin", try file("answer.der", answer), "-CAfile",
      try file("issuer.pem", pem(authority.intermediate)), "-partial_chain", "-no_nonce",
    ]
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(said.contains("Response verify OK"), Comment(rawValue: said))
    #expect(said.contains("leaf.pem: revoked"), Comment(rawValue: said))
  }
}
