import PurchasesContracts
import PurchasesCore

/// The brokers of a simulated log: partitions, transactions and groups, with Kafka's rules.
///
/// `@unchecked Sendable`: all use of it goes through a link, and so belongs to whoever is alone with the world.
final class SimulatedBroker: @unchecked Sendable {
  struct Slot {
    /// Nil for the mark that ends a transaction, which takes an offset as in Kafka.
    let record: Record?
    let transaction: SimulatedTransaction?
  }

  final class Partition {
    var slots: [Slot] = []
    /// The first offset that a read-committed reader may not see yet.
    var stable = 0
  }

  struct TopicState {
    let spec: TopicSpec
    let partitions: [Partition]
    var nextUnkeyed: Int32 = 0
  }

  let world: SimulatedWorld
  let bug: PlantedBug?
  /// Whether members keep what they have while a group comes together anew.
  let isCooperative: Bool
  /// Longest time of a request or of a mark on its way.
  let latency: Int64
  private(set) var topics: [String: TopicState] = [:]
  private(set) var groups: [String: SimulatedGroup] = [:]
  /// By transactional id: the epoch of its newest producer, and whose that is.
  private(set) var producers: [String: (epoch: Int, worker: Int)] = [:]
  private(set) var open: [SimulatedTransaction] = []
  private var lastWorker = 0
  var outageUntil: Int64 = 0
  /// Who read a partition's committed offset last, to begin there.
  private var recovered: [SimulatedGroup.Share: Int] = [:]
  /// Counts what changed, for who waits.
  private(set) var changes = 0
  /// For the bug that needs it.
  var positionInStore: (TopicPartition) -> Int64? = { _ in nil }

  init(world: SimulatedWorld, bug: PlantedBug? = nil, isCooperative: Bool = false, latency: Int64 = 0) {
    self.world = world
    self.bug = bug
    self.isCooperative = isCooperative
    self.latency = latency
  }

  var isOut: Bool { outageUntil > world.now }

  func checkReachable() throws(LogFailure) {
    if isOut { throw LogFailure(.unavailable, "no broker answers") }
  }

  func delay() -> Int64 { latency == 0 ? 0 : world.dice(0...latency) }

  // MARK: topics

  func ensure(_ specs: [TopicSpec]) throws(LogFailure) {
    for spec in specs {
      if let known = topics[spec.name] {
        guard known.partitions.count == Int(spec.partitions) else {
          throw LogFailure(.refused, "topic \(spec.name) has \(known.partitions.count) partitions")
        }
      } else {
        topics[spec.name] = TopicState(spec: spec, partitions: (0..<spec.partitions).map { _ in Partition() })
      }
    }
  }

  func topic(_ name: String) throws(LogFailure) -> TopicState {
    guard let topic = topics[name] else { throw LogFailure(.refused, "unknown topic \(name)") }
    return topic
  }

  func partition(_ place: TopicPartition) throws(LogFailure) -> Partition {
    let topic = try topic(place.topic)
    guard topic.partitions.indices.contains(Int(place.partition)) else {
      throw LogFailure(.refused, "\(place) does not exist")
    }
    return topic.partitions[Int(place.partition)]
  }

  /// Where a record goes.
  func place(_ produced: ProducedRecord) throws(LogFailure) -> TopicPartition {
    let topic = try topic(produced.topic)
    guard RecordCodec.encode(produced.record).count <= topic.spec.maximumBytes else {
      throw LogFailure(.refused, "a record is too large for \(produced.topic)")
    }
    let count = Int32(topic.partitions.count)
    if let partition = produced.partition {
      guard (0..<count).contains(partition) else {
        throw LogFailure(.refused, "\(produced.topic)/\(partition) does not exist")
      }
      return TopicPartition(produced.topic, partition)
    }
    if let key = produced.record.key {
      return TopicPartition(produced.topic, Partitioner.partition(forKey: key, of: count))
    }
    topics[produced.topic]?.nextUnkeyed += 1
    return TopicPartition(produced.topic, topic.nextUnkeyed % count)
  }

  func append(_ record: Record?, to place: TopicPartition, of transaction: SimulatedTransaction?) -> Int64 {
    guard let partition = topics[place.topic]?.partitions[Int(place.partition)] else { return 0 }
    partition.slots.append(Slot(record: record, transaction: transaction))
    settle(place)
    changes += 1
    return Int64(partition.slots.count - 1)
  }

