import PurchasesContracts
import PurchasesCore

extension StageRunner {
  /// Two stages that insert the same row at once settle it within a few rounds; more of them means a mistake of ours.
  static let maximumConflicts = 20

  /// Works on what a poll brought. Partitions that this loop no longer owns, records that it has done already and parked
  /// records whose time has not come are left out.
  func work(
    _ records: [StoredRecord], _ membership: Membership, _ worker: any LogWorker, _ books: (any StageStore)?
  ) throws {
    let watch = Stopwatch()
    let now = clock.now()
    let due = try inHand(records, now, worker)
    if stage.decidesRuns {
      if !due.isEmpty {
        let runs = runs(of: due)
        try commit(due.count, membership, worker, books) { try self.decide(runs, now, books) }
      }
    } else {
      for segment in segments(of: due) {
        try commit(segment.count, membership, worker, books) { try self.decide(segment, now, books) }
      }
    }
    metrics.observe(
      "purchases_batch_seconds", "Time from poll until the log's transaction of a batch begins", label, watch.seconds)
    metrics.observe("purchases_batch_records", "Records per batch", label, Double(records.count))
  }

  private func inHand(_ records: [StoredRecord], _ now: Instant, _ worker: any LogWorker) throws -> [StoredRecord] {
    var due: [StoredRecord] = []
    due.reserveCapacity(records.count)
    let parked = stage.takesEveryRecord ? nil : settings.topics.name(.parked)
    var cut: Set<TopicPartition> = []
    // Records of one partition come in runs: what is known of it is looked up once for each.
    var current: (partition: TopicPartition, next: Int64?)?
    for stored in records {
      let partition = stored.coordinates.topicPartition
      if current?.partition != partition { current = (partition, owned[partition].map { $0.next ?? 0 }) }
      guard let next = current?.next, stored.coordinates.offset >= next, !cut.contains(partition) else { continue }
      if partition.topic == parked, let parking = Parking(stored.record), parking.notBefore > now {
        cut.insert(partition)
        waiting[partition] = (stored.coordinates.offset, parking.notBefore)
        try worker.pause([partition])
        continue
      }
      due.append(stored)
    }
    return due
  }

  /// Parts of a batch that are committed one after the other. A record whose needs ask for everything before it in its
  /// partition to be in the store begins the partition's next part; what other partitions have stays together.
  private func segments(of records: [StoredRecord]) -> [[Incoming]] {
    let reader = RecordReader(stage, settings.topics)
    var segments: [[Incoming]] = []
    var places: [TopicPartition: Int] = [:]
    // Records of one partition come in runs: its place is looked up once for each.
    var current: (partition: TopicPartition, place: Int?)?
    for incoming in Cores.map(records, { reader.read($0) }) {
      let partition = incoming.coordinates.topicPartition
      if current?.partition != partition {
        if let last = current { places[last.partition] = last.place }
        current = (partition, places[partition])
      }
      var place = current?.place ?? 0
      if current?.place != nil, stage.beginsBatch(incoming) { place += 1 }
      current?.place = place
      if place == segments.count {
        segments.append([])
        if place == 0 { segments[0].reserveCapacity(records.count) }
      }
      segments[place].append(incoming)
    }
    return segments
  }

  private func runs(of records: [StoredRecord]) -> [Run] {
    var places: [TopicPartition: Int] = [:]
    var runs: [(partition: TopicPartition, records: [StoredRecord])] = []
    var place = 0
    for stored in records {
      let partition = stored.coordinates.topicPartition
      if place >= runs.count || runs[place].partition != partition {
        place = places[partition] ?? runs.count
        if place == runs.count {
          places[partition] = place
          runs.append((partition, []))
        }
      }
      runs[place].records.append(stored)
    }
    let reader = RecordReader(stage, settings.topics)
    return runs.map { Run(topic: reader.topic($0.partition.topic), partition: $0.partition, records: $0.records) }
  }

  private struct BatchOutcome {
    var writes: [Write] = []
    var outgoing: [TopicPartition: [ProducedRecord]] = [:]
    var next: [TopicPartition: Int64] = [:]
    var quarantined = 0
    var parked = 0
    var dueAt: Instant?
  }

