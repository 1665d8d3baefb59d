import Dispatch
import PurchasesContracts
import PurchasesKafka

/// A member of a consumer group with its transactional producer. Used by one thread.
final class KafkaWorker: LogWorker {
  let log: KafkaLog
  let settings: WorkerSettings
  var consumer: KafkaConsumer
  /// Nil after a commit of unknown outcome, until a new one has settled it.
  var producer: KafkaProducer?
  /// Under way on `committing`; until it is finished nothing else uses the producer.
  var begun: KafkaTransaction?
  let committing = DispatchQueue(label: "purchases.kafka.commit")
  /// Held from the start: what is asked of it is what was before the question.
  let standStill = StandStill.ofProcess
  /// Set when another process took our identity over: everything fails from then on.
  var fenced: LogFailure?

  var owned: Set<KafkaPartition> = []
  /// The next offset to hand out, of the partitions that `start` named.
  var positions: [KafkaPartition: Int64] = [:]
  var paused: Set<KafkaPartition> = []
  var atEnd: Set<KafkaPartition> = []
  /// A partition came to its end, and nobody has been told yet.
  private var endIsNew = false
  private var current: GroupMembership?
  var held: KafkaConsumer.Event?
  var mustAnswer = false
  /// Told as revoked, and not let go yet.
  var leaving: (partitions: Set<KafkaPartition>, lost: Bool)?

  /// At most so many bytes of records in one batch, whatever their number.
  private static let batchBytes = 32 << 20
  /// What a fetch for a patient worker waits for: some hundreds of records.
  private static let gatheredBytes = "262144"
  private static let closeMilliseconds: Int32 = 5_000
  // The heartbeats go on behind our back and tell that the process lives. That the worker itself is not stuck is told by
  // its polls; a slow store gets three sessions' time before the partitions move on.
  private static let sessionsPerPoll: Int64 = 3
  // The answer to a heartbeat tells that partitions are to be taken over: a member that leaves costs so much and little more.
  private static let longestHeartbeatMilliseconds: Int64 = 1_000
  // A third of the session, so that two heartbeats may be lost.
  private static let heartbeatsPerSession: Int64 = 3

  init(_ log: KafkaLog, _ settings: WorkerSettings) throws(LogFailure) {
    self.log = log
    self.settings = settings
    // Before anything else: what an earlier process of our name left open ends here, and that process with it. Whoever
    // has our place in the group has our transactional id by then, see `isTakenOver`.
    let producer = try KafkaWorker.makeProducer(log, settings)
    self.producer = producer
    do throws(LogFailure) {
      consumer = try KafkaWorker.join(log, settings)
    } catch {
      producer.close(milliseconds: 0)
      throw error
    }
  }

  private static func sessionMilliseconds(_ log: KafkaLog, _ settings: WorkerSettings) -> Int64 {
    log.settings.number("session.timeout.ms") ?? settings.sessionTimeoutMilliseconds
  }

  private static func heartbeatMilliseconds(_ log: KafkaLog, _ settings: WorkerSettings) -> Int64 {
    log.settings.number("heartbeat.interval.ms")
      ?? max(1, min(longestHeartbeatMilliseconds, sessionMilliseconds(log, settings) / heartbeatsPerSession))
  }

  var heartbeatMilliseconds: Int64 { KafkaWorker.heartbeatMilliseconds(log, settings) }
  var sessionMilliseconds: Int64 { KafkaWorker.sessionMilliseconds(log, settings) }

