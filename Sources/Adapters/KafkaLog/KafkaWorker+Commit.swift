import Glibc
import PurchasesContracts
import PurchasesKafka

/// Transactions: records and positions, both or neither.
extension KafkaWorker {
  /// Longest wait until an earlier transaction of our name is over and the coordinator answers.
  private static let initMilliseconds: Int32 = 30_000
  /// Longest wait for an abort. One that takes longer isn't needed: the next producer of our name aborts as well.
  private static let abortMilliseconds: Int32 = 5_000

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    try beginCommit(records, offsets: offsets, membership: membership)
    try finishCommit()
  }

  func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    precondition(begun == nil, "one commit at a time")
    if let fenced { throw fenced }
    let instance = settings.isStatic ? settings.instance : nil
    guard let member = GroupMembership(membership, group: settings.group, instance: instance), member.isJoined else {
      throw LogFailure(.stale, "the batch belongs to no membership of group \(settings.group)")
    }
    // A commit without offsets is checked by nobody but us.
    guard consumer.membership == member else {
      throw LogFailure(.stale, "the membership that the batch belongs to is over")
    }
    // Kafka checks who we are, not what is ours.
    if let foreign = offsets.keys.first(where: { !owned.contains(KafkaPartition($0)) }) {
      throw LogFailure(.stale, "\(foreign) is not this worker's any more")
    }
    for record in records { try KafkaLogProducer.check(record) }
    let producer = try readyProducer()
    _ = producer.takeFirstFailure()
    let transaction = KafkaTransaction(
      producer, records, offsets: offsets, member: member, milliseconds: transactionMilliseconds)
    begun = transaction
    committing.async { transaction.run() }
  }

  /// Also a transaction that was committed ends its producer, when a connection broke under it: librdkafka 2.8 sends a
  /// request again within the same epoch, and a broker that stood still works off both. An end that comes late would end
  /// the next transaction in its middle: an abort loses its records, and the offsets that follow are committed without
  /// them; a commit shows them before their offsets. The next producer has another epoch, and what comes late is fenced.
  func finishCommit() throws(LogFailure) {
    guard let transaction = begun else { return }
    begun = nil
    switch transaction.wait() {
    case .committed: if transaction.producer.mayHaveLateRequests { drop() }
    case .notBegun(let error): throw discard(error, began: transaction.began, otherwise: .aborted)
    case .notFilled(let error), .refused(let error):
      throw abort(transaction.producer, error, began: transaction.began)
    case .unknown(let error): throw discard(error, began: transaction.began, otherwise: .indefinite)
    }
  }

  private var transactionMilliseconds: Int64 { KafkaWorker.transactionMilliseconds(log, settings) }

  private static func transactionMilliseconds(_ log: KafkaLog, _ settings: WorkerSettings) -> Int64 {
    log.settings.number("transaction.timeout.ms") ?? settings.transactionTimeoutMilliseconds
  }

  /// Ends the transaction, and with it its producer. The abort sets readers free at once, and tells whether another process
  /// has our name.
  ///
  /// The producer never goes on: the abort may be on its way twice, see `finishCommit`.
  private func abort(_ producer: KafkaProducer, _ error: KafkaError, began: Int64) -> LogFailure {
    if error.severity == .fatal { return discard(error, began: began, otherwise: .aborted) }
    // librdkafka tells that the transaction failed; why a record did is told in its own report.
    let cause = producer.takeFirstFailure() ?? error
    do throws(KafkaError) {
      try producer.abortTransaction(milliseconds: KafkaWorker.abortMilliseconds)
    } catch {
      // No commit was asked for, so nothing can have been written: the next producer of our name ends what is open.
      return discard(error, began: began, otherwise: .aborted)
    }
    drop()
    switch KafkaFailures.kind(of: cause) {
    case .stale: return LogFailure(.stale, cause.description)
    case .refused: return LogFailure(.refused, cause.description)
    default: return LogFailure(.aborted, cause.description)
    }
  }

  /// Throws the producer away: within its epoch nothing can be told any more. A new one is made when it is needed.
  private func discard(_ error: KafkaError, began: Int64, otherwise kind: LogFailure.Kind) -> LogFailure {
    drop()
    if KafkaFailures.isOfProducer(error) {
      // After a stand-still the group knows who has our name.
      if tellsOfAnother(since: began) || stoodStill(since: began) && isFencedAsMember() { return takenOver(error) }
    }
    return LogFailure(kind, error.description)
  }

  /// Whether a fenced producer of a transaction that began then tells that another has the transactional id: the coordinator
  /// fences a producer also when its transaction ran out of time.
  private func tellsOfAnother(since began: Int64) -> Bool {
    KafkaClock.milliseconds() - began < transactionMilliseconds
  }

  /// Whether it was we who let the time run out. Where nobody answered us for as long, brokers failed, and one of them takes
  /// a join that is sent again for a second process, too: then neither producer nor member tells of another. Should there be
  /// one all the same, it is we who end it, and its supervisor's next start ends us in turn.
  private func stoodStill(since began: Int64) -> Bool {
    standStill.happened(since: began, forAtLeast: transactionMilliseconds / 2)
  }

  /// Whether another static member has our place in the group: the answer to the next heartbeat tells. Waited for before we
  /// take our transactional id again, since that would end a successor.
  private func isFencedAsMember() -> Bool {
    guard settings.isStatic else { return false }
    let deadline = KafkaClock.milliseconds() + 2 * heartbeatMilliseconds
    while KafkaClock.milliseconds() < deadline {
      if let fatal = consumer.fatalError { return fatal.code == .fencedInstance }
      usleep(10_000)
    }
    return false
  }

  /// As long ago as a successor may have come meanwhile, and we not have heard of it.
  private var hasJustStoodStill: Bool {
    settings.isStatic
      && standStill.happened(
        since: KafkaClock.milliseconds() - 2 * sessionMilliseconds, forAtLeast: StandStill.leastMilliseconds)
  }

  private func drop() {
    producer?.purge()
    producer?.close(milliseconds: 0)
    producer = nil
  }

  /// Whether another process has our name. A member that is fenced says little: a broker that lost our answer to a join
  /// takes the same join, sent again, for a second process. The transactional id tells, since a worker takes it before
  /// it joins: a transaction of ours is refused at its first step once somebody else has it.
  func isTakenOver() -> Bool {
    // Without a producer there is nothing to ask with, and to make one would end a successor.
    guard let producer, let topic = settings.topics.first else { return hasJustStoodStill }
    defer { drop() }
    let began = KafkaClock.milliseconds()
    func isTelling(_ error: KafkaError) -> Bool {
      KafkaFailures.isOfProducer(error) && (tellsOfAnother(since: began) || stoodStill(since: began))
    }
    // A member that doesn't exist: where the producer is still ours, the group refuses the offset in any case.
    let nobody = GroupMembership(group: settings.group, generation: 0, member: "nobody", instance: nil)
    do throws(KafkaError) {
      try producer.beginTransaction()
      try producer.sendOffsets(
        [KafkaPartition(topic, 0): 0], membership: nobody, milliseconds: KafkaWorker.abortMilliseconds)
    } catch {
      if isTelling(error) { return true }
    }
    do throws(KafkaError) { try producer.abortTransaction(milliseconds: KafkaWorker.abortMilliseconds) } catch {
      return isTelling(error)
    }
    return false
  }

  /// The producer, or a new one: making it ends what the last one left open, one way or the other.
  func readyProducer() throws(LogFailure) -> KafkaProducer {
    if let producer { return producer }
    // Taking the transactional id ends whoever has it. Who has just stood still hears first whether that is a successor.
    if hasJustStoodStill, isFencedAsMember(), let fatal = consumer.fatalError { throw takenOver(fatal) }
    let fresh = try KafkaWorker.makeProducer(log, settings)
    producer = fresh
    return fresh
  }

  static func makeProducer(_ log: KafkaLog, _ settings: WorkerSettings) throws(LogFailure) -> KafkaProducer {
    let milliseconds = transactionMilliseconds(log, settings)
    // A record may not be under way for longer than its transaction; the same settings serve producers that have none.
    let own = log.settings
      .withDefaults(["transaction.timeout.ms": String(milliseconds), "linger.ms": "5"])
      .capped(["message.timeout.ms", "delivery.timeout.ms"], at: milliseconds)
      // A request that is given up is sent again within the same epoch, and both may be worked off: not before the
      // transaction itself is over.
      .raised(["socket.timeout.ms"], to: milliseconds)
    do throws(KafkaError) {
      let fresh = try KafkaProducer(
        settings: own, transactionalId: "\(settings.group).\(settings.instance)", log: log.sink)
      do throws(KafkaError) {
        try fresh.initTransactions(milliseconds: KafkaWorker.initMilliseconds)
      } catch {
        fresh.close(milliseconds: 0)
        throw error
      }
      return fresh
    } catch {
      throw LogFailure(error)
    }
  }
}
