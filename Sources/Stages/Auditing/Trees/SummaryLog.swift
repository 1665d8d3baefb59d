import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// The log over all partitions: its leaves are the texts of the partitions' checkpoints, added by name whenever
/// partitions have moved on. It only grows, so it has consistency proofs as every other tree.
struct SummaryLog {
  /// No topic of a deployment has this name.
  static let place = TopicPartition("*", 0)

  private(set) var state: TreeState
  /// Part of its name.
  private var born = Instant(milliseconds: 0)
  /// By the partition's name, the size that is in the log.
  private var summed: [String: Int64] = [:]
  /// Signed and kept, not published yet.
  var pending: AuditCheckpointed?

  /// nil where the store holds what this program can't have written.
  init?(_ row: Row?) {
    guard let row else {
      state = TreeState(Self.place)
      return
    }
    guard let state = TreeState(row, Self.place), let document = state.document,
      let fields = try? Fields(parsing: document), let born = fields.member("born")?.int64
    else { return nil }
    self.state = state
    self.born = Instant(milliseconds: born)
    for member in fields.member("summed")?.members ?? [] { summed[member.name] = member.value.int64 }
    if let pending = fields.member("pending") {
      guard let inner = try? Fields(pending), let event = try? AuditCheckpointed(inner) else { return nil }
      self.pending = event
    }
  }

  var row: Row {
    var writer = JSONWriter()
    writer.object { json in
      json.field("born", born.milliseconds)
      json.field(
        "summed",
        object: { json in
          for (name, size) in summed.sorted(by: { $0.key < $1.key }) { json.fieldNamed(name, .integer(size)) }
        })
      json.field("pending", raw: pending.map { AuditEvent.checkpointed($0).data })
    }
    var state = state
    state.document = writer.bytes
    return state.row
  }

  /// Adds the newest checkpoints that are not in yet and signs; false where there are none.
  mutating func add(_ trees: [TreeState], _ settings: AuditSettings, now: Instant) -> Bool {
    var added: [String] = []
    for tree in trees.sorted(by: { $0.partition < $1.partition }) {
      let name = tree.partition.description
      guard let note = tree.checkpoint, tree.checkpointedSize > summed[name] ?? 0 else { continue }
      let text = Self.text(ofNote: note)
      added.append(text)
      summed[name] = tree.checkpointedSize
      state.frontier.append(MerkleTree.leafHash(Array(text.utf8)))
    }
    guard !added.isEmpty else { return false }
    if state.checkpointedSize == 0 { born = now }
    state.latestAt = now
    let note = state.sign(settings, origin: settings.names.summary(born: born))
    pending = AuditCheckpointed(
      scope: .summary(added: added), size: state.size, root: state.frontier.root.hex,
      note: String(decoding: note.encoded, as: UTF8.self))
    return true
  }

  /// Whether the newest checkpoint of each tree is in.
  func holds(_ trees: [TreeState]) -> Bool {
    trees.allSatisfy { $0.checkpointedSize <= summed[$0.partition.description] ?? 0 }
  }

  /// What of a note is signed: all before its last blank line.
  static func text(ofNote note: String) -> String { (try? SignedNote(parsing: note).text) ?? "" }
}
