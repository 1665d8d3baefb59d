import PurchasesContracts

/// How a stage's store and its group's offset in the log stand to each other on one partition: the one recovery rule as
/// a value, so that who acts on it and who only looks come to the same answer in the same words.
public enum Standing: Sendable, Hashable {
  case level
  /// The store is ahead up to this position, and holds all that is still to be published.
  case ahead(Int64)
  /// Going on would make it worse; the text says what is wrong and what to do.
  case inconsistent(String)

  /// - Parameter kept: what the store holds of the partition; batches up to the committed offset don't matter.
  public init(
    of partition: TopicPartition, group: String, store next: Int64?, log committed: Int64?, kept: [KeptBatch]
  ) {
    // The first offset of a partition is committed before any work on it is: see `StageRunner.confirm`.
    guard next != committed, (next, committed) != (nil, 0) else {
      self = .level
      return
    }
    guard let next, next > committed ?? -1 else {
      self = .inconsistent(
        "\(partition): the group \(group) stands at \(Self.text(committed)), the store only at \(Self.text(next)). The "
          + "store is older than the log's offsets (a restored backup, or a new store for an old group). Restore the "
          + "newest store, or rebuild it with `purchases replay` and a new group.")
      return
    }
    var reached = committed
    for batch in kept where batch.next > committed ?? -1 {
      guard batch.from ?? 0 == reached else { break }
      reached = batch.next
    }
    guard let committed else {
      self = .inconsistent(
        "\(partition): the store stands at \(next), and the group \(group) has no offset. The group's offsets are gone or were "
          + "set back. Set them to the store's position once you know that its output is in the log; where the log has "
          + "none of it, to 0, and what the store still holds is published.")
      return
    }
    guard reached == next else {
      self = .inconsistent(
        "\(partition): the store stands at \(next), the group \(group) at \(committed), and the store holds "
          + "nothing to publish for the records between. The group's offsets are gone or were set back. Set them to the "
          + "store's position once you know that its output is in the log, or replay into a new store.")
      return
    }
    self = .ahead(next)
  }

  /// What is missing for a group that begins at the beginning: it does so at offset 0, and nowhere later without people
  /// knowing.
  public static func lostBeginning(of partition: TopicPartition, start: Int64) -> String? {
    guard start > 0 else { return nil }
    return
      "\(partition): a new group would begin at 0, but the log begins at \(start): records 0 to \(start - 1) are gone. "
      + "Topics of this pipeline are kept for ever; restore them, or set the group's offset to \(start) to accept the loss."
  }

  /// What is wrong where a group has no offset and the log holds what its stage made of the partition's records.
  public static func lostOffset(
    of partition: TopicPartition, group: String, _ reached: OutputTrail.Reached, hasState: Bool
  ) -> String {
    let found =
      "\(partition): the group \(group) has no offset, but the log holds what was made of the records before "
      + "\(reached.next)."
    guard reached.next <= reached.end else {
      return "\(found) The partition ends at \(reached.end): it is an older copy, or the topic was made anew. Restore "
        + "the newest log. Where the records are gone for good, the group's offset decides which of those that came "
        + "since are worked on: set it to 0 for all of them."
    }
    if hasState {
      return
        "\(found) The store has worked on none of them: it is new, or another one. Give the stage the store and the group "
        + "that it had, or rebuild the store with `purchases replay` and set the group's offsets to its positions. From 0 on, "
        + "everything would stand in the log twice."
    }
    return
      "\(found) The group's offsets are gone, or it is a new group where another one has worked. Set its offset to "
      + "\(reached.next), and it goes on there, or give the stage the group that it had (--group). From 0 on, everything "
      + "would stand in the log twice."
  }

  /// What is wrong with an offset that the log does not hold any more, or not yet.
  public static func misplaced(
    _ partition: TopicPartition, group: String, committed: Int64, bounds: OffsetBounds
  ) -> String? {
    if committed < bounds.start {
      return "\(partition): the group \(group) stands at \(committed), but the log begins at \(bounds.start): records "
        + "\(committed) to \(bounds.start - 1) are gone. Restore them, or set the group's offset to \(bounds.start) to "
        + "accept the loss."
    }
    if committed > bounds.end {
      return
        "\(partition): the group \(group) stands at \(committed), but the log ends at \(bounds.end): the log is an "
        + "older copy, or the topic was made anew. Restore the newest log, or begin with a new group and a new store."
    }
    return nil
  }

  /// What is wrong with a store that has worked off more than the log holds.
  public static func aheadOfLog(_ partition: TopicPartition, position: Int64, end: Int64) -> String {
    "\(partition): the store stands at \(position), but the log ends at \(end): the log is an older copy, or the topic was made "
      + "anew. Restore the newest log, or begin with a new group and a new store."
  }

  private static func text(_ offset: Int64?) -> String { offset.map { String($0) } ?? "none" }
}
