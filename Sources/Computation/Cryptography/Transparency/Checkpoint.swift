/// The head of a log's tree as the text of a signed note (C2SP `tlog-checkpoint`).
public struct Checkpoint: Sendable, Hashable {
  /// Names the log. One line, non-empty.
  public let origin: String
  public let size: UInt64
  public let root: Hash256
  /// Further lines, non-empty; opaque to other tools.
  public let extensions: [String]

  public init(origin: String, size: UInt64, root: Hash256, extensions: [String] = []) throws(NoteError) {
    for line in [origin] + extensions {
      guard !line.isEmpty, line.utf8.allSatisfy({ $0 >= 0x20 }) else { throw .badCheckpoint }
    }
    self.origin = origin
    self.size = size
    self.root = root
    self.extensions = extensions
  }

  /// Reads the text of a note; strict, so that each checkpoint has one text.
  public init(text: String) throws(NoteError) {
    // By bytes: Swift would take a line feed and a combining mark behind it for one character.
    let bytes = Array(text.utf8)
    guard bytes.last == 0x0A else { throw .badCheckpoint }
    let lines = bytes.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard lines.count >= 3, let size = UInt64(lines[1]), String(size) == lines[1],
      let bytes = Base64.decode(lines[2]), let root = Hash256(bytes: bytes)
    else { throw .badCheckpoint }
    try self.init(origin: lines[0], size: size, root: root, extensions: Array(lines[3...]))
  }

  public var text: String {
    var text = "\(origin)\n\(size)\n\(Base64.encode(root.bytes))\n"
    for line in extensions { text += line + "\n" }
    return text
  }

  /// The checkpoint as a note. The signer's name should be the origin.
  public func signed(by signers: [NoteSigner]) throws(NoteError) -> SignedNote {
    try SignedNote(signing: text, with: signers)
  }

  /// Reads a note that a known key signed.
  public init(verifying note: [UInt8], with known: [NoteVerifier]) throws(NoteError) {
    let note = try SignedNote(parsing: note)
    try note.verify(with: known)
    try self.init(text: note.text)
  }
}