  private static func join(_ log: KafkaLog, _ settings: WorkerSettings) throws(LogFailure) -> KafkaConsumer {
    let session = sessionMilliseconds(log, settings)
    let heartbeat = heartbeatMilliseconds(log, settings)
    do throws(KafkaError) {
      let consumer = try KafkaConsumer(
        settings: log.settings.withDefaults([
          // A request that waits at the end of all partitions holds up one that was started again: keep it short.
          "fetch.wait.max.ms": "100",
          "fetch.min.bytes": settings.isPatient ? gatheredBytes : "1",
          // What is fetched ahead, for all partitions together.
          "queued.max.messages.kbytes": "32768",
          "session.timeout.ms": String(session),
          "heartbeat.interval.ms": String(heartbeat),
          "max.poll.interval.ms": String(session * sessionsPerPoll),
        ]), group: settings.group, instance: settings.isStatic ? settings.instance : nil, log: log.sink)
      try consumer.subscribe(settings.topics)
      return consumer
    } catch {
      throw LogFailure(error)
    }
  }

  func poll(max limit: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    precondition(limit > 0, "a batch holds at least one record")
    if let fenced { throw fenced }
    let deadline = KafkaClock.milliseconds() + waitMilliseconds
    while true {
      // The group waits for an answer to what it gave us, even when `start` named none of it.
      if mustAnswer { try take() }
      if let leaving, leaving.lost { try release(leaving.partitions.map { TopicPartition($0) }) }
      if let event = held {
        held = nil
        if let polled = try handle(event) { return polled }
        continue
      }
      // All that was asked for has been read: no need to sit out the wait.
      let left = endIsNew && isAtEnd ? 0 : Int32(clamping: max(0, deadline - KafkaClock.milliseconds()))
      let polled: KafkaConsumer.Polled
      do throws(KafkaError) {
        polled = try consumer.poll(records: limit, bytes: KafkaWorker.batchBytes, milliseconds: left)
      } catch {
        throw failure(error)
      }
      held = polled.event
      let records = accept(polled.records)
      // Those that were paused or moved after they were fetched have no end yet.
      for partition in polled.ends where positions[partition] != nil && !paused.contains(partition) {
        atEnd.insert(partition)
        endIsNew = true
      }
      if !records.isEmpty, let membership = current { return .records(records, membership.token) }
      if held == nil, endIsNew && isAtEnd || KafkaClock.milliseconds() >= deadline { return idle() }
    }
  }

  private var isAtEnd: Bool { positions.keys.allSatisfy { atEnd.contains($0) || paused.contains($0) } }

  private func idle() -> Polled {
    endIsNew = false
    return .idle(atEnd: Set(atEnd.map { TopicPartition($0) }))
  }

  /// Leaves out what was fetched before a partition was paused, moved or let go.
  private func accept(_ records: [FetchedRecord]) -> [StoredRecord] {
    var accepted: [StoredRecord] = []
    accepted.reserveCapacity(records.count)
    // Records of one partition come in runs: its place in the books is looked up once for each.
    var current: (partition: KafkaPartition, next: Int64?)?
    for record in records {
      if current?.partition != record.source {
        keep(current)
        current = (record.source, paused.contains(record.source) ? nil : positions[record.source])
      }
      guard let next = current?.next, record.offset >= next else { continue }
      current?.next = record.offset + 1
      if !atEnd.isEmpty { atEnd.remove(record.source) }
      accepted.append(StoredRecord(record))
    }
    keep(current)
    return accepted
  }

  private func keep(_ current: (partition: KafkaPartition, next: Int64?)?) {
    if let current, let next = current.next { positions[current.partition] = next }
  }

  private func handle(_ event: KafkaConsumer.Event) throws(LogFailure) -> Polled? {
    switch event {
    case .assigned(let partitions):
      // The generation cannot change behind our back: the next one needs our answer to a revocation or to this.
      current = consumer.membership
      owned.formUnion(partitions)
      mustAnswer = true
      return partitions.isEmpty ? nil : .assigned(partitions.map { TopicPartition($0) }.sorted())
    case .revoked(let partitions, let lost):
      if lost { forget(partitions, membership: true) }
      atEnd.subtract(partitions)
      leaving = (Set(partitions), lost)
      if partitions.isEmpty {
        try release([])
        return nil
      }
      return .revoked(partitions.map { TopicPartition($0) }.sorted(), lost: lost)
    case .failed(let error, let partition):
      return try fail(error, partition)
    }
  }

