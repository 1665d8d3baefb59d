import PurchasesContracts
import PurchasesCore

extension StageRunner {
  /// Does what the clock brings, for the partitions that this loop owns: first asks whether anything could be due at all,
  /// and only then finds out how far the stages before have come.
  func schedule(_ worker: any LogWorker, _ books: (any StageStore)?) throws {
    guard let books, !owned.isEmpty else { return }
    let now = clock.now()
    guard try !due(books, now: now, workedOff: now).isEmpty else { return noteHorizon(now, now) }
    // What the log is still at would look like a record that waits.
    try settle(worker)
    let horizon = try workedOff(now: now)
    noteHorizon(horizon, now)
    let due = try due(books, now: now, workedOff: horizon)
    guard !due.isEmpty else { return }
    let events = due.compactMap { derivation.scheduled($0) }
    // With offsets that change nothing, since only they make the log ask whether this is still a member.
    if !events.isEmpty {
      try worker.commit(events, offsets: owned.compactMapValues(\.published), membership: worker.membership())
    }
    let writes = due.flatMap(\.writes)
    if !writes.isEmpty { try books.amend(writes, epochs: owned.mapValues(\.epoch)) }
    metrics.count("purchases_scheduled_total", "Events that the clock brought", label, by: events.count)
  }

  /// What is due waits for the stages before: where they lag, expiries do.
  private func noteHorizon(_ horizon: Instant, _ now: Instant) {
    metrics.set(
      "purchases_clock_behind_seconds",
      "How far behind the clock what is due can be decided now, because records before it wait; 0 while nothing is due",
      label, to: Double(now.milliseconds - horizon.milliseconds) / 1000)
  }

  private func due(_ books: any StageStore, now: Instant, workedOff: Instant) throws -> [Scheduled] {
    let partitions = owned.keys.sorted()
    let fetched = FetchedFacts()
    let facts = WorkingSet(over: fetched)
    var needs: Set<Need> = []
    for partition in partitions {
      facts.unknown(stage.scheduleNeeds(partition, now: now, workedOff: workedOff), into: &needs)
    }
    if !needs.isEmpty { fetched.add(try books.fetch(needs)) }
    return partitions.flatMap { stage.schedule($0, facts, now: now, workedOff: workedOff) }
  }

  /// The instant up to which this stage and all before it have done their work: now, unless a record waits somewhere on
  /// the way; then that record's time. Read in the order in which records travel, so that none slips past.
  ///
  /// A little earlier than that, since neither are timestamps in order to the millisecond: behind the record that waits
  /// may be one that is older.
  private func workedOff(now: Instant) throws -> Instant {
    var horizon = now
    for before in settings.stagesBefore {
      if let waiting = try progress.firstWaiting(group: before.group, topic: before.topic) {
        horizon = min(horizon, waiting)
      }
    }
    for topic in stage.inputs where topic != .parked {
      if let waiting = try progress.firstWaiting(group: settings.group, topic: topic) {
        horizon = min(horizon, waiting)
      }
    }
    return horizon.advanced(byMilliseconds: -RunnerSettings.settlingMilliseconds)
  }
}