  /// Decides and commits: the store first, then the log. The log is not waited for: the next batch is read and decided
  /// meanwhile, and `settle` comes before anything else of it.
  private func commit(
    _ count: Int, _ membership: Membership, _ worker: any LogWorker, _ books: (any StageStore)?,
    decide: () throws -> BatchOutcome
  ) throws {
    var conflicts = 0
    while true {
      let outcome = try decide()
      CrashPoint.decided.reach()
      try settle(worker)
      if let books {
        do throws(StoreFailure) { try books.commit(transaction(outcome), published: published(outcome)) } catch {
          guard error.kind == .conflict else { throw error }
          conflicts += 1
          metrics.count("purchases_conflicts_total", "Batches decided again because another stage was first", label)
          guard conflicts < Self.maximumConflicts else {
            throw RunnerFailure.refused("a row is refused as a duplicate again and again: \(error.reason)")
          }
          continue
        }
      }
      CrashPoint.storeCommitted.reach()
      for (partition, next) in outcome.next { owned[partition]?.next = next }
      let outgoing = outcome.next.keys.sorted().flatMap { outcome.outgoing[$0] ?? [] }
      try worker.beginCommit(outgoing, offsets: outcome.next, membership: membership)
      unsettled = Unsettled(
        next: outcome.next, records: count, quarantined: outcome.quarantined, parked: outcome.parked,
        dueAt: outcome.dueAt)
      CrashPoint.logBegun.reach()
      return
    }
  }

  /// Waits until the log has the last batch. A failure drops whatever came after it, and recovery begins at what was
  /// committed.
  func settle(_ worker: any LogWorker) throws(LogFailure) {
    guard let batch = unsettled else { return }
    unsettled = nil
    try worker.finishCommit()
    CrashPoint.logCommitted.reach()
    for (partition, next) in batch.next { owned[partition]?.published = next }
    metrics.count("purchases_records_total", "Records worked off", label, by: batch.records)
    metrics.count("purchases_quarantined_total", "Records put into quarantine", label, by: batch.quarantined)
    metrics.count("purchases_parked_total", "Records parked", label, by: batch.parked)
    guard let due = batch.dueAt else { return }
    metrics.observe(
      "purchases_expiry_seconds", "From the instant at which access ends to the event that says so", label,
      Double(max(0, clock.now().milliseconds - due.milliseconds)) / 1000)
  }

  private func transaction(_ outcome: BatchOutcome) -> StoreTransaction {
    StoreTransaction(
      advances: outcome.next.sorted { $0.key < $1.key }.map { partition, next in
        Advance(
          partition: partition, epoch: owned[partition]?.epoch ?? 0, from: owned[partition]?.next, next: next,
          outgoing: outcome.outgoing[partition] ?? [])
      },
      writes: outcome.writes)
  }

  private func published(_ outcome: BatchOutcome) -> [TopicPartition: Int64] {
    var published: [TopicPartition: Int64] = [:]
    for partition in outcome.next.keys { published[partition] = owned[partition]?.published }
    return published
  }

  private func decide(_ segment: [Incoming], _ now: Instant, _ books: (any StageStore)?) throws -> BatchOutcome {
    let stage = stage
    let decided: [(record: Incoming, actions: [Action]?)]
    var writes: [Write] = []
    if stage.hasState {
      let lanes = try Lane.lanes(
        of: segment, partition: \.coordinates.topicPartition, count: { _ in 1 },
        needsDependOnFacts: stage.needsDependOnFacts,
        needs: { record, facts in Self.canDecide(record, stage) ? stage.needs(record, facts) : [] },
        fetch: { try books?.fetch($0) ?? Fetched() })
      decided = Cores.map(lanes, piece: 1) { lane in
        lane.works.map { record -> (Incoming, [Action]?) in
          guard Self.canDecide(record, stage) else { return (record, nil) }
          let actions = stage.decide(record, lane.facts, Self.moment(of: record, now))
          for case .write(let write) in actions { lane.facts.apply(write) }
          return (record, actions)
        }
      }.flatMap { $0 }
      writes = lanes.flatMap(\.facts.writes)
    } else {
      let answers = answers(for: segment, now)
      // Without state no decision depends on another one.
      decided = Cores.map(segment) { record in
        guard Self.canDecide(record, stage) else { return (record, nil) }
        return (record, stage.decide(record, WorkingSet(answers: answers), Self.moment(of: record, now)))
      }
    }
    var outcome = try outcome(
      of: decided.map { record, actions in
        Decision(record: record, actions: try actions ?? [Self.refusal(record)], moment: Self.moment(of: record, now))
      })
    for record in segment { outcome.next[record.coordinates.topicPartition] = record.coordinates.offset + 1 }
    outcome.writes = writes
    outcome.dueAt = segment.lazy.compactMap { stage.dueSince($0) }.min()
    return outcome
  }

  /// What Apple says about a batch. Nothing of it is locked or open meanwhile, in no log and no store; the batch before it may
  /// still be committing, on a thread of its own.
  private func answers(for segment: [Incoming], _ now: Instant) -> [AppStoreQuestion: AppStoreAnswer] {
    guard let appStore else { return [:] }
    let stage = stage
    let asked = Cores.map(segment) { record in
      Self.canDecide(record, stage) ? stage.questions(record, Self.moment(of: record, now)) : []
    }
    let questions = Set(asked.joined())
    return questions.isEmpty ? [:] : appStore.answers(to: Array(questions))
  }

