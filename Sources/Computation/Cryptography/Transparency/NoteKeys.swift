/// The public key of a signed note (C2SP `signed-note`, Ed25519), with the name it signs under.
public struct NoteVerifier: Sendable, Hashable {
  /// Assigned by the specification to Ed25519.
  static let algorithm: UInt8 = 0x01

  public let name: String
  /// The first four bytes of a digest of name, algorithm and key: tells keys apart, proves nothing.
  public let keyID: UInt32
  public let publicKey: Ed25519PublicKey

  public init(name: String, publicKey: Ed25519PublicKey) throws(NoteError) {
    guard Self.isValid(name: name) else { throw .badKeyName }
    self.name = name
    self.publicKey = publicKey
    let hasher = SHA256.Hasher()
    hasher.update(name)
    hasher.update([0x0A, Self.algorithm])
    hasher.update(publicKey.bytes)
    keyID = hasher.finish().bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// Reads `name+keyid+base64`, the text form that transparency-log tools pass round.
  public init(text: String) throws(NoteError) {
    let parts = text.split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let key = NoteKeyText.key(parts[2]), let publicKey = Ed25519PublicKey(bytes: key) else {
      throw .badKeyText
    }
    try self.init(name: String(parts[0]), publicKey: publicKey)
    guard parts[1] == NoteKeyText.hex(keyID) else { throw .badKeyText }
  }

  public var text: String { name + "+" + NoteKeyText.hex(keyID) + "+" + NoteKeyText.base64(publicKey.bytes) }

  /// Non-empty, without Unicode spaces, plus signs and control characters.
  static func isValid(name: String) -> Bool {
    !name.isEmpty
      && name.unicodeScalars.allSatisfy { !$0.properties.isWhitespace && $0 != "+" && $0.value >= 0x20 }
  }
}

/// The private key of a signed note.
public struct NoteSigner: Sendable {
  public let verifier: NoteVerifier
  private let key: Ed25519PrivateKey

  public var name: String { verifier.name }

  public init(name: String, key: Ed25519PrivateKey) throws(NoteError) {
    verifier = try NoteVerifier(name: name, publicKey: key.publicKey)
    self.key = key
  }

  /// Reads `PRIVATE+KEY+name+keyid+base64`. The text is a secret.
  public init(text: String) throws(NoteError) {
    let parts = text.split(separator: "+", maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0] == "PRIVATE", parts[1] == "KEY", let seed = NoteKeyText.key(parts[4]),
      let key = Ed25519PrivateKey(seed: seed)
    else { throw .badKeyText }
    try self.init(name: String(parts[2]), key: key)
    guard parts[3] == NoteKeyText.hex(verifier.keyID) else { throw .badKeyText }
  }

  /// The text form, a secret.
  public var text: String {
    "PRIVATE+KEY+" + name + "+" + NoteKeyText.hex(verifier.keyID) + "+" + NoteKeyText.base64(key.seed)
  }

  func sign(_ text: [UInt8]) -> NoteSignature {
    NoteSignature(name: name, keyID: verifier.keyID, bytes: key.sign(text))
  }
}

/// One signature line of a note, verified or not.
public struct NoteSignature: Sendable, Hashable {
  public let name: String
  public let keyID: UInt32
  public let bytes: [UInt8]
}

/// Why a note or a note's key is refused. Holds no key material.
public enum NoteError: String, Error, Sendable, Hashable {
  case badKeyName = "a key name is empty or holds a space or plus sign"
  case badKeyText = "not the text of a note key, or its key id is not its own"
  case tooLarge = "a note is larger than allowed"
  case notText = "a note holds invalid UTF-8 or control characters"
  case badForm = "a note has no blank line before its signatures, or a line there is no signature"
  case tooManySignatures = "a note has more signatures than allowed"
  case unknownSigners = "no signature of a note is by a known key"
  case badSignature = "a signature by a known key is invalid"
  case badCheckpoint = "the text of a note is not a checkpoint"
}

enum NoteKeyText {
  /// Eight lower-case digits.
  static func hex(_ keyID: UInt32) -> String {
    Hex.encode((0..<4).map { UInt8(truncatingIfNeeded: keyID >> UInt32(24 - 8 * $0)) })
  }

  static func base64(_ key: [UInt8]) -> String { Base64.encode([NoteVerifier.algorithm] + key) }

  static func key(_ text: Substring) -> [UInt8]? {
    guard let bytes = Base64.decode(String(text)), bytes.first == NoteVerifier.algorithm else { return nil }
    return Array(bytes.dropFirst())
  }
}
