import PurchasesContracts
import PurchasesCore

/// Says of a run that came to rest whether each record had its effect once, in order, and whether log and store agree. It
/// looks at what is in the log and in the store, and knows nothing of how it came there.
struct SimulationJudge {
  private let simulation: Simulation
  private let world: SimulatedWorld
  private let broker: SimulatedBroker

  init(_ simulation: Simulation) {
    self.simulation = simulation
    world = simulation.world
    broker = simulation.broker
  }

  func judge() {
    if !broker.open.isEmpty { world.violate("\(broker.open.count) transactions are open still") }
    if simulation.shape != .tally { judgePassing() }
    if simulation.shape != .passing { judgeTally() }
  }

  private func contents(_ topic: Topic) -> [StoredRecord] { broker.contents(Simulation.topics.name(topic)) }
  private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }
  private func key(_ stored: StoredRecord) -> String { text(stored.record.key) }
  private func value(_ stored: StoredRecord) -> String { text(stored.record.value) }

  private func compare(_ found: [String: [String]], _ wanted: [String: [String]], _ what: String) {
    for key in Set(found.keys).union(wanted.keys).sorted() {
      let (found, wanted) = (found[key] ?? [], wanted[key] ?? [])
      guard found != wanted else { continue }
      let place = zip(found, wanted).enumerated().first { $1.0 != $1.1 }?.offset ?? min(found.count, wanted.count)
      func at(_ list: [String]) -> String { place < list.count ? "\"\(list[place])\"" : "nothing" }
      world.violate(
        "\(what) of \(key): \(found.count) where \(wanted.count) are due; number \(place) is \(at(found)), not \(at(wanted))"
      )
    }
  }

  private func isTick(_ stored: StoredRecord) -> Bool {
    stored.record.headerText("ce_type").map { $0.contains("clock.ticked") } ?? false
  }

  // MARK: the stage without state

  private func judgePassing() {
    let passed = contents(.owned).filter { !isTick($0) }
    var found: [String: [String]] = [:]
    for stored in passed { found[value(stored), default: []].append(key(stored)) }
    var wanted: [String: [String]] = [:]
    for stored in contents(.received) { wanted[value(stored)] = [key(stored)] }
    compare(found, wanted, "copies")
    // What was parked comes later; the rest keeps its order.
    func inOrder(_ records: [StoredRecord]) -> [String: [String]] {
      let straight = records.filter { !value($0).hasPrefix(SimulatedPassing.parking) }
      return Dictionary(grouping: straight, by: key).mapValues { $0.map(value) }
    }
    compare(inOrder(passed), inOrder(contents(.received)), "order")
    for topic in [Topic.received, .parked] { judgeOffsets(topic, SimulatedPassing()) }
  }

  private func judgeOffsets(_ topic: Topic, _ stage: any Stage) {
    let offsets = broker.group(Simulation.group(stage)).offsets
    let last = Dictionary(
      contents(topic).map { ($0.coordinates.topicPartition, $0.coordinates.offset) }, uniquingKeysWith: max)
    for (place, offset) in last.sorted(by: { $0.key < $1.key }) where offsets[place] != offset + 1 {
      world.violate("\(place): the group stands at \(offsets[place] ?? -1), and the last record is \(offset)")
    }
  }

  // MARK: the stage with state

  private func judgeTally() {
    let stage = SimulatedTally()
    // The fold, record by record, without runner, log and store.
    let model = InMemoryStage(stage, topics: Simulation.topics)
    var wanted: [String: [String]] = [:]
    var poison: [String: [String]] = [:]
    for stored in contents(.owned) {
      if !isTick(stored), value(stored).hasPrefix(SimulatedTally.poison) {
        poison[stored.coordinates.description] = [value(stored)]
      }
      for produced in model.feed(stored) {
        wanted[text(produced.record.key), default: []].append(
          "\(text(produced.record.value)) \(produced.record.headerText("ce_id") ?? "")")
      }
    }
    var found: [String: [String]] = [:]
    for stored in contents(.entitlements) {
      found[key(stored), default: []].append("\(value(stored)) \(stored.record.headerText("ce_id") ?? "")")
    }
    compare(found, wanted, "events")

    var quarantined: [String: [String]] = [:]
    for stored in contents(.quarantine) {
      let record = stored.record
      let place = [SpecialHeader.quarantineTopic, SpecialHeader.quarantinePartition, SpecialHeader.quarantineOffset]
        .map { record.headerText($0) ?? "?" }.joined(separator: "/")
      quarantined[place, default: []].append(value(stored))
    }
    compare(quarantined, poison, "quarantine")

    let database = simulation.store.database
    let rows = database.table(.account)
    if rows != model.tables.rows(.account) { world.violate("the store's rows are not the fold of the topic") }
    for row in rows where row["due_at"] != .null { world.violate("the clock owes something to \(row.key.values)") }

    judgeOffsets(.owned, stage)
    let books = database.stages[stage.name.rawValue]
    let offsets = broker.group(Simulation.group(stage)).offsets
    for (place, position) in (books?.positions ?? [:]).sorted(by: { $0.key < $1.key })
    where position.next != offsets[place] {
      world.violate(
        "\(place): the store stands at \(position.next ?? -1), the group at \(offsets[place] ?? -1)")
    }
    judgeTicks()
  }

  /// No tick passes a record that it should have come after.
  private func judgeTicks() {
    var latest: [TopicPartition: Int64] = [:]
    for stored in contents(.owned) {
      let place = stored.coordinates.topicPartition
      if isTick(stored) {
        latest[place] = max(latest[place] ?? .min, Int64(value(stored)) ?? .min)
      } else if !value(stored).hasPrefix(SimulatedPassing.parking), let tick = latest[place],
        stored.record.timestamp.milliseconds < tick
      {
        world.violate(
          "\(stored.coordinates): a tick for \(tick) passed a record of \(stored.record.timestamp.milliseconds)")
      }
    }
  }
}