  private static func moment(of record: Incoming, _ now: Instant) -> Moment {
    Moment(now: now, parking: record.topic == .parked ? Parking(record.stored.record) : nil)
  }

  private func decide(_ runs: [Run], _ now: Instant, _ books: (any StageStore)?) throws -> BatchOutcome {
    let stage = stage
    let lanes = try Lane.lanes(
      of: runs, partition: \.partition, count: { $0.records.count }, needsDependOnFacts: stage.needsDependOnFacts,
      needs: { run, facts in stage.needs(run: run, facts) }, fetch: { try books?.fetch($0) ?? Fetched() })
    let reader = RecordReader(stage, settings.topics)
    let moment = Moment(now: now)
    let decisions = Cores.map(lanes, piece: 1) { lane in
      var decisions: [Decision] = []
      for run in lane.works {
        for decided in stage.decide(run: run, lane.facts, moment) {
          for case .write(let write) in decided.actions { lane.facts.apply(write) }
          // Only what is published names its record.
          guard decided.actions.contains(where: { if case .write = $0 { false } else { true } }) else { continue }
          decisions.append(
            Decision(record: reader.read(run.records[decided.record]), actions: decided.actions, moment: moment))
        }
      }
      return decisions
    }
    var outcome = try outcome(of: decisions.flatMap { $0 })
    for run in runs {
      if let last = run.records.last { outcome.next[run.partition] = last.coordinates.offset + 1 }
    }
    outcome.writes = lanes.flatMap(\.facts.writes)
    return outcome
  }

  /// What a record leads to.
  private struct Decision: Sendable {
    let record: Incoming
    let actions: [Action]
    let moment: Moment
  }

  /// The message of the log about a record that was put into quarantine.
  public static let quarantined = "quarantined"

  /// All that is to be published, in the order of the records.
  private func outcome(of decisions: [Decision]) throws -> BatchOutcome {
    var outcome = BatchOutcome()
    for decision in decisions {
      for action in decision.actions {
        switch action {
        case .stop(let reason): throw RunnerFailure.newerEvent("\(decision.record.coordinates): \(reason)")
        case .quarantine(let reason, let alarm):
          outcome.quarantined += 1
          // With an alarm it is nothing that a deployment has on an ordinary day.
          logger.log(
            alarm == nil ? .warning : .error, Self.quarantined,
            [
              "stage": stage.name.rawValue, "record": decision.record.coordinates.description, "reason": reason,
              "alarm": alarm?.rawValue ?? "none",
            ])
        case .park: outcome.parked += 1
        case .emit, .write: break
        }
      }
    }
    let derivation = derivation
    let derived = Cores.map(decisions) { derivation.records(of: $0.record, $0.actions, moment: $0.moment) }
    for (decision, records) in zip(decisions, derived) where !records.isEmpty {
      outcome.outgoing[decision.record.coordinates.topicPartition, default: []] += records
    }
    return outcome
  }

  private static func canDecide(_ record: Incoming, _ stage: any Stage) -> Bool {
    stage.takesEveryRecord || record.event != nil
  }

  /// What becomes of a record whose headers are no event of ours. Anybody may write to `received`: there it is poison and
  /// goes to quarantine. In the other topics only our stages write: a newer version stops us, anything else is an alarm.
  private static func refusal(_ record: Incoming) throws -> Action {
    guard case .failure(let failure) = record.envelope else { preconditionFailure("the envelope was read") }
    let isInternal = record.topic != .received && record.topic != .parked
    if isInternal, case .newerVersion = failure {
      throw RunnerFailure.newerEvent("\(record.coordinates): \(failure)")
    }
    return .quarantine(reason: failure.description, alarm: isInternal ? .unreadable : nil)
  }
}

/// Reads a record for a stage: a plain function, so that a batch can be read on all cores.
private struct RecordReader: Sendable {
  private let stage: any Stage
  private let topics: [String: Topic]

  init(_ stage: any Stage, _ settings: TopicSettings) {
    self.stage = stage
    topics = Dictionary(uniqueKeysWithValues: Topic.allCases.map { (settings.name($0), $0) })
  }

  func topic(_ name: String) -> Topic { topics[name] ?? stage.inputs[0] }

  func read(_ stored: StoredRecord) -> Incoming {
    let envelope: Result<Envelope, EnvelopeFailure>
    do throws(EnvelopeFailure) { envelope = .success(try Envelope(reading: stored.record)) } catch {
      envelope = .failure(error)
    }
    return Incoming(stored: stored, topic: topic(stored.coordinates.topic), envelope: envelope).read(by: stage)
  }
}
