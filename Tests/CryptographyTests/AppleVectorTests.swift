import PurchasesCryptography
import Testing

/// Chains and signatures that Apple publishes for tests, and its real certificates.
@Suite struct AppleVectorTests {
  private func failure(_ names: [String], root: String, at time: Int64) throws -> ChainFailure? {
    let anchors = try TrustAnchors([(root, Fixtures.certificate(root))])
    let x5c = try names.map { try Fixtures.certificate($0) }
    switch ChainPolicy.judge(x5c: x5c, anchors: anchors, at: time) {
    case .success: return nil
    case .failure(let failure): return failure
    }
  }

  @Test func mockChain() throws {
    let time = midnight(2024, 1, 1)
    #expect(try failure(["leaf-cert", "intermediate-ca", "root-ca"], root: "root-ca", at: time) == nil)
    #expect(
      try failure(["leaf-cert", "intermediate-ca", "root-ca"], root: "real-apple-root", at: time) == .untrustedRoot)
    #expect(
      try failure(["leaf-cert-invalid-oid", "intermediate-ca", "root-ca"], root: "root-ca", at: time)
        == .markerMissingLeaf)
    #expect(
      try failure(
        ["leaf-cert-for-intermediate-ca-invalid-oid", "intermediate-ca-invalid-oid", "root-ca"], root: "root-ca",
        at: time) == .markerMissingIntermediate)
    #expect(
      try failure(["leaf-cert", "intermediate-ca", "root-ca"], root: "root-ca", at: midnight(2034, 1, 1)) == .expired)
    #expect(
      try failure(["leaf-cert", "intermediate-ca", "root-ca"], root: "root-ca", at: midnight(2022, 1, 1))
        == .notYetValid)
  }

  @Test func realChain() throws {
    let names = ["real-apple-signing-certificate", "real-apple-intermediate", "real-apple-root"]
    #expect(try failure(names, root: "real-apple-root", at: midnight(2025, 11, 1)) == nil)
    #expect(try failure(names, root: "real-apple-root", at: midnight(2027, 10, 14)) == .expired)
    #expect(try failure(names, root: "real-apple-root", at: midnight(2025, 9, 1)) == .notYetValid)
    #expect(try failure(names, root: "real-apple-inc-root", at: midnight(2025, 11, 1)) == .untrustedRoot)
    #expect(
      try ChainPolicy.judge(
        x5c: names.map { try Fixtures.certificate($0) }, anchors: AppleRoots.storeKit, at: midnight(2025, 11, 1)
      ).get().leafKey?.spki.count == 91)
  }

  /// The roots in these files are an older form of mock-root with the same name and key.
  @Test(arguments: ["transactionInfo", "renewalInfo", "testNotification", "wrongBundleId"])
  func signedFilesVerifyUnderTheMockRoot(_ name: String) throws {
    let jws = try CompactJWS(parsing: Fixtures.jws(name))
    let x5c = try certificates(in: jws)
    let anchors = try TrustAnchors([("mock-root", Fixtures.certificate("mock-root"))])
    let chain = try ChainPolicy.judge(x5c: x5c, anchors: anchors, at: midnight(2023, 1, 6)).get()
    #expect(jws.isSigned(by: chain.leafKey))
    let cache = ChainCache(anchors: anchors)
    for _ in 0..<2 {
      let cached = try cache.judge(header: jws.headerSegment, at: midnight(2023, 1, 6)) { x5c }.get()
      #expect(jws.isSigned(by: cached.leafKey))
    }
    var damaged = try Fixtures.jws(name)
    let middle = damaged.count - 200
    damaged[middle] = damaged[middle] == 0x41 ? 0x42 : 0x41
    if let other = try? CompactJWS(parsing: damaged) { #expect(!other.isSigned(by: chain.leafKey)) }
  }

  @Test func headerWithoutChainStillSplits() throws {
    let jws = try CompactJWS(parsing: Fixtures.jws("missingX5CHeaderClaim"))
    #expect(try !String(decoding: jws.header, as: UTF8.self).contains("\"x5c\""))
  }

  /// The strings of the x5c array; this room reads no JSON, and these headers hold no escapes.
  private func certificates(in jws: CompactJWS) throws -> [[UInt8]] {
    let text = String(decoding: try jws.header, as: UTF8.self)
    let strings = text.split(separator: "\"").filter { $0.count > 100 }
    return try strings.map { try #require(Base64.decode(String($0))) }
  }
}
