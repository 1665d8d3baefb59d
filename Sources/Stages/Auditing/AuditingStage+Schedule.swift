import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

extension AuditingStage {
  /// Its owner also does what is done once for all partitions: the summary and the watch.
  private var leading: TopicPartition { TopicPartition(settings.topics.name(.received), 0) }

  private var allPartitions: [TopicPartition] {
    Topic.audited.flatMap { topic in
      (0..<settings.topics.partitions).map { TopicPartition(settings.topics.name(topic), $0) }
    }
  }

  public func scheduleNeeds(_ partition: TopicPartition, now: Instant, workedOff: Instant) -> [Need] {
    guard partition == leading else { return [.row(TreeState.key(partition))] }
    return (allPartitions + [SummaryLog.place]).map { .row(TreeState.key($0)) } + [watchNeed(workedOff)]
  }

  public func schedule(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> [Scheduled] {
    var due: [Scheduled] = []
    if let scheduled = checkpoint(partition, facts, now: now, workedOff: workedOff) { due.append(scheduled) }
    if partition == leading {
      if let scheduled = summary(facts, now: now) { due.append(scheduled) }
      due += looks(facts, now: now, workedOff: workedOff)
    }
    return due
  }

  private func state(_ partition: TopicPartition, _ facts: any Facts) -> TreeState? {
    facts.row(TreeState.key(partition)).flatMap { TreeState($0, partition) }
  }

  /// Signs for a partition that has grown and is quiet now.
  private func checkpoint(
    _ partition: TopicPartition, _ facts: any Facts, now: Instant, workedOff: Instant
  ) -> Scheduled? {
    guard var state = state(partition, facts), state.size > state.checkpointedSize else { return nil }
    let quietFrom = state.latestAt.advanced(byMilliseconds: settings.limits.quietMilliseconds)
    // A record may carry a date in the future, and that must not put the signature off.
    guard quietFrom <= workedOff || state.latestAt > now else { return nil }
    let (event, id) = state.checkpoint(settings)
    return Scheduled(event: event, id: id, writes: [.put(state.row)], timestamp: now)
  }

  /// The log over all partitions' checkpoints.
  ///
  /// Unlike a partition's tree it can't be computed again from the records, so a head that was signed must never be
  /// replaced by another: it is kept first, and published after that, both as often as it takes.
  private func summary(_ facts: any Facts, now: Instant) -> Scheduled? {
    guard var log = SummaryLog(facts.row(TreeState.key(SummaryLog.place))) else { return nil }
    if let pending = log.pending {
      log.pending = nil
      return Scheduled(
        event: Outgoing(
          topic: .audit, key: settings.names.name, type: .auditCheckpointed, data: AuditEvent.checkpointed(pending).data
        ),
        id: AuditID.of(note: SummaryLog.text(ofNote: pending.note)), writes: [.put(log.row)], timestamp: now)
    }
    let states = allPartitions.compactMap { state($0, facts) }
    let isQuiet = states.allSatisfy { $0.size == $0.checkpointedSize }
    let isLongAgo =
      log.state.checkpointedAt.advanced(byMilliseconds: settings.limits.millisecondsPerCheckpoint) <= now
    guard isQuiet || isLongAgo, log.add(states, settings, now: now) else { return nil }
    return Scheduled(event: nil, id: "", writes: [.put(log.row)], timestamp: now)
  }

  // MARK: the watch

  private func watchNeed(_ workedOff: Instant) -> Need {
    .watch(upTo: workedOff, limit: settings.limits.rowsPerLook)
  }

  private func looks(_ facts: any Facts, now: Instant, workedOff: Instant) -> [Scheduled] {
    var found: [Scheduled] = []
    var quiet: [Write] = []
    for row in facts.rows(watchNeed(workedOff)) {
      guard let environment = row.key.values[0].text.flatMap({ Environment(rawValue: $0) }),
        let transaction = row.key.values[1].text.flatMap({ TransactionID($0) })
      else { continue }
      let subject = TransactionSubject(environment, transaction)
      let (anomalies, next) = Watched(row).judged(at: workedOff, settings.limits)
      // Another process may have merged news into the row meanwhile: then it stays, and is looked at again.
      let write = Write.exchange(Row(row.key, next.values), was: row.values)
      guard !anomalies.isEmpty else {
        quiet.append(write)
        continue
      }
      for (index, finding) in anomalies.enumerated() {
        let since = finding.since.clamped
        let anomaly = AuditAnomaly(
          kind: finding.kind, subject: subject, since: since,
          ageMilliseconds: max(0, workedOff.clamped.milliseconds - since.milliseconds),
          explanation: finding.kind.explanation)
        found.append(
          Scheduled(
            event: Outgoing(
              topic: .audit, key: leading.description, type: .auditAnomalyFound, subject: subject.text,
              data: AuditEvent.anomaly(anomaly).data),
            id: AuditID.of(finding.kind, subject), writes: index == anomalies.count - 1 ? [write] : [], timestamp: now))
      }
    }
    if !quiet.isEmpty { found.append(Scheduled(event: nil, id: "", writes: quiet, timestamp: now)) }
    return found
  }
}

extension Instant {
  /// The nearest time from 1970 to 9999: a foreign producer's record may carry any number, and what is said of it must be
  /// readable.
  var clamped: Instant { Instant(milliseconds: min(max(milliseconds, 0), 253_402_300_799_999)) }
}

extension AuditAnomaly.Kind {
  var explanation: String {
    switch self {
    case .purchasedNeverGranted: "a client reported this purchase; it was neither granted nor rejected since"
    case .grantedNeverFinished: "the client may finish this transaction and has not said that it did"
    case .finishedWithoutGrant: "the client finished this transaction without a permit"
    case .unreadableInInternalTopic: "a record that only stages of this pipeline may write can't be read"
    case .contradictingNotification: "another body came under the UUID of an earlier notification"
    }
  }
}
