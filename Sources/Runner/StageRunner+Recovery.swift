import PurchasesContracts

extension StageRunner {
  /// The one recovery rule: compare what the log has as committed with the store's position, publish what the store holds
  /// beyond it, and begin there. Run at assignment and after whatever left the outcome of a commit open.
  func recover(_ partitions: [TopicPartition], _ worker: any LogWorker, _ books: (any StageStore)?) throws {
    guard !partitions.isEmpty else { return }
    var laps = Laps(pacing)
    let positions = try books?.claim(partitions)
    laps.end()
    let committed = try worker.committed(partitions)
    laps.end()
    try refuseLostOffsets(partitions.filter { committed[$0] ?? nil == nil && positions?[$0]?.next == nil }, worker)
    try refuseOlderStore()
    var starts: [TopicPartition: Int64] = [:]
    var kept: [(partition: TopicPartition, batches: [Unpublished])] = []
    for partition in partitions {
      let offset = committed[partition] ?? nil
      var state = Owned(epoch: 0, next: offset, published: offset)
      if let books, let position = positions?[partition] {
        state = Owned(epoch: position.epoch, next: position.next, published: offset)
        let batches = try reconcile(partition, position, committed: offset, books)
        if !batches.isEmpty { kept.append((partition, batches)) }
      }
      owned[partition] = state
      waiting[partition] = nil
      starts[partition] = try state.next ?? beginning(of: partition)
    }
    try publish(kept, worker)
    laps.end()
    // Without a store nothing is claimed, but a first offset spares every later start the look at all outputs.
    if books != nil || starts.keys.contains(where: { owned[$0]?.published == nil }) { try confirm(starts, worker) }
    laps.end()
    try worker.start(starts)
    laps.end()
    // Where the time goes: it is what people wait for after a fault.
    logger.info(
      "ready",
      [
        "stage": stage.name.rawValue, "partitions": Self.list(partitions), "claim_ms": laps.texts[0],
        "committed_ms": laps.texts[1], "publish_ms": laps.texts[2], "confirm_ms": laps.texts[3],
        "start_ms": laps.texts[4],
      ])
  }

  private struct Laps {
    private let pacing: any Pacing
    private var last: Int64
    private(set) var texts: [String] = []

    init(_ pacing: any Pacing) {
      self.pacing = pacing
      last = pacing.milliseconds()
    }

    mutating func end() {
      let now = pacing.milliseconds()
      texts.append(String(now - last))
      last = now
    }
  }

  /// Where neither the group nor a store knows how far the stage has come, and the log holds what was made of the partition's
  /// records, the offset is gone, or the store with it.
  private func refuseLostOffsets(_ partitions: [TopicPartition], _ worker: any LogWorker) throws {
    guard !partitions.isEmpty, !settings.isReplay else { return }
    let trail = OutputTrail(stage: stage.name, output: stage.output, topics: settings.topics, log: log)
    let reached = try trail.positions(of: partitions)
    guard !reached.isEmpty else { return }
    // The offsets were read before the trail. Should somebody have committed between the two, this is done anew.
    let committed = try worker.committed(reached.keys.sorted())
    for (partition, reached) in reached.sorted(by: { $0.key < $1.key }) where committed[partition] ?? nil == nil {
      throw RunnerFailure.inconsistent(
        Standing.lostOffset(of: partition, group: settings.group, reached, hasState: stage.hasState))
    }
    throw LogFailure(.stale, "offsets of group \(settings.group) were committed while they were looked at")
  }