  private func fail(_ error: KafkaError, _ partition: KafkaPartition?) throws(LogFailure) -> Polled? {
    let kind = KafkaFailures.kind(of: error)
    if kind == .fenced { throw failure(error) }
    if error.severity == .fatal { return try rejoin() }
    if kind == .lost, let partition {
      let position = positions[partition] ?? 0
      if let bounds = try log.bounds([partition])[partition],
        let lost = KafkaLoss.failure(TopicPartition(partition), position, bounds)
      {
        throw lost
      }
      throw LogFailure(.lost, "\(partition), offset \(position): \(error)")
    }
    // A refused log-in may be a broker that went down in mid-handshake: worth another try, and not the end of the stage.
    if KafkaFailures.isLogIn(error.code) { throw LogFailure(.unavailable, error.description) }
    if kind == .refused { throw LogFailure(error) }
    // Brokers that come and go, a coordinator that moves, a poll that came late: librdkafka goes on by itself.
    return nil
  }

  /// What a failed call of the consumer means.
  func failure(_ error: KafkaError) -> LogFailure {
    guard KafkaFailures.kind(of: error) == .fenced || error.code == .fatal else { return LogFailure(error) }
    // What is under way is no reason to wait: whoever recovers asks the log what became of it.
    do throws(LogFailure) { try finishCommit() } catch { if error.kind == .fenced { return error } }
    guard isTakenOver() else {
      return LogFailure(
        .unavailable,
        "the group took \(settings.instance) for another member, and no other process has the name: \(error)")
    }
    return takenOver(error)
  }

  /// Another process has our name: everything fails from now on.
  func takenOver(_ error: KafkaError) -> LogFailure {
    let failure = LogFailure(
      .fenced, "another process runs as \(settings.instance) of group \(settings.group): \(error)")
    fenced = failure
    return failure
  }

  /// The consumer is beyond repair, but our identity is still ours: a new one takes its place.
  private func rejoin() throws(LogFailure) -> Polled? {
    let gone = owned
    forget(Array(gone), membership: true)
    held = nil
    mustAnswer = false
    leaving = nil
    consumer = try KafkaWorker.join(log, settings)
    return gone.isEmpty ? nil : .revoked(gone.map { TopicPartition($0) }.sorted(), lost: true)
  }

  func forget(_ partitions: [KafkaPartition], membership: Bool) {
    if membership { current = nil }
    owned.subtract(partitions)
    atEnd.subtract(partitions)
    paused.subtract(partitions)
    for partition in partitions { positions[partition] = nil }
  }

  func membership() throws(LogFailure) -> Membership {
    if let fenced { throw fenced }
    guard let current, current.isJoined else {
      throw LogFailure(.stale, "this worker is not a member of group \(settings.group) now")
    }
    return current.token
  }

  func close() {
    // What it is worth is told to nobody any more: who comes next finds out.
    do throws(LogFailure) { try finishCommit() } catch {}
    // A static member keeps its place for a restart; that is what it is static for.
    consumer.close(leaving: !settings.isStatic, milliseconds: KafkaWorker.closeMilliseconds)
    producer?.close(milliseconds: 0)
    producer = nil
    forget(Array(owned), membership: true)
    held = nil
    fenced = fenced ?? LogFailure(.stale, "the worker is closed")
  }
}

extension GroupMembership {
  /// Generation (four bytes, big-endian), then the member's id.
  var token: Membership {
    var bytes = withUnsafeBytes(of: generation.bigEndian) { Array($0) }
    bytes.append(contentsOf: member.utf8)
    return Membership(token: bytes)
  }

  init?(_ token: Membership, group: String, instance: String?) {
    guard token.token.count > 4, let member = String(validating: token.token[4...], as: UTF8.self) else { return nil }
    let generation = token.token[..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    self.init(group: group, generation: Int32(bitPattern: generation), member: member, instance: instance)
  }
}
