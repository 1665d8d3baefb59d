import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// Reads every record of every topic, as it is: builds one Merkle tree per partition, signs its heads, and watches that
/// what was bought is granted and finished.
public struct AuditingStage: Stage {
  let settings: AuditSettings

  public init(_ settings: AuditSettings) { self.settings = settings }

  public var name: StageName { .auditing }
  public var inputs: [Topic] { Topic.audited }
  public var takesEveryRecord: Bool { true }
  public var decidesRuns: Bool { true }
  public var isPatient: Bool { true }
  public var needsDependOnFacts: Bool { true }

  /// A run of one; the runner hands whole runs in.
  public func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let run = Run(topic: record.topic, partition: record.coordinates.topicPartition, records: [record.stored])
    return decide(run: run, facts, moment).flatMap(\.actions)
  }

  public func needs(_ record: Incoming, _ facts: any Facts) -> [Need] {
    needs(run: Run(topic: record.topic, partition: record.coordinates.topicPartition, records: []), facts)
  }

  /// The tree's row; once that is known, the tile that its last leaves are in.
  public func needs(run: Run, _ facts: any Facts) -> [Need] {
    let tree = TreeState.key(run.partition)
    guard let size = facts.row(tree)?["size"].integer, size % LeafTile.width != 0 else { return [.row(tree)] }
    return [.row(tree), .row(LeafTile.key(run.partition, index: size / LeafTile.width))]
  }

  public func decide(run: Run, _ facts: any Facts, _ moment: Moment) -> [Decided] {
    guard var growth = TreeGrowth(run.partition, facts) else {
      return [Decided(record: 0, actions: [.stop(reason: "\(run.partition): \(TreeGrowth.damage)")])]
    }
    var decided: [Decided] = []
    let last = run.records.count - 1
    for (index, stored) in run.records.enumerated() {
      growth.append(stored)
      var actions: [Action] = []
      if let signal = WatchSignal.read(stored.record, of: run.topic) {
        let told = Watched(signal.signal, at: stored.record.timestamp, settings.limits)
        actions.append(.write(.merge(Row(Watched.key(signal.subject), told.values))))
      }
      if run.topic == .quarantine, let event = alarm(stored) { actions.append(.emit(event)) }
      if growth.isDue(settings.limits) {
        actions.append(.emit(growth.checkpoint(settings)))
      }
      if index == last { actions += growth.writes.map { .write($0) } }
      if !actions.isEmpty { decided.append(Decided(record: index, actions: actions)) }
    }
    return decided
  }

  /// What must never happen: our own stages wrote what our own stages can't read, or one notification says two things.
  private func alarm(_ stored: StoredRecord) -> Outgoing? {
    guard let mark = QuarantineMark(stored.record), let alarm = mark.alarm else { return nil }
    let kind: AuditAnomaly.Kind =
      switch alarm {
      case .unreadable: .unreadableInInternalTopic
      case .contradiction: .contradictingNotification
      }
    let anomaly = AuditAnomaly(
      kind: kind, coordinates: mark.origin, since: stored.record.timestamp.clamped, ageMilliseconds: 0,
      explanation: "stage \(mark.stage): \(kind.explanation)")
    return Outgoing(
      topic: .audit, key: stored.coordinates.topicPartition.description, type: .auditAnomalyFound,
      data: AuditEvent.anomaly(anomaly).data)
  }
}
