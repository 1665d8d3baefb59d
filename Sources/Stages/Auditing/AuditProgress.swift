import PurchasesContracts

/// Whether auditing has said all there is to say of the records that it has read, as its rows in the store tell.
public enum AuditProgress {
  /// Some dozens of partitions, in one read.
  private static let page = 1024

  /// True once every leaf is signed for, the summary holds every partition's newest checkpoint, and that is published.
  public static func isSettled(_ reader: any StoreReader) throws(StoreFailure) -> Bool {
    var trees: [TreeState] = []
    var summary: Row?
    var after: [Value]?
    while true {
      let rows = try reader.rows(.auditTree, prefix: [], after: after, limit: page)
      for row in rows {
        guard let topic = row.key.values[0].text, let number = row.key.values[1].integer else { continue }
        let partition = TopicPartition(topic, Int32(truncatingIfNeeded: number))
        if partition == SummaryLog.place {
          summary = row
        } else if let tree = TreeState(row, partition) {
          trees.append(tree)
        }
      }
      guard let last = rows.last else { break }
      after = last.key.values
    }
    guard trees.allSatisfy({ $0.size == $0.checkpointedSize }) else { return false }
    // A damaged row is never going to settle; `audit verify` names it.
    guard let log = SummaryLog(summary) else { return true }
    return log.pending == nil && log.holds(trees)
  }
}
