import PurchasesContracts

extension StageRunner {
  /// The one recovery rule: compare what the log has as committed with the store's position, publish what the store holds
  /// beyond it, and begin there. Run at assignment and after whatever left the outcome of a commit open.
  func recover(_ partitions: [TopicPartition], _ worker: any LogWorker, _ books: (any StageStore)?) throws {
    guard !partitions.isEmpty else { return }
    let positions = try books?.claim(partitions)
    let committed = try worker.committed(partitions)
    var starts: [TopicPartition: Int64] = [:]
    for partition in partitions {
      let offset = committed[partition] ?? nil
      let state: Owned
      if let books, let position = positions?[partition] {
        state = try reconcile(partition, position, committed: offset, worker, books)
      } else {
        state = Owned(epoch: 0, next: offset, published: offset)
      }
      owned[partition] = state
      waiting[partition] = nil
      starts[partition] = try state.next ?? beginning(of: partition)
    }
    try worker.start(starts)
  }

  private func reconcile(
    _ partition: TopicPartition, _ position: StagePosition, committed: Int64?, _ worker: any LogWorker,
    _ books: any StageStore
  ) throws -> Owned {
    guard position.next != committed else {
      return Owned(epoch: position.epoch, next: committed, published: committed)
    }
    guard let next = position.next, next > committed ?? -1 else {
      throw RunnerFailure.inconsistent(
        "\(partition): the group \(settings.group) stands at \(Self.text(committed)), the store only at "
          + "\(Self.text(position.next)). The store is older than the log's offsets (a restored backup, or a new store "
          + "for an old group). Restore the newest store, or rebuild it with `purchases replay` and a new group.")
    }
    let kept = try books.unpublished(partition, beyond: committed)
    var reached = committed
    for batch in kept {
      guard batch.from == reached else { break }
      reached = batch.next
    }
    guard reached == next else {
      throw RunnerFailure.inconsistent(
        "\(partition): the store stands at \(next), the group \(settings.group) at \(Self.text(committed)), and the "
          + "store holds nothing to publish for the records between. The group's offsets are gone or were set back. Set "
          + "them to the store's position once you know that its output is in the log, or replay into a new store.")
    }
    let membership = try worker.membership()
    for batch in kept {
      try worker.commit(batch.outgoing, offsets: [partition: batch.next], membership: membership)
    }
    metrics.count("purchases_recovered_batches_total", "Batches published by recovery", label, by: kept.count)
    logger.info(
      "recovered",
      [
        "stage": stage.name.rawValue, "partition": partition.description, "batches": String(kept.count),
        "position": String(next),
      ])
    return Owned(epoch: position.epoch, next: next, published: next)
  }

  private static func text(_ offset: Int64?) -> String { offset.map { String($0) } ?? "none" }

  /// Where a group begins that has never worked: at offset 0, and nowhere later without people knowing.
  private func beginning(of partition: TopicPartition) throws -> Int64 {
    let start = try log.bounds(of: partition.topic)[partition.partition]?.start ?? 0
    guard start == 0 else {
      throw RunnerFailure.lost(
        "\(partition): a new group would begin at 0, but the log begins at \(start): records 0 to \(start - 1) are gone. "
          + "Topics of this pipeline are kept for ever; restore them, or set the group's offset to \(start) to accept the "
          + "loss.")
    }
    return 0
  }
}
