import PurchasesContracts
import PurchasesCore

extension StageRunner {
  /// Two stages that insert the same row at once settle it within a few rounds; more of them means a mistake of ours.
  static let maximumConflicts = 20
  /// Needs that lead to needs: nothing nests deeper than this.
  static let maximumNeedRounds = 8

  /// Works on what a poll brought. Partitions that this loop no longer owns, records that it has done already and parked
  /// records whose time has not come are left out.
  func work(
    _ records: [StoredRecord], _ membership: Membership, _ worker: any LogWorker, _ books: (any StageStore)?
  ) throws {
    let watch = Stopwatch()
    let now = clock.now()
    var segment: [Incoming] = []
    segment.reserveCapacity(records.count)
    var expected: [TopicPartition: Int64] = [:]
    var cut: Set<TopicPartition> = []
    for stored in records {
      let partition = stored.coordinates.topicPartition
      guard let state = owned[partition], !cut.contains(partition) else { continue }
      guard stored.coordinates.offset >= expected[partition] ?? state.next ?? 0 else { continue }
      if let parking = Parking(ifParkedIn: settings.topics, stored), parking.notBefore > now {
        cut.insert(partition)
        waiting[partition] = (stored.coordinates.offset, parking.notBefore)
        try worker.pause([partition])
        continue
      }
      expected[partition] = stored.coordinates.offset + 1
      let incoming = read(stored)
      if stage.beginsBatch(incoming), !segment.isEmpty {
        try commit(segment, now, membership, worker, books)
        segment.removeAll(keepingCapacity: true)
      }
      segment.append(incoming)
    }
    guard !segment.isEmpty else { return }
    try commit(segment, now, membership, worker, books)
    metrics.observe("purchases_batch_seconds", "Time from poll to commit of a batch", label, watch.seconds)
    metrics.observe("purchases_batch_records", "Records per batch", label, Double(records.count))
  }

  private func read(_ stored: StoredRecord) -> Incoming {
    let envelope: Result<Envelope, EnvelopeFailure>
    do throws(EnvelopeFailure) { envelope = .success(try Envelope(reading: stored.record)) } catch {
      envelope = .failure(error)
    }
    let topic = settings.topics.topic(named: stored.coordinates.topic) ?? stage.inputs[0]
    return Incoming(stored: stored, topic: topic, envelope: envelope).read(by: stage)
  }

  private struct Decided {
    var writes: [Write] = []
    var outgoing: [TopicPartition: [ProducedRecord]] = [:]
    var next: [TopicPartition: Int64] = [:]
    var quarantined = 0
    var parked = 0
  }

  /// Decides a segment and commits it: the store first, then the log.
  private func commit(
    _ segment: [Incoming], _ now: Instant, _ membership: Membership, _ worker: any LogWorker,
    _ books: (any StageStore)?
  ) throws {
    var conflicts = 0
    while true {
      let decided = try decide(segment, now, books)
      if let books {
        do { try books.commit(transaction(decided), published: published(decided)) } catch {
          guard error.kind == .conflict else { throw Self.final(error) ?? error }
          conflicts += 1
          metrics.count("purchases_conflicts_total", "Batches decided again because another stage was first", label)
          guard conflicts < Self.maximumConflicts else {
            throw RunnerFailure.refused("a row is refused as a duplicate again and again: \(error.reason)")
          }
          continue
        }
        for (partition, next) in decided.next { owned[partition]?.next = next }
      }
      do {
        try worker.commit(decided.next.keys.sorted().flatMap { decided.outgoing[$0] ?? [] }, offsets: decided.next, membership: membership)
      } catch { throw Self.final(error) ?? error }
      for (partition, next) in decided.next {
        owned[partition]?.next = next
        owned[partition]?.published = next
      }
      metrics.count("purchases_records_total", "Records worked off", label, by: segment.count)
      metrics.count("purchases_quarantined_total", "Records put into quarantine", label, by: decided.quarantined)
      metrics.count("purchases_parked_total", "Records parked", label, by: decided.parked)
      return
    }
  }

  private func transaction(_ decided: Decided) -> StoreTransaction {
    StoreTransaction(
      advances: decided.next.sorted { $0.key < $1.key }.map { partition, next in
        Advance(
          partition: partition, epoch: owned[partition]?.epoch ?? 0, from: owned[partition]?.next, next: next,
          outgoing: decided.outgoing[partition] ?? [])
      },
      writes: decided.writes)
  }

  private func published(_ decided: Decided) -> [TopicPartition: Int64] {
    var published: [TopicPartition: Int64] = [:]
    for partition in decided.next.keys { published[partition] = owned[partition]?.published }
    return published
  }

  private func decide(_ segment: [Incoming], _ now: Instant, _ books: (any StageStore)?) throws -> Decided {
    let facts = WorkingSet()
    if let books {
      var round = 0
      while true {
        var missing: Set<Need> = []
        for record in segment where canDecide(record) { facts.unknown(stage.needs(record, facts), into: &missing) }
        guard !missing.isEmpty else { break }
        round += 1
        precondition(round <= Self.maximumNeedRounds, "\(stage.name.rawValue) never stops naming needs")
        do { facts.add(try books.fetch(missing), for: missing) } catch { throw Self.final(error) ?? error }
        guard stage.needsDependOnFacts else { break }
      }
    }
    var decided = Decided()
    for record in segment {
      let moment = Moment(now: now, parking: record.topic == .parked ? Parking(record.stored.record) : nil)
      let actions = canDecide(record) ? stage.decide(record, facts, moment) : [try refusal(record)]
      for action in actions {
        switch action {
        case .write(let write): facts.apply(write)
        case .stop(let reason): throw RunnerFailure.newerEvent("\(record.coordinates): \(reason)")
        case .quarantine(let reason, let alarm):
          decided.quarantined += 1
          logger.warning(
            "quarantined", [
              "stage": stage.name.rawValue, "record": record.coordinates.description, "reason": reason,
              "alarm": String(alarm),
            ])
        case .park: decided.parked += 1
        case .emit: break
        }
      }
      let partition = record.coordinates.topicPartition
      decided.outgoing[partition, default: []] += derivation.records(of: record, actions, moment: moment)
      decided.next[partition] = record.coordinates.offset + 1
    }
    decided.writes = facts.writes
    return decided
  }

  private func canDecide(_ record: Incoming) -> Bool { stage.takesEveryRecord || record.event != nil }

  /// What becomes of a record whose headers are no event of ours. Anybody may write to `received`: there it is poison and
  /// goes to quarantine. In the other topics only our stages write: a newer version stops us, anything else is an alarm.
  private func refusal(_ record: Incoming) throws -> Action {
    guard case .failure(let failure) = record.envelope else { preconditionFailure("the envelope was read") }
    let isInternal = record.topic != .received && record.topic != .parked
    if isInternal, case .newerVersion = failure {
      throw RunnerFailure.newerEvent("\(record.coordinates): \(failure)")
    }
    return .quarantine(reason: failure.description, alarm: isInternal)
  }
}

extension Parking {
  init?(ifParkedIn topics: TopicSettings, _ stored: StoredRecord) {
    guard stored.coordinates.topic == topics.name(.parked) else { return nil }
    self.init(stored.record)
  }
}
