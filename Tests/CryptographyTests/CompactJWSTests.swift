import PurchasesCryptography
import Testing

@Suite struct CompactJWSTests {
  private let key = P256PrivateKey(seed: [1])
  private var signed: String {
    CompactJWS.sign(header: Array(#"{"alg":"ES256"}"#.utf8), payload: Array(#"{"a":1}"#.utf8), key: key)
  }

  private func failure(_ text: String) -> JWSFailure? {
    do {
      let jws = try CompactJWS(parsing: text)
      _ = try jws.header
      return nil
    } catch {
      return error
    }
  }

  @Test func splitsWhatItSigns() throws {
    let jws = try CompactJWS.split(Array(signed.utf8))
    #expect(try jws.header == Array(#"{"alg":"ES256"}"#.utf8))
    #expect(jws.payload == Array(#"{"a":1}"#.utf8))
    #expect(jws.signature.count == 64)
    #expect(jws.isSigned(by: key.publicKey))
    #expect(!jws.isSigned(by: P256PrivateKey(seed: [2]).publicKey))
    #expect(String(decoding: jws.signingInput, as: UTF8.self) + "." + Base64URL.encode(jws.signature) == signed)
  }

  @Test func refusesOtherForms() {
    let parts = signed.split(separator: ".").map { String($0) }
    let (header, payload, signature) = (parts[0], parts[1], parts[2])
    #expect(failure("") == .wrongSegmentCount)
    #expect(failure("abc") == .wrongSegmentCount)
    #expect(failure("\(header).\(payload)") == .wrongSegmentCount)
    #expect(failure("\(header).\(payload).\(signature).\(signature)") == .wrongSegmentCount)
    #expect(failure("..") == .emptySegment)
    #expect(failure(".\(payload).\(signature)") == .emptySegment)
    #expect(failure("\(header)..\(signature)") == .emptySegment)
    #expect(failure("\(header).\(payload).") == .emptySegment)
    #expect(failure("\(header)=.\(payload).\(signature)") == .headerNotBase64URL)
    #expect(failure("\(header).\(payload)!.\(signature)") == .payloadNotBase64URL)
    #expect(failure("\(header).\(payload).\(signature)==") == .signatureNotBase64URL)
    #expect(failure("\(header).\(payload).\(signature)\n") == .signatureNotBase64URL)
    #expect(failure(" \(signed)") == .headerNotBase64URL)
    #expect(failure("\(header).\(payload).AAAA") == .wrongSignatureLength)
    #expect(failure(String(repeating: "A", count: CompactJWS.maximumByteCount + 1)) == .tooLarge)
    #expect(
      failure(String(repeating: "A", count: CompactJWS.maximumHeaderByteCount + 4) + ".\(payload).\(signature)")
        == .tooLarge)
    // The last character of the signature has two bits to spare; another spelling of the same bytes is refused.
    let last = signature.last.map { String($0) } ?? ""
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    let accepted = alphabet.filter { failure("\(header).\(payload).\(signature.dropLast())\($0)") == nil }
    #expect(accepted.count == 4 && accepted.contains(last))
  }

  /// Every change of one character is refused or breaks the signature.
  @Test func everyChangedCharacterIsNoticed() throws {
    let bytes = Array(signed.utf8)
    for index in bytes.indices {
      for character in [UInt8(ascii: "A"), UInt8(ascii: "."), UInt8(ascii: "_"), 0, 0xFF]
      where character != bytes[index] {
        var changed = bytes
        changed[index] = character
        guard let jws = try? CompactJWS(parsing: changed) else { continue }
        #expect(!jws.isSigned(by: key.publicKey), "character \(index)")
      }
    }
    for length in bytes.indices {
      guard let jws = try? CompactJWS(parsing: Array(bytes.prefix(length))) else { continue }
      #expect(!jws.isSigned(by: key.publicKey))
    }
  }
}
