import PurchasesCryptography
import Testing

@Suite struct KeyTests {
  private let message = Array("a message".utf8)

  @Test func p256SignsRepeatablyAndVerifies() throws {
    let key = P256PrivateKey(seed: [1, 2, 3], label: "x")
    let signature = key.sign(message)
    #expect(signature.count == 64)
    #expect(key.sign(message) == signature)
    #expect(P256PrivateKey(seed: [1, 2, 3], label: "x").sign(message) == signature)
    #expect(P256PrivateKey(seed: [1, 2, 3], label: "y").publicKey != key.publicKey)
    let publicKey = try P256PublicKey(spki: key.publicKey.spki)
    #expect(publicKey.verify(signature: signature, message: message))
    #expect(publicKey.verify(signature: signature, message: ([0] + message).dropFirst()))
    #expect(!publicKey.verify(signature: signature, message: message + [0]))
    #expect(!P256PrivateKey(seed: [4]).publicKey.verify(signature: signature, message: message))
  }

  @Test func everyChangedBitOfASignatureIsRefused() {
    let key = P256PrivateKey(seed: [7])
    let signature = key.sign(message)
    for bit in 0..<(signature.count * 8) {
      var changed = signature
      changed[bit / 8] ^= 1 << (bit % 8)
      #expect(!key.publicKey.verify(signature: changed, message: message), "bit \(bit)")
    }
    for length in 0..<64 {
      #expect(!key.publicKey.verify(signature: Array(signature.prefix(length)), message: message))
    }
    #expect(!key.publicKey.verify(signature: signature + [0], message: message))
    #expect(!key.publicKey.verify(signature: [UInt8](repeating: 0, count: 64), message: message))
    #expect(!key.publicKey.verify(signature: [UInt8](repeating: 0xFF, count: 64), message: message))
    // Still usable after failures.
    #expect(key.publicKey.verify(signature: signature, message: message))
  }

  /// RFC 6979, A.2.5: the known key, message "sample", SHA-256.
  @Test func nonceIsTheOneOfRFC6979() throws {
    let scalar = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"
    // SEC 1 ECPrivateKey with the curve named and no public key.
    let der = try #require(Hex.decode("30310201010420" + scalar + "a00a06082a8648ce3d030107"))
    let key = try P256PrivateKey(der: der)
    #expect(
      Hex.encode(key.sign(Array("sample".utf8)))
        == "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
  }

  @Test func keysRoundTrip() throws {
    for kind in PrivateKey.Kind.allCases {
      let key = PrivateKey(kind, seed: Array("seed".utf8), label: "l")
      #expect(try PrivateKey(der: key.der).spki == key.spki)
      #expect(try PrivateKey(pem: key.pem).sign(message) == key.sign(message))
      #expect(PrivateKey(kind, seed: Array("seed".utf8), label: "l").der == key.der)
      #expect(throws: KeyError.self) { try PrivateKey(der: key.der + [0]) }
      #expect(throws: KeyError.self) { try PrivateKey(der: Array(key.der.dropLast())) }
    }
    #expect(PrivateKey(.rsa2048, seed: [1]).kind == .rsa(bits: 2048))
    #expect(PrivateKey(.p384, seed: [1]).kind == .p384)
    #expect(throws: KeyError.wrongKind(expected: "P-256")) { try P256PrivateKey(der: PrivateKey(.p384, seed: [1]).der) }
    #expect(throws: KeyError.wrongKind(expected: "P-256")) {
      try P256PublicKey(spki: PrivateKey(.p384, seed: [1]).spki)
    }
    #expect(throws: KeyError.malformed) { try P256PublicKey(spki: []) }
    #expect(throws: KeyError.malformed) { try P256PrivateKey(pem: "-----BEGIN PRIVATE KEY-----") }
  }

  /// The seed of a deployed root must never lead to another key: certificates on disk would cease to fit.
  @Test func derivedKeysStayTheSame() {
    #expect(
      SHA256.digest(PrivateKey(.p256, seed: [1], label: "root").spki).hex
        == "e6143022c302f8e1c6c994b64e5da427ca3164f587cad820be51bcc562180426")
    #expect(
      SHA256.digest(PrivateKey(.p384, seed: [1], label: "root").spki).hex
        == "b20363f586ebea3385cd81a434b5718338d276d8265e3f4085422655dc5ae1bb")
    #expect(
      SHA256.digest(PrivateKey(.rsa2048, seed: [1], label: "root").spki).hex
        == "d8921677f1c89229f5c37afa0fb13cde504ec362e2bdc7d2678da6ef1e847aba")
  }

  /// RFC 8032, 7.1, tests 1 and 2.
  @Test(arguments: [
    (
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    ),
    (
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    ),
  ])
  func ed25519Vectors(seed: String, publicKey: String, message: String, signature: String) throws {
    let seedBytes = try #require(Hex.decode(seed))
    let key = try #require(Ed25519PrivateKey(seed: seedBytes))
    let text = try #require(Hex.decode(message))
    #expect(Hex.encode(key.publicKey.bytes) == publicKey)
    #expect(Hex.encode(key.sign(text)) == signature)
    #expect(key.publicKey.verify(signature: key.sign(text), message: text))
    #expect(!key.publicKey.verify(signature: key.sign(text), message: text + [0]))
    var changed = key.sign(text)
    changed[63] ^= 1
    #expect(!key.publicKey.verify(signature: changed, message: text))
    #expect(!key.publicKey.verify(signature: [], message: text))
    #expect(Ed25519PrivateKey(seed: [1]) == nil)
    #expect(Ed25519PublicKey(bytes: [1]) == nil)
  }
}
