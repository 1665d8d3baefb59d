import Glibc

/// A JWS in compact form, taken apart but not judged: what the header says is for the verifier to read.
public struct CompactJWS: Sendable {
  /// Larger than any notification Apple sends, nested proofs included, and small against a Kafka record.
  public static let maximumByteCount = 512 * 1024
  /// Room for a chain of certificates of the greatest size read here, in base64 within base64.
  public static let maximumHeaderByteCount = 96 * 1024

  /// The header as it stands on the wire, base64url.
  public let headerSegment: ArraySlice<UInt8>
  public let payload: [UInt8]
  /// r and s, 64 bytes.
  public let signature: [UInt8]
  /// Header, dot and payload as they stand on the wire: what was signed.
  public let signingInput: ArraySlice<UInt8>
  /// The whole of it.
  private let bytes: [UInt8]

  /// The decoded header. Decoded when asked for, since a chain already known is found by ``headerSegment``.
  public var header: [UInt8] {
    get throws(JWSFailure) {
      guard let bytes = Base64URL.decode(headerSegment) else { throw .headerNotBase64URL }
      return bytes
    }
  }

  /// Splits at the dots and decodes payload and signature; strict in every respect that needs no JSON.
  public static func split(_ bytes: [UInt8]) throws(JWSFailure) -> CompactJWS { try CompactJWS(parsing: bytes) }

  public init(parsing text: String) throws(JWSFailure) { try self.init(parsing: Array(text.utf8)) }

  public init(parsing bytes: [UInt8]) throws(JWSFailure) {
    guard bytes.count <= Self.maximumByteCount else { throw .tooLarge }
    guard let first = Self.dot(in: bytes, from: 0), let last = Self.dot(in: bytes, from: first + 1),
      Self.dot(in: bytes, from: last + 1) == nil
    else { throw .wrongSegmentCount }
    guard first > 0, first <= Self.maximumHeaderByteCount else { throw first == 0 ? .emptySegment : .tooLarge }
    guard last > first + 1, last + 1 < bytes.count else { throw .emptySegment }
    guard let payload = Base64URL.decode(bytes[(first + 1)..<last]) else { throw .payloadNotBase64URL }
    guard let signature = Base64URL.decode(bytes[(last + 1)...]) else { throw .signatureNotBase64URL }
    guard signature.count == ECDSASignature.p256ByteCount else { throw .wrongSignatureLength }
    self.payload = payload
    self.signature = signature
    headerSegment = bytes[..<first]
    signingInput = bytes[..<last]
    self.bytes = bytes
  }

  private static func dot(in bytes: [UInt8], from start: Int) -> Int? {
    bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress, start < buffer.count,
        let found = memchr(base + start, Int32(UInt8(ascii: ".")), buffer.count - start)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  /// The hashes of what was signed and of the whole, given the header's: each byte of the rest is hashed once for both.
  public func digests(_ beginning: SHA256.Beginning) -> (signed: Hash256, whole: Hash256) {
    let (signed, whole) = beginning.digests(
      bytes[headerSegment.endIndex..<signingInput.endIndex], bytes[signingInput.endIndex...])
    return (signed, whole)
  }

  /// Whether the key made the signature over what has this hash.
  public func isSigned(by key: P256PublicKey?, digest: Hash256) -> Bool {
    key?.verify(signature: signature, digest: digest) ?? false
  }

  /// Whether the key made the signature; no key made none.
  public func isSigned(by key: P256PublicKey?) -> Bool {
    key?.verify(signature: signature, message: signingInput) ?? false
  }

  /// Makes a JWS, for whoever plays the App Store. The header must name ES256 and the key's chain.
  public static func sign(header: [UInt8], payload: [UInt8], key: P256PrivateKey) -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(payload)
    return input + "." + Base64URL.encode(key.sign(Array(input.utf8)))
  }
}

/// Why a JWS is refused before its payload is looked at. The raw values are stable codes: they stand in events.
/// The header's JSON is read in another room, which shares these codes.
public enum JWSFailure: String, Error, Sendable, Hashable, CaseIterable {
  case tooLarge = "jws-too-large"
  case wrongSegmentCount = "jws-wrong-segment-count"
  case emptySegment = "jws-empty-segment"
  case headerNotBase64URL = "jws-header-not-base64url"
  case payloadNotBase64URL = "jws-payload-not-base64url"
  case signatureNotBase64URL = "jws-signature-not-base64url"
  case wrongSignatureLength = "jws-wrong-signature-length"
  case headerNotJSON = "jws-header-not-json"
  case headerDuplicateMember = "jws-header-duplicate-member"
  case algorithmNotES256 = "jws-algorithm-not-es256"
  case criticalHeader = "jws-critical-header"
  case chainAbsent = "jws-x5c-absent"
  case chainEmpty = "jws-x5c-empty"
  case chainNotStrings = "jws-x5c-not-strings"
  case chainNotBase64 = "jws-x5c-not-base64"
  case signatureInvalid = "jws-signature-invalid"

  public var code: String { rawValue }
}