  /// A store that is older than the log's offsets is refused by every member, also by one on whose own partitions it happens
  /// to be level: there it would work on, and from then on no store would be the newest for all partitions.
  private func refuseOlderStore() throws {
    guard let store, !isStoreCompared, !settings.isReplay else { return }
    // In this order: a batch reaches the store first, so no offset is ahead of a position that is read after it.
    var offsets: [TopicPartition: Int64] = [:]
    for topic in stage.inputs.map({ settings.topics.name($0) }) {
      for (number, offset) in try log.committed(group: settings.group, topic: topic) {
        offsets[TopicPartition(topic, number)] = offset
      }
    }
    let reader = try store.reader()
    defer { reader.close() }
    let positions = try reader.positions(stage: stage.name.rawValue)
    for (partition, offset) in offsets.sorted(by: { $0.key < $1.key }) where offset > positions[partition]?.next ?? 0 {
      let standing = Standing(
        of: partition, group: settings.group, store: positions[partition]?.next, log: offset, kept: [])
      if case .inconsistent(let reason) = standing { throw RunnerFailure.inconsistent(reason) }
    }
    isStoreCompared = true
  }

  /// Asks the log whether this is still a member, by a commit that changes nothing. A claim takes a partition from whoever
  /// has it, also when it is made by one who stood still and doesn't know that its membership is over; nothing may be written
  /// under such a claim. After this, whoever comes next claims after us, and the store refuses us from then on.
  ///
  /// A partition on which the group has never worked gets its first offset by it. So where the store has work and the log has
  /// no offset, the offset is gone, and not the first batch still to be published.
  private func confirm(_ starts: [TopicPartition: Int64], _ worker: any LogWorker) throws {
    var offsets = starts.filter { owned[$0.key]?.published == nil }
    if offsets.isEmpty, let first = starts.keys.min() { offsets[first] = owned[first]?.published }
    try worker.commit([], offsets: offsets, membership: worker.membership())
    for (partition, offset) in offsets { owned[partition]?.published = offset }
  }

  /// What the store holds of a partition and the log has not.
  private func reconcile(
    _ partition: TopicPartition, _ position: StagePosition, committed: Int64?, _ books: any StageStore
  ) throws -> [Unpublished] {
    guard position.next != committed else { return [] }
    let kept = try books.unpublished(partition, beyond: committed)
    let standing = Standing(
      of: partition, group: settings.group, store: position.next, log: committed,
      kept: kept.map { KeptBatch(from: $0.from, next: $0.next) })
    switch standing {
    case .level: return []
    case .ahead: return kept
    case .inconsistent(let reason):
      // The two were read one after the other: it says nothing if somebody else has claimed the partition meanwhile and
      // worked on, as after a stand-still. Then this fails as fenced, and is done anew.
      try books.amend([], epochs: [partition: position.epoch])
      throw RunnerFailure.inconsistent(reason)
    }
  }

  /// Publishes what was kept, each partition's batches in their order. Those of several partitions were mostly one batch
  /// once, and go in one transaction again: one for each would be most of what a recovery takes.
  private func publish(_ kept: [(partition: TopicPartition, batches: [Unpublished])], _ worker: any LogWorker) throws {
    guard !kept.isEmpty else { return }
    CrashPoint.recoveryRead.reach()
    let membership = try worker.membership()
    for round in 0..<(kept.map(\.batches.count).max() ?? 0) {
      var outgoing: [ProducedRecord] = []
      var offsets: [TopicPartition: Int64] = [:]
      for (partition, batches) in kept where round < batches.count {
        outgoing += batches[round].outgoing
        offsets[partition] = batches[round].next
      }
      try worker.commit(outgoing, offsets: offsets, membership: membership)
      for (partition, next) in offsets { owned[partition]?.published = next }
      metrics.count("purchases_recovered_batches_total", "Batches published by recovery", label, by: offsets.count)
      CrashPoint.recoveryPublished.reach()
    }
    for (partition, batches) in kept {
      logger.info(
        "recovered",
        [
          "stage": stage.name.rawValue, "partition": partition.description, "batches": String(batches.count),
          "position": batches.last.map { String($0.next) } ?? "none",
        ])
    }
  }

  /// Where a group begins that has never worked: at offset 0.
  private func beginning(of partition: TopicPartition) throws -> Int64 {
    let start = try log.bounds(of: partition.topic)[partition.partition]?.start ?? 0
    if let loss = Standing.lostBeginning(of: partition, start: start) { throw RunnerFailure.lost(loss) }
    return 0
  }
}
