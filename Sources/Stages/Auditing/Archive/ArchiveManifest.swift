import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// The file `MANIFEST` of an export: what it holds and by which key it is judged, one line each. The last line is the
/// digest of those before it; each manifest has one text.
struct ArchiveManifest: Sendable, Hashable {
  static let fileName = "MANIFEST"
  /// Some dozens of partitions at a hundred bytes.
  static let maximumBytes = 1 << 20
  private static let firstLine = "purchases-audit-archive 1"

  struct File: Sendable, Hashable {
    var partition: TopicPartition
    var bounds: OffsetBounds
    var records: Int64
    var bytes: Int
    /// SHA-256 in hex.
    var digest: String

    var name: String { Self.name(partition) }

    static func name(_ partition: TopicPartition) -> String { "\(partition.topic)-\(partition.partition).records" }
  }

  var key: NoteVerifier
  var prefix: String
  /// Whether all that was in the log then is here, so that outputs can be looked for.
  var isComplete: Bool
  var files: [File] = []
  var workedOff: [TopicPartition: Int64] = [:]

  private var body: String {
    var lines = [Self.firstLine, "key \(key.text)", "prefix \(prefix)", "complete \(isComplete ? "yes" : "no")"]
    for file in files.sorted(by: { $0.partition < $1.partition }) {
      lines.append(
        "records \(file.partition.topic) \(file.partition.partition) \(file.bounds.start) \(file.bounds.end)"
          + " \(file.records) \(file.bytes) \(file.digest)")
    }
    for (partition, offset) in workedOff.sorted(by: { $0.key < $1.key }) {
      lines.append("worked-off \(partition.topic) \(partition.partition) \(offset)")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  var text: String { body + "digest \(SHA256.digest(body).hex)\n" }

  init(key: NoteVerifier, prefix: String, isComplete: Bool) {
    self.key = key
    self.prefix = prefix
    self.isComplete = isComplete
  }

  /// nil for anything that ``text`` would not have given.
  init?(parsing bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.count >= 5, lines[0] == Self.firstLine, lines[1].hasPrefix("key "), lines[2].hasPrefix("prefix "),
      let key = try? NoteVerifier(text: String(lines[1].dropFirst(4)))
    else { return nil }
    self.init(key: key, prefix: String(lines[2].dropFirst(7)), isComplete: lines[3] == "complete yes")
    for line in lines[4...] {
      let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      switch (words[0], words.count) {
      case ("records", 8):
        guard let number = Int32(words[2]), let start = Int64(words[3]), let end = Int64(words[4]),
          let records = Int64(words[5]), let bytes = Int(words[6])
        else { return nil }
        files.append(
          File(
            partition: TopicPartition(words[1], number), bounds: OffsetBounds(start: start, end: end), records: records,
            bytes: bytes, digest: words[7]))
      case ("worked-off", 4):
        guard let number = Int32(words[2]), let offset = Int64(words[3]) else { return nil }
        workedOff[TopicPartition(words[1], number)] = offset
      case ("digest", 2), ("", 1): break
      default: return nil
      }
    }
    guard Array(self.text.utf8) == bytes else { return nil }
  }
}
