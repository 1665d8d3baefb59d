import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Shows that one record is in the log, by itself: the record, the way from its leaf to the root, and the checkpoint that
/// signs for the root. As text it is a C2SP `tlog-proof` whose extra data is the record, so that other tools read it.
public struct InclusionProof: Sendable, Hashable {
  static let firstLine = "c2sp.org/tlog-proof@v1"
  /// A record may have 10 MB, and base64 makes a third more of it.
  public static let maximumBytes = 16 << 20

  public let record: Record
  public let index: Int64
  /// Siblings, from the leaf's up to the root's child.
  public let path: [Hash256]
  /// The checkpoint, a whole note.
  public let note: String

  public init(record: Record, index: Int64, path: [Hash256], note: String) {
    self.record = record
    self.index = index
    self.path = path
    self.note = note
  }

  public var text: String {
    var lines = [Self.firstLine, "extra " + Base64.encode(RecordCodec.encode(record)), "index \(index)"]
    lines += path.map { Base64.encode($0.bytes) }
    return lines.joined(separator: "\n") + "\n\n" + note
  }

  /// Reads the text form. Each proof has one text, so that no letter of it can be changed unseen.
  public init(parsing text: String) throws(ProofFailure) {
    guard text.utf8.count <= Self.maximumBytes else { throw .tooLarge }
    let bytes = Array(text.utf8)
    guard let split = (1..<max(1, bytes.count)).first(where: { bytes[$0] == 0x0A && bytes[$0 - 1] == 0x0A }) else {
      throw .malformed
    }
    let lines = bytes[..<(split - 1)].split(separator: 0x0A, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard lines.count >= 3, lines[0] == Self.firstLine, lines[1].hasPrefix("extra "), lines[2].hasPrefix("index "),
      let extra = Base64.decode(String(lines[1].dropFirst(6))), let index = Int64(lines[2].dropFirst(6)), index >= 0,
      let record = try? RecordCodec.decode(extra)
    else { throw .malformed }
    var path: [Hash256] = []
    for line in lines[3...] {
      guard let hash = Base64.decode(line).flatMap({ Hash256(bytes: $0) }) else { throw .malformed }
      path.append(hash)
    }
    self.init(
      record: record, index: index, path: path, note: String(decoding: bytes[(split + 1)...], as: UTF8.self))
    guard Array(self.text.utf8) == bytes else { throw .malformed }
  }

  /// What the proof shows, once it holds.
  public struct Shown: Sendable, Hashable {
    public let partition: TopicPartition
    public let index: Int64
    public let record: Record
    /// Leaves that the checkpoint signs for.
    public let size: Int64
    /// In hex.
    public let root: String
  }

  /// - Parameter key: the public key of the log, or of the partition's tree.
  public func check(key: NoteVerifier) throws(ProofFailure) -> Shown {
    let names: AuditNames
    let head: Checkpoint
    do {
      let note = try SignedNote(parsing: self.note)
      head = try Checkpoint(text: note.text)
      // One key signs every tree, each under its own name: whoever has the log's key has the tree's.
      names = AuditNames(name: head.origin == key.name ? Self.logName(head.origin) : key.name)
      guard let verifier = names.verifier(of: head.origin, key) else { throw ProofFailure.badNote(.badKeyName) }
      try note.verify(with: [verifier])
    } catch let failure as ProofFailure {
      throw failure
    } catch let failure as NoteError {
      throw .badNote(failure)
    } catch {
      throw .malformed
    }
    guard let partition = names.partition(of: head.origin), let size = Int64(exactly: head.size) else {
      throw .otherLog(head.origin)
    }
    guard
      MerkleTree.verifyInclusion(
        leaf: LeafHash.of(record), index: UInt64(index), size: head.size, proof: path, root: head.root)
    else { throw .notIncluded }
    return Shown(partition: partition, index: index, record: record, size: size, root: head.root.hex)
  }

  private static func logName(_ origin: String) -> String {
    origin.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
  }
}

/// Why a proof shows nothing, or can't be made.
public enum ProofFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case tooLarge
  case malformed
  case badNote(NoteError)
  case otherLog(String)
  case notIncluded
  /// There is no such record in the partition.
  case noRecord(String)
  /// No checkpoint signs for the record yet.
  case unsigned(String)

  public var description: String {
    switch self {
    case .tooLarge: "the proof is larger than \(InclusionProof.maximumBytes) bytes"
    case .malformed: "this is not the text of a proof"
    case .badNote(let error): "the checkpoint is not the log's: \(error.rawValue)"
    case .otherLog(let origin): "the checkpoint is of \(origin), which is no partition of this log"
    case .notIncluded: "the record is not in the tree that the checkpoint signs for"
    case .noRecord(let place): "there is no record \(place)"
    case .unsigned(let place): "no checkpoint signs for \(place) yet"
    }
  }
}
