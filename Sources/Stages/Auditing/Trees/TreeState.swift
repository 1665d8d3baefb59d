import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// A row of `audit_tree`: all that must be kept of a partition's tree in order to go on with it.
struct TreeState: Sendable, Hashable {
  let partition: TopicPartition
  var frontier = MerkleFrontier()
  /// Timestamp of the last leaf.
  var latestAt = Instant(milliseconds: 0)
  var checkpointedSize: Int64 = 0
  /// Timestamp of the last leaf that is signed for; while there is none, of the first leaf.
  var checkpointedAt = Instant(milliseconds: 0)
  /// The newest checkpoint, a whole note.
  var checkpoint: String?
  var document: [UInt8]?

  init(_ partition: TopicPartition) { self.partition = partition }

  var size: Int64 { Int64(frontier.size) }

  static func key(_ partition: TopicPartition) -> RowKey {
    RowKey(.auditTree, [.text(partition.topic), .integer(Int64(partition.partition))])
  }

  /// nil for a row that can't be what this program wrote: the store was damaged.
  init?(_ row: Row, _ partition: TopicPartition) {
    self.init(partition)
    guard let size = row["size"].integer, size >= 0, let packed = row["frontier"].bytes,
      let nodes = Hash256.unpack(packed), let frontier = MerkleFrontier(size: UInt64(size), nodes: nodes),
      row["root"].text == frontier.root.hex, let checkpointedSize = row["checkpointed_size"].integer
    else { return nil }
    self.frontier = frontier
    self.checkpointedSize = checkpointedSize
    latestAt = Instant(milliseconds: row["latest_at"].integer ?? 0)
    checkpointedAt = Instant(milliseconds: row["checkpointed_at"].integer ?? 0)
    checkpoint = row["checkpoint"].text
    document = row["document"].bytes
  }

  var row: Row {
    Row(
      Self.key(partition),
      [
        .integer(size), .bytes(Hash256.pack(frontier.nodes)), .text(frontier.root.hex), Value(latestAt),
        .integer(checkpointedSize), Value(checkpointedAt), Value(checkpoint), document.map { .bytes($0) } ?? .null,
      ])
  }

  /// Signs for all leaves there are.
  mutating func sign(_ settings: AuditSettings, origin: String) -> SignedNote {
    let note = settings.signed(origin: origin, size: size, root: frontier.root)
    checkpointedSize = size
    checkpointedAt = latestAt
    checkpoint = String(decoding: note.encoded, as: UTF8.self)
    return note
  }

  /// Signs for all leaves of a partition and makes the event that says so, and that event's id.
  mutating func checkpoint(_ settings: AuditSettings) -> (event: Outgoing, id: String) {
    let note = sign(settings, origin: settings.names.origin(of: partition))
    let event = AuditEvent.checkpointed(
      AuditCheckpointed(
        scope: .partition(partition), size: size, root: frontier.root.hex,
        note: String(decoding: note.encoded, as: UTF8.self)))
    return (
      Outgoing(topic: .audit, key: partition.description, type: event.type, data: event.data),
      AuditID.of(note: note.text)
    )
  }
}

/// Ids of events that the clock brings: made from what they say, so that a second copy is the same event.
enum AuditID {
  static func of(note text: String) -> String { digest("checkpoint", text) }

  static func of(_ kind: AuditAnomaly.Kind, _ subject: TransactionSubject) -> String {
    digest(kind.rawValue, subject.text)
  }

  private static func digest(_ what: String, _ text: String) -> String {
    SHA256.digest("purchases.audit\n\(what)\n\(text)").hex
  }
}
