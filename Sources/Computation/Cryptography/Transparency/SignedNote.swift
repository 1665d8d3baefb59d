/// A text with signatures under it (C2SP `signed-note`).
///
/// The text means nothing until ``verify(with:)`` has named a known key that signed it.
public struct SignedNote: Sendable, Hashable {
  /// Far above any checkpoint, with room for many witnesses.
  public static let maximumByteCount = 1 << 20
  /// The specification asks for sixteen at least.
  public static let maximumSignatureCount = 100

  private static let linePrefix = "\u{2014} "

  /// Ends in a newline; what is signed.
  public let text: String
  public let signatures: [NoteSignature]

  /// Signs a text, which must be non-empty, end in a newline and hold no other control characters.
  public init(signing text: String, with signers: [NoteSigner]) throws(NoteError) {
    guard Self.isAllowed(text), text.utf8.last == 0x0A else { throw .notText }
    guard !signers.isEmpty else { throw .badForm }
    guard signers.count <= Self.maximumSignatureCount else { throw .tooManySignatures }
    let signed = Array(text.utf8)
    self.text = text
    signatures = signers.map { $0.sign(signed) }
    guard encoded.count <= Self.maximumByteCount else { throw .tooLarge }
  }

  /// Takes a note apart without verifying it. Signatures by unknown keys and of other algorithms are kept.
  public init(parsing bytes: [UInt8]) throws(NoteError) {
    guard bytes.count <= Self.maximumByteCount else { throw .tooLarge }
    guard let whole = String(validating: bytes, as: UTF8.self), Self.isAllowed(whole) else { throw .notText }
    // The text may hold blank lines itself; the last one ends it.
    guard let split = bytes.lastBlankLine else { throw .badForm }
    let block = bytes[(split + 1)...]
    guard block.last == 0x0A, split > 0 else { throw .badForm }
    var signatures: [NoteSignature] = []
    for line in block.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false) {
      guard signatures.count < Self.maximumSignatureCount else { throw .tooManySignatures }
      signatures.append(try Self.signature(String(decoding: line, as: UTF8.self)))
    }
    text = String(decoding: bytes[..<split], as: UTF8.self)
    self.signatures = signatures
  }

  public init(parsing text: String) throws(NoteError) { try self.init(parsing: Array(text.utf8)) }

  /// The note as it is stored and passed on.
  public var encoded: [UInt8] {
    var lines = text + "\n"
    for signature in signatures {
      let keyID = (0..<4).map { UInt8(truncatingIfNeeded: signature.keyID >> UInt32(24 - 8 * $0)) }
      lines += Self.linePrefix + signature.name + " " + Base64.encode(keyID + signature.bytes) + "\n"
    }
    return Array(lines.utf8)
  }

  /// The known keys that signed the text, at least one. Signatures by other keys are ignored; a false one by a known key
  /// condemns the note.
  @discardableResult
  public func verify(with known: [NoteVerifier]) throws(NoteError) -> [NoteVerifier] {
    let signed = Array(text.utf8)
    var verified: [NoteVerifier] = []
    for signature in signatures {
      for verifier in known
      where verifier.name == signature.name && verifier.keyID == signature.keyID && !verified.contains(verifier) {
        guard verifier.publicKey.verify(signature: signature.bytes, message: signed) else { throw .badSignature }
        verified.append(verifier)
      }
    }
    guard !verified.isEmpty else { throw .unknownSigners }
    return verified
  }

  /// A copy with a further signature, as a witness adds it.
  public func adding(_ signer: NoteSigner) throws(NoteError) -> SignedNote {
    guard signatures.count < Self.maximumSignatureCount else { throw .tooManySignatures }
    return SignedNote(text: text, signatures: signatures + [signer.sign(Array(text.utf8))])
  }

  private init(text: String, signatures: [NoteSignature]) {
    self.text = text
    self.signatures = signatures
  }

  private static func isAllowed(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 || $0 == 0x0A }
  }

  private static func signature(_ line: String) throws(NoteError) -> NoteSignature {
    guard line.hasPrefix(linePrefix) else { throw .badForm }
    let parts = line.dropFirst(linePrefix.count).split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, NoteVerifier.isValid(name: String(parts[0])),
      let bytes = Base64.decode(String(parts[1])), bytes.count > 4
    else { throw .badForm }
    return NoteSignature(
      name: String(parts[0]), keyID: bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }, bytes: Array(bytes[4...]))
  }
}

extension [UInt8] {
  /// Where the last empty line stands: the index of its own newline.
  fileprivate var lastBlankLine: Int? {
    var index = count - 1
    while index > 0 {
      if self[index] == 0x0A, self[index - 1] == 0x0A { return index }
      index -= 1
    }
    return nil
  }
}
