import PurchasesContracts
import PurchasesCore

/// A member of a group with its transactional producer, on the simulated brokers.
final class SimulatedWorker: LogWorker {
  private let broker: SimulatedBroker
  private let link: SimulatedLink
  private let settings: WorkerSettings
  private let group: SimulatedGroup
  private let serial: Int
  private let transactionalID: String
  /// Nil after a commit of unknown outcome, until a new one has taken its place.
  private var epoch: Int?
  private var member: Int
  /// The generation that this member knows itself to be in.
  private var generation: Int?
  /// The generation whose assignment was handed on.
  private var synced = -1
  private var owned: Set<TopicPartition> = []
  private var positions: [TopicPartition: Int64] = [:]
  private var paused: Set<TopicPartition> = []
  private var leaving: (partitions: Set<TopicPartition>, isLost: Bool)?
  /// Given by the group, and not told yet.
  private var coming: [TopicPartition] = []
  private var begun: SimulatedTransaction?
  private var fenced: LogFailure?
  private var isClosed = false
  private let heartbeat = SimulatedGroup.Heartbeat()
  private var turn = 0

  /// How long a question to the log waits for its answer.
  static let patience: Int64 = 1_500

  init(_ broker: SimulatedBroker, _ link: SimulatedLink, _ settings: WorkerSettings) throws(LogFailure) {
    for topic in settings.topics { _ = try broker.topic(topic) }
    self.broker = broker
    self.link = link
    self.settings = settings
    group = broker.group(settings.group)
    serial = broker.newWorker()
    transactionalID = "\(settings.group).\(settings.instance)"
    member = 0
    // The name first: whoever has our place in the group has our transactional id by then.
    epoch = try Self.takeName(transactionalID, serial, broker, link)
    member = group.join(settings, link: link, heartbeat: heartbeat)
  }

  deinit { heartbeat.beats = false }

  private static func takeName(
    _ id: String, _ serial: Int, _ broker: SimulatedBroker, _ link: SimulatedLink
  ) throws(LogFailure) -> Int {
    var epoch: Int?
    let isTaken = link.wait(patience) {
      guard !broker.isOut else { return false }
      if epoch == nil { epoch = broker.take(id, for: serial) }
      return epoch != nil
    }
    guard isTaken, let epoch else { throw LogFailure(.unavailable, "no answer about the producer \(id)") }
    return epoch
  }

  private var isNameTaken: Bool { broker.producers[transactionalID].map { $0.worker != serial } ?? false }

  private func checkIdentity() throws(LogFailure) {
    if let fenced { throw fenced }
    if isClosed { throw LogFailure(.stale, "the worker is closed") }
    guard isNameTaken else { return }
    let failure = LogFailure(.fenced, "another process runs as \(settings.instance)")
    fenced = failure
    throw failure
  }

  // MARK: polling

  func poll(max: Int, waitMilliseconds: Int64) throws(LogFailure) -> Polled {
    try link.log(.poll) { () throws(LogFailure) in
      if let fenced { throw fenced }
      if settings.isStatic { try checkIdentity() }
      let deadline = broker.world.now + waitMilliseconds
      if let leaving, leaving.isLost { letGo(leaving.partitions) }
      while true {
        if !broker.isOut {
          group.heard(member)
          // Who stood still hears a little later that it was put out; until then it hands out what it had fetched.
          let isAware = link.process == nil || group.member(member) != nil || broker.world.oneIn(2)
          if isAware, let change = follow() { return change }
          if let generation {
            let records = fetch(max)
            if !records.isEmpty { return .records(records, token(generation)) }
          }
        }
        let left = deadline - broker.world.now
        guard left > 0 else { break }
        let seen = broker.changes
        _ = link.wait(left) { [broker] in broker.changes != seen && !broker.isOut }
        if link.isGone { break }
      }
      var atEnd: Set<TopicPartition> = []
      for (partition, next) in positions {
        if try broker.read(partition, from: next, max: 1).isEmpty { atEnd.insert(partition) }
      }
      return .idle(atEnd: atEnd)
    }
  }

  /// What the group wants of this member; nil when there is nothing to tell.
  private func follow() -> Polled? {
    guard leaving == nil else { return nil }
    while true {
      if !coming.isEmpty {
        defer { coming = [] }
        return .assigned(coming)
      }
      guard let known = group.member(member) else {
        generation = nil
        synced = -1
        let lost = owned
        if lost.isEmpty {
          member = group.join(settings, link: link, heartbeat: heartbeat)
          continue
        }
        forget(lost)
        leaving = (lost, true)
        return .revoked(lost.sorted(), lost: true)
      }
      if group.isGathering {
        guard !known.hasJoined else { return nil }
        if !broker.isCooperative, !owned.isEmpty {
          leaving = (owned, false)
          return .revoked(owned.sorted(), lost: false)
        }
        group.rejoin(member, claims: owned)
        if group.isGathering { return nil }
        continue
      }
      guard synced < group.generation else { return nil }
      synced = group.generation
      generation = synced
      let gone = owned.subtracting(known.share)
      coming = known.share.subtracting(owned).sorted()
      owned.formUnion(known.share)
      if !gone.isEmpty {
        leaving = (gone, false)
        return .revoked(gone.sorted(), lost: false)
      }
      if coming.isEmpty { return nil }
    }
  }