  /// Moves the end for readers on over what is decided.
  func settle(_ place: TopicPartition) {
    guard let partition = topics[place.topic]?.partitions[Int(place.partition)] else { return }
    while partition.stable < partition.slots.count {
      if partition.slots[partition.stable].transaction?.isOpen(in: place) == true { break }
      partition.stable += 1
    }
    changes += 1
  }

  /// Committed records from an offset on.
  func read(_ place: TopicPartition, from offset: Int64, max: Int) throws(LogFailure) -> [StoredRecord] {
    let partition = try partition(place)
    var records: [StoredRecord] = []
    var next = Swift.max(0, Int(offset))
    while next < partition.stable, records.count < max {
      let slot = partition.slots[next]
      if let record = slot.record, slot.transaction?.isAborted != true {
        records.append(
          StoredRecord(
            coordinates: Coordinates(topic: place.topic, partition: place.partition, offset: Int64(next)),
            record: record))
      }
      next += 1
    }
    return records
  }

  /// All committed records of a topic, partition by partition.
  func contents(_ name: String) -> [StoredRecord] {
    guard let topic = topics[name] else { return [] }
    return topic.partitions.indices.flatMap { index in
      (try? read(TopicPartition(name, Int32(index)), from: 0, max: .max)) ?? []
    }
  }

  func stableEnd(_ place: TopicPartition) throws(LogFailure) -> Int64 { Int64(try partition(place).stable) }

  // MARK: groups

  func group(_ name: String) -> SimulatedGroup {
    if let group = groups[name] { return group }
    let group = SimulatedGroup(name: name, broker: self)
    groups[name] = group
    return group
  }

  var sortedGroups: [SimulatedGroup] { groups.values.sorted { $0.name < $1.name } }

  func changed() { changes += 1 }

  // MARK: producers and transactions

  func newWorker() -> Int {
    lastWorker += 1
    return lastWorker
  }

  /// Takes a transactional id: what its older producers left open is given up, and they are fenced. Nil while a decided
  /// transaction of the id is still being written.
  func take(_ id: String, for worker: Int) -> Int? {
    for transaction in open where transaction.id == id && transaction.state == .open { transaction.abort() }
    guard !open.contains(where: { $0.id == id }) else { return nil }
    let epoch = (producers[id]?.epoch ?? 0) + 1
    producers[id] = (epoch, worker)
    return epoch
  }

  /// A transaction ran out of its time: its producer is fenced, though nobody took its name.
  func raiseEpoch(_ id: String) {
    guard let known = producers[id] else { return }
    producers[id] = (known.epoch + 1, known.worker)
  }

  func began(_ transaction: SimulatedTransaction) { open.append(transaction) }

  func isOver(_ transaction: SimulatedTransaction) {
    open.removeAll { $0 === transaction }
    changes += 1
  }

  // MARK: what is watched

  func isRecovering(_ shares: [SimulatedGroup.Share], _ worker: Int) {
    for share in shares { recovered[share] = worker }
  }

  /// Nobody moves an offset after another one has read it to begin there.
  func check(_ transaction: SimulatedTransaction) {
    for place in transaction.offsets.keys.sorted() {
      let share = SimulatedGroup.Share(group: transaction.group.name, partition: place)
      guard let last = recovered[share], last != transaction.worker else { continue }
      world.violate(
        "\(transaction.owner) committed \(place) of \(transaction.group.name) after another member had begun there")
    }
  }
}

/// A transaction from its first record to the last mark.
final class SimulatedTransaction {
  enum State { case open, committed, aborted }
  enum Outcome: Equatable { case committed, stale, refused, fenced }
  private enum Request { case append, offsets, end }

  let id: String
  let epoch: Int
  let worker: Int
  let owner: String
  let group: SimulatedGroup
  let member: Int
  let generation: Int
  let offsets: [TopicPartition: Int64]
  let began: Int64
  private let records: [(place: TopicPartition, record: Record)]
  private let link: SimulatedLink
  private unowned let broker: SimulatedBroker
  private var request: Request = .append
  private(set) var state = State.open
  /// What the client was answered.
  private(set) var outcome: Outcome?
  /// The client asked for the end; from here on it may be committed without the client's knowing.
  private(set) var mayBeDecided = false
  /// Partitions, and offsets, that don't have the mark of the end yet.
  private var unmarked: Set<TopicPartition> = []
  private var hasOpenOffsets = false
  /// What becomes of the last request on its way.
  var isEndLost = false
  var endDelay: Int64 = 0

