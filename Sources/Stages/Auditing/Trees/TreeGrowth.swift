import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// A tree while a run of records is appended to it.
struct TreeGrowth {
  static let damage = "the audit tree's rows in the store are damaged; rebuild the store's audit tables from the log"

  private(set) var state: TreeState
  private var tile: LeafTile
  private var full: [LeafTile] = []
  private var hasGrown = false

  /// nil where the store holds what this program can't have written.
  init?(_ partition: TopicPartition, _ facts: any Facts) {
    guard let row = facts.row(TreeState.key(partition)) else {
      state = TreeState(partition)
      tile = LeafTile(partition, index: 0)
      return
    }
    guard let state = TreeState(row, partition) else { return nil }
    self.state = state
    let (index, count) = state.size.quotientAndRemainder(dividingBy: LeafTile.width)
    guard count > 0 else {
      tile = LeafTile(partition, index: index)
      return
    }
    guard let row = facts.row(LeafTile.key(partition, index: index)),
      let tile = LeafTile(row, partition, index: index, count: count)
    else { return nil }
    self.tile = tile
  }

  mutating func append(_ stored: StoredRecord) {
    if tile.isFull {
      full.append(tile)
      tile = LeafTile(state.partition, index: tile.index + 1)
    }
    let hash = LeafHash.of(stored.record)
    tile.append(hash, offset: stored.coordinates.offset)
    state.frontier.append(hash)
    state.latestAt = stored.record.timestamp
    if state.size == 1 { state.checkpointedAt = stored.record.timestamp }
    hasGrown = true
  }

  /// Told by the records alone, so that every reader of the partition signs at the same leaves.
  func isDue(_ limits: AuditLimits) -> Bool {
    let unsigned = state.size - state.checkpointedSize
    guard unsigned > 0 else { return false }
    return unsigned >= limits.leavesPerCheckpoint
      || state.latestAt >= state.checkpointedAt.advanced(byMilliseconds: limits.millisecondsPerCheckpoint)
  }

  mutating func checkpoint(_ settings: AuditSettings) -> Outgoing { state.checkpoint(settings).event }

  /// Each row once, as it stands at the run's end.
  var writes: [Write] {
    guard hasGrown else { return [] }
    return (full + [tile]).map { .put($0.row) } + [.put(state.row)]
  }
}
