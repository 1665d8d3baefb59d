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
    // One that is decided may still be marking its partitions; one that is not belongs to nobody any more.
    let undecided = broker.open.count { $0.state == .open }
    if undecided > 0 { world.violate("\(undecided) transactions are open still") }
    let model = InMemoryTables()
    for stage in simulation.stages {
      if stage.hasState { judgeState(stage, model) } else { judgePassing() }
      for topic in stage.inputs { judgeOffsets(topic, stage) }
    }
    for table in Table.all where simulation.store.database.table(table) != model.rows(table) {
      world.violate("the store's rows of \(table.name) are not the fold of the topic")
    }
    if simulation.shape != .purchases { judgeTicks() }
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

  private func judgeState(_ stage: any Stage, _ tables: InMemoryTables) {
    // The fold, record by record, without runner, log and store.
    let model = InMemoryStage(
      stage.decidesRuns ? OneByOne(stage: stage) : stage, tables: tables, topics: Simulation.topics)
    var wanted: [String: [String]] = [:]
    var poison: [String: [String]] = [:]
    for topic in stage.inputs {
      for stored in contents(topic) {
        let actions = model.actions(stored)
        for case .quarantine(_, _) in actions {
          poison[stored.coordinates.description, default: []].append(value(stored))
        }
        for produced in model.records(stored, actions) {
          wanted[group(produced.topic, produced.record, stored.coordinates.partition), default: []]
            .append(gist(produced.record))
        }
      }
    }
    var found: [String: [String]] = [:]
    for topic in Topic.allCases {
      for stored in contents(topic) {
        guard let envelope = try? Envelope(reading: stored.record), let origin = envelope.origin,
          envelope.source == "/purchases/\(stage.name.rawValue)"
        else { continue }
        found[group(stored.coordinates.topic, stored.record, origin.coordinates.partition), default: []]
          .append(gist(stored.record))
      }
    }
    compare(found, wanted, "events")

    var quarantined: [String: [String]] = [:]
    for stored in contents(.quarantine)
    where stored.record.headerText(SpecialHeader.quarantineStage) == stage.name.rawValue {
      let record = stored.record
      let place = [SpecialHeader.quarantineTopic, SpecialHeader.quarantinePartition, SpecialHeader.quarantineOffset]
        .map { record.headerText($0) ?? "?" }.joined(separator: "/")
      quarantined[place, default: []].append(value(stored))
    }
    compare(quarantined, poison, "quarantine")

    let books = simulation.store.database.stages[stage.name.rawValue]
    let offsets = broker.group(Simulation.group(stage)).offsets
    for (place, position) in (books?.positions ?? [:]).sorted(by: { $0.key < $1.key })
    where position.next ?? 0 != offsets[place] ?? 0 {
      world.violate(
        "\(place): the store stands at \(position.next ?? -1), the group at \(offsets[place] ?? -1)")
    }
  }

  /// Records of one key that come from one partition keep their order.
  private func group(_ topic: String, _ record: Record, _ partition: Int32) -> String {
    "\(topic) \(text(record.key)) from partition \(partition)"
  }

  private func gist(_ record: Record) -> String { "\(record.headerText("ce_id") ?? "?") \(text(record.value))" }

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
