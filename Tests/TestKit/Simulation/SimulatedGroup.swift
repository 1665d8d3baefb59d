import PurchasesContracts

/// A consumer group as its coordinator keeps it.
final class SimulatedGroup {
  struct Share: Hashable {
    let group: String
    let partition: TopicPartition
  }

  /// Of a worker, until it is closed or forgotten.
  final class Heartbeat {
    var beats = true
  }

  struct Member {
    /// New with each joining process or lost session.
    var id: Int
    let instance: String
    let isStatic: Bool
    let topics: [String]
    let session: Int64
    var lastHeard: Int64
    /// Whether a member stands still, or is gone, or is only busy, is known to its process.
    var link: SimulatedLink
    var heartbeat: Heartbeat
    var hasJoined = false
    /// What it keeps while the group comes together.
    var claims: Set<TopicPartition> = []
    var share: Set<TopicPartition> = []
  }

  let name: String
  private unowned let broker: SimulatedBroker
  private(set) var generation = 0
  private(set) var members: [Member] = []
  private(set) var isGathering = false
  private(set) var offsets: [TopicPartition: Int64] = [:]
  /// Whose a partition is, and since which generation.
  private var since: [TopicPartition: (member: Int, generation: Int)] = [:]
  private var lastMember = 0

  init(name: String, broker: SimulatedBroker) {
    self.name = name
    self.broker = broker
  }

  /// Before anybody has committed an offset of it, a partition's owner has nothing to prove itself with.
  func isOwner(_ link: SimulatedLink, _ partition: TopicPartition) -> Bool {
    members.contains { $0.link === link && $0.share.contains(partition) } || offsets[partition] == nil
  }

  func member(_ id: Int) -> Member? { members.first { $0.id == id } }
  func index(_ id: Int) -> Int? { members.firstIndex { $0.id == id } }

  /// Joins, or joins again; answers the member's id.
  func join(_ settings: WorkerSettings, link: SimulatedLink, heartbeat: Heartbeat) -> Int {
    expire()
    lastMember += 1
    let now = broker.world.now
    if settings.isStatic, let place = members.firstIndex(where: { $0.isStatic && $0.instance == settings.instance }) {
      // It takes the place with all that belongs to it; the older process of the name is a member no more.
      members[place].id = lastMember
      members[place].lastHeard = now
      members[place].link = link
      members[place].heartbeat = heartbeat
      broker.changed()
      // What it was about to let go is still to be given to somebody.
      if broker.isCooperative { gather() }
      return lastMember
    }
    members.append(
      Member(
        id: lastMember, instance: settings.instance, isStatic: settings.isStatic, topics: settings.topics,
        session: settings.sessionTimeoutMilliseconds, lastHeard: now, link: link,
        heartbeat: heartbeat))
    gather()
    return lastMember
  }

  func heard(_ id: Int) {
    if let place = index(id) { members[place].lastHeard = broker.world.now }
    expire()
  }

  func leave(_ id: Int) {
    guard let place = index(id), !members[place].isStatic else { return }
    members.remove(at: place)
    gather()
  }

  /// Members that were silent for their session are put out.
  func expire() {
    let now = broker.world.now
    for place in members.indices {
      // Heartbeats go on behind the back of a busy worker.
      let link = members[place].link
      if link.process != nil, !link.isGone, !link.isStalled, members[place].heartbeat.beats {
        members[place].lastHeard = now
      }
    }
    let before = members.count
    members.removeAll { $0.lastHeard + $0.session < now }
    if members.count < before { gather() }
  }

  func expelAll() {
    members = []
    gather()
  }

  func expelFirst() {
    if !members.isEmpty { members.removeFirst() }
    gather()
  }

  /// The group comes together anew: each member must join once more.
  func gather() {
    isGathering = true
    for place in members.indices {
      members[place].hasJoined = false
      members[place].claims = []
    }
    broker.changed()
    if members.isEmpty { isGathering = false }
  }

  func rejoin(_ id: Int, claims: Set<TopicPartition>) {
    guard isGathering, let place = index(id) else { return }
    members[place].hasJoined = true
    members[place].claims = claims
    broker.changed()
    guard members.allSatisfy(\.hasJoined) else { return }
    isGathering = false
    generation += 1
    assign()
  }

  /// Ranges by topic, in the order of the instances' names. What another member still has is given when it has let go.
  private func assign() {
    var target: [Int: Set<TopicPartition>] = [:]
    for topic in Set(members.flatMap(\.topics)).sorted() {
      guard let state = broker.topics[topic] else { continue }
      let takers = members.filter { $0.topics.contains(topic) }.sorted { ($0.instance, $0.id) < ($1.instance, $1.id) }
      let (each, rest) = (state.partitions.count / takers.count, state.partitions.count % takers.count)
      var next = 0
      for (place, member) in takers.enumerated() {
        let count = each + (place < rest ? 1 : 0)
        for number in next..<next + count {
          target[member.id, default: []].insert(TopicPartition(topic, Int32(number)))
        }
        next += count
      }
    }
    for place in members.indices {
      let others = members.indices.filter { $0 != place }.reduce(into: Set<TopicPartition>()) {
        $0.formUnion(members[$1].claims)
      }
      members[place].share = (target[members[place].id] ?? []).subtracting(others)
      for partition in members[place].share where since[partition]?.member != members[place].id {
        since[partition] = (members[place].id, generation)
      }
    }
  }

  /// Kafka asks who commits, and not whose the partition is: any other generation is refused. Where members keep what they
  /// have over generations, as on the embedded log, it must have been the member's since the batch was read.
  func accepts(member id: Int, generation: Int, partitions: [TopicPartition]) -> Bool {
    expire()
    guard member(id) != nil else { return false }
    guard broker.isCooperative else { return generation == self.generation }
    return partitions.allSatisfy { partition in
      since[partition].map { $0.member == id && $0.generation <= generation } ?? false
    }
  }

  func move(_ offsets: [TopicPartition: Int64]) { self.offsets.merge(offsets) { _, new in new } }

  func forget(_ partition: TopicPartition) { offsets[partition] = nil }

  /// A transaction that moves one of these is neither committed nor given up.
  func isUnstable(_ partitions: [TopicPartition]) -> Bool {
    broker.open.contains { open in open.group === self && partitions.contains { open.holds($0) } }
  }
}