  init(
    id: String, epoch: Int, worker: Int, group: SimulatedGroup, member: Int, generation: Int,
    records: [(TopicPartition, Record)], offsets: [TopicPartition: Int64], milliseconds: Int64, link: SimulatedLink,
    broker: SimulatedBroker
  ) {
    self.id = id
    self.epoch = epoch
    self.worker = worker
    owner = link.name
    self.group = group
    self.member = member
    self.generation = generation
    self.records = records.map { (place: $0.0, record: $0.1) }
    self.offsets = offsets
    self.link = link
    self.broker = broker
    began = broker.world.now
    broker.began(self)
    broker.world.after(milliseconds) { [self] in
      guard state == .open else { return }
      broker.world.note(nil, "transaction of \(owner) ran out of time")
      broker.raiseEpoch(id)
      abort()
    }
    send()
  }

  func isOpen(in place: TopicPartition) -> Bool { state == .open || unmarked.contains(place) }
  var isAborted: Bool { state == .aborted }
  var isOver: Bool { state != .open && unmarked.isEmpty && !hasOpenOffsets }
  func holds(_ partition: TopicPartition) -> Bool { hasOpenOffsets && offsets[partition] != nil }

  /// The client's part, on a thread beside its worker's: a process that is gone sends nothing more, one that stands still
  /// does so later.
  private func send() {
    guard !link.isGone else { return }
    if link.isStalled {
      broker.world.after(link.stalledUntil - broker.world.now + broker.delay()) { [self] in send() }
      return
    }
    if request == .end { mayBeDecided = true }
    broker.world.after(broker.delay()) { [self] in arrive() }
  }

  private func arrive() {
    if broker.isOut {
      broker.world.after(broker.outageUntil - broker.world.now + broker.delay()) { [self] in arrive() }
      return
    }
    if request == .end {
      if isEndLost { return }
      if endDelay > 0 {
        broker.world.after(endDelay) { [self] in arrive() }
        endDelay = 0
        return
      }
    }
    guard broker.producers[id]?.epoch == epoch, state == .open else {
      if broker.bug == .logIgnoresProducerEpochs, request == .end {
        broker.open.first { $0.id == id && $0 !== self && $0.state == .open }?.commit()
      }
      answer(.fenced)
      return
    }
    switch request {
    case .append:
      // The coordinator lets a transaction begin when the last one of its id is over.
      if broker.open.contains(where: { $0 !== self && $0.id == id }) {
        broker.world.after(1 + broker.delay()) { [self] in arrive() }
        return
      }
      for (place, record) in records {
        unmarked.insert(place)
        _ = broker.append(record, to: place, of: self)
      }
      request = offsets.isEmpty ? .end : .offsets
      send()
    case .offsets:
      guard
        group.accepts(member: member, generation: generation, partitions: Array(offsets.keys))
          || broker.bug == .logIgnoresMembership
      else {
        abort()
        answer(.stale)
        return
      }
      hasOpenOffsets = true
      request = .end
      send()
    case .end:
      commit()
      answer(.committed)
    }
  }

  private func commit() {
    state = .committed
    broker.check(self)
    broker.world.note(nil, "the log commits the transaction of \(owner): \(offsetsText)")
    mark()
  }

  private var offsetsText: String {
    offsets.sorted { $0.key < $1.key }.map { "\($0.key)→\($0.value)" }.joined(separator: " ")
  }

  func abort() {
    guard state == .open else { return }
    state = .aborted
    broker.world.note(nil, "the log aborts the transaction of \(owner): \(offsetsText)")
    mark()
  }

  private func answer(_ outcome: Outcome) {
    let give = { [self] in
      self.outcome = outcome
      broker.changed()
    }
    if broker.latency == 0 { give() } else { broker.world.after(broker.delay(), give) }
  }

  /// The decision comes to each partition, and to the group's offsets, at its own time.
  private func mark() {
    for place in unmarked.sorted() {
      later { [self] in
        unmarked.remove(place)
        _ = broker.append(nil, to: place, of: nil)
      }
    }
    if hasOpenOffsets {
      later { [self] in
        hasOpenOffsets = false
        if state == .committed { group.move(offsets) }
        broker.changed()
      }
    }
    if isOver { broker.isOver(self) }
  }

  private func later(_ body: @escaping () -> Void) {
    let run = { [self] in
      body()
      if isOver { broker.isOver(self) }
    }
    if broker.latency == 0 { run() } else { broker.world.after(broker.delay(), run) }
  }
}