  private func fetch(_ max: Int) -> [StoredRecord] {
    let readable = positions.keys.filter { !paused.contains($0) && leaving?.partitions.contains($0) != true }.sorted()
    guard !readable.isEmpty else { return [] }
    var records: [StoredRecord] = []
    turn += 1
    // How much comes with one poll is the network's affair.
    let limit = link.process == nil ? max : min(max, broker.world.dice(1...8))
    for place in readable.indices {
      let partition = readable[(place + turn) % readable.count]
      guard let next = positions[partition], records.count < limit else { continue }
      let read = (try? broker.read(partition, from: next, max: limit - records.count)) ?? []
      if let last = read.last { positions[partition] = last.coordinates.offset + 1 }
      records += read
    }
    return records
  }

  private func forget(_ partitions: Set<TopicPartition>) {
    owned.subtract(partitions)
    paused.subtract(partitions)
    for partition in partitions { positions[partition] = nil }
  }

  // MARK: the assignment

  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    try link.log(.committed) { () throws(LogFailure) in
      try broker.checkReachable()
      // A commit of ours of unknown outcome is settled by the new producer, and only then is the answer final.
      try readyProducer()
      let isStable = link.wait(Self.patience) { [broker, group] in
        !broker.isOut && (!group.isUnstable(partitions) || broker.bug == .logAnswersUnstableOffsets)
      }
      guard isStable else { throw LogFailure(.unavailable, "the offsets are not stable") }
      // Who is put out may ask, too; what counts is who begins there.
      if let generation, group.accepts(member: member, generation: generation, partitions: partitions) {
        broker.isRecovering(partitions.map { .init(group: group.name, partition: $0) }, serial)
      }
      var offsets: [TopicPartition: Int64?] = [:]
      for partition in partitions {
        var offset = group.offsets[partition]
        if broker.bug == .workerSkipsRecovery { offset = broker.positionInStore(partition) ?? offset }
        offsets.updateValue(offset, forKey: partition)
      }
      return offsets
    }
  }

  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) {
    try link.log(.start) { () throws(LogFailure) in
      if let fenced { throw fenced }
      for (partition, offset) in offsets {
        guard owned.contains(partition) else { throw LogFailure(.stale, "\(partition) is not this worker's") }
        guard offset >= 0, try offset <= broker.stableEnd(partition) else {
          throw LogFailure(.lost, "\(partition): offset \(offset) is not there")
        }
      }
      for (partition, offset) in offsets {
        if broker.bug != .workerIgnoresStart || positions[partition] == nil { positions[partition] = offset }
        paused.remove(partition)
      }
    }
  }

  func pause(_ partitions: [TopicPartition]) throws(LogFailure) {
    try link.log(.hold) { () throws(LogFailure) in paused.formUnion(partitions.filter { positions[$0] != nil }) }
  }

  func release(_ partitions: [TopicPartition]) throws(LogFailure) {
    try link.log(.release) { () throws(LogFailure) in letGo(Set(partitions)) }
  }

  private func letGo(_ partitions: Set<TopicPartition>) {
    guard let gone = leaving, gone.partitions.isSubset(of: partitions) else { return }
    leaving = nil
    forget(gone.partitions)
    guard !gone.isLost else { return }
    // A member that gave away only some of what it has makes the group come together once more.
    if !broker.isCooperative { generation = nil } else if !group.isGathering { group.gather() }
  }

  // MARK: committing

  private func token(_ generation: Int) -> Membership { Membership(token: Array("\(generation)/\(member)".utf8)) }

  private static func generation(_ membership: Membership, of member: Int) -> Int? {
    let parts = String(decoding: membership.token, as: UTF8.self).split(separator: "/")
    guard parts.count == 2, Int(parts[1]) == member else { return nil }
    return Int(parts[0])
  }

  func membership() throws(LogFailure) -> Membership {
    try link.log(.membership) { () throws(LogFailure) in
      if let fenced { throw fenced }
      guard let generation else { throw LogFailure(.stale, "not a member of \(settings.group) now") }
      return token(generation)
    }
  }

  private func readyProducer() throws(LogFailure) {
    try checkIdentity()
    if epoch == nil { epoch = try Self.takeName(transactionalID, serial, broker, link) }
  }

  func commit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    try beginCommit(records, offsets: offsets, membership: membership)
    try finishCommit()
  }

  func beginCommit(
    _ records: [ProducedRecord], offsets: [TopicPartition: Int64], membership: Membership
  ) throws(LogFailure) {
    do throws(LogFailure) {
      try link.log(.begin) { () throws(LogFailure) in try begin(records, offsets, membership) }
    } catch {
      giveUp()
      throw error
    }
  }

  private func begin(
    _ records: [ProducedRecord], _ offsets: [TopicPartition: Int64], _ membership: Membership
  ) throws(LogFailure) {
    precondition(begun == nil, "one commit at a time")
    try checkIdentity()
    learn()
    guard let present = generation, let generation = Self.generation(membership, of: member),
      generation == present || broker.isCooperative
    else { throw LogFailure(.stale, "the membership that the batch belongs to is over") }
    if let foreign = offsets.keys.sorted().first(where: { !owned.contains($0) }),
      broker.bug != .logIgnoresMembership
    {
      throw LogFailure(.stale, "\(foreign) is not this worker's any more")
    }
    var placed: [(TopicPartition, Record)] = []
    for produced in records { placed.append((try broker.place(produced), produced.record)) }
    try readyProducer()
    begun = SimulatedTransaction(
      id: transactionalID, epoch: epoch ?? 0, worker: serial, group: group, member: member, generation: generation,
      records: placed, offsets: offsets, milliseconds: settings.transactionTimeoutMilliseconds, link: link,
      broker: broker)
  }

  /// What heartbeats have told by now. A process that stood still hears of it a little later.
  private func learn() {
    if link.process != nil, broker.world.oneIn(2) { return }
    group.expire()
    let isBehind = synced < group.generation && !group.isGathering && !broker.isCooperative
    if group.member(member) == nil || isBehind { generation = nil }
  }

  func finishCommit() throws(LogFailure) {
    guard begun != nil else { return }
    do throws(LogFailure) {
      try link.finish { fault throws(LogFailure) in try finish(fault) }
    } catch {
      giveUp()
      throw error
    }
  }

  /// Whatever became of a commit that failed, it is under way no more: its producer is thrown away, as the real one's.
  private func giveUp() {
    guard begun != nil else { return }
    begun = nil
    epoch = nil
  }

  private func finish(_ fault: SimulatedFault.OfCommit?) throws(LogFailure) {
    guard let transaction = begun else { return }
    begun = nil
    switch fault {
    case .aborted:
      transaction.abort()
      epoch = nil
      throw LogFailure(.aborted, "the log gave the transaction up")
    case .endLost, .endLate:
      transaction.isEndLost = fault == .endLost
      // Late is in the middle of the next transaction, or when all is over.
      let latest = broker.world.oneIn(2) ? 3 * broker.latency : 2 * settings.transactionTimeoutMilliseconds
      transaction.endDelay = broker.world.dice(0...latest)
      // It is given up when the request for the end is on its way.
      _ = link.wait(settings.transactionTimeoutMilliseconds) { transaction.mayBeDecided || transaction.outcome != nil }
      if link.isGone { throw LogFailure(.unavailable, "this process is no more") }
      if transaction.outcome == nil, transaction.mayBeDecided { return try unknown() }
    case .answerLost, nil: break
    }
    let left = transaction.began + settings.transactionTimeoutMilliseconds - broker.world.now
    // Where nothing is delayed, whoever looks next finds it all done.
    _ = link.wait(max(1, left)) { [broker] in
      transaction.outcome != nil && (broker.latency > 0 || transaction.isOver)
    }
    if link.isGone { throw LogFailure(.unavailable, "this process is no more") }
    switch transaction.outcome {
    case .committed:
      if fault == .answerLost { return try unknown() }
    case .stale:
      epoch = nil
      throw LogFailure(.stale, "the group does not know this member in this generation")
    case .refused:
      epoch = nil
      throw LogFailure(.aborted, "the transaction is over")
    case .fenced:
      epoch = nil
      try checkIdentity()
      if transaction.mayBeDecided { return try unknown() }
      throw LogFailure(.aborted, "the transaction ran out of time")
    case nil:
      if transaction.mayBeDecided { return try unknown() }
      transaction.abort()
      epoch = nil
      throw LogFailure(.aborted, "the transaction ran out of time")
    }
  }

  private func unknown() throws(LogFailure) {
    epoch = nil
    if broker.bug == .workerTakesUnknownForCommitted { return }
    throw LogFailure(.indefinite, "it can't be told whether the commit took effect")
  }

  func close() {
    guard !isClosed else { return }
    do throws(LogFailure) {
      try finishCommit()
    } catch {}
    do throws(LogFailure) {
      try link.log(.close) { () throws(LogFailure) in
        isClosed = true
        heartbeat.beats = false
        if !broker.isOut { group.leave(member) }
      }
    } catch {}
  }
}
