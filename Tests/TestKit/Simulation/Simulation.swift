import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesOwnership
import PurchasesRunner

/// The production loop of stages, several members of a group each, on a simulated log and store in one process: in an
/// order of steps and with faults that a seed decides, and without real time. The same seed is the same run.
///
/// After the last fault the stages must come to rest, and then everything is judged: `SimulationJudge`.
public final class Simulation {
  public struct Outcome: Sendable {
    public let seed: UInt64
    /// Which order of steps of this seed; 0 is its own.
    public let dice: UInt64
    public let faults: [SimulatedFault]
    /// Those of them that came to pass.
    public let struck: [SimulatedFault]
    /// What must not have been; empty after a good run.
    public let violations: [String]
    public let steps: Int
    /// How often the baton went from one thread to another.
    public let switches: Int
    /// The same for two runs only when they were the same, step by step.
    public let digest: UInt64
    /// All steps, where they were asked for.
    public let trace: [String]

    public var isGood: Bool { violations.isEmpty }
  }

  /// Which stages run, in the order of the way of a record.
  enum Shape: CaseIterable {
    case tally, passing, both, counting
    /// The stages that live deployments run, on some accounts' purchases.
    case purchases

    var stages: [any Stage] {
      switch self {
      case .tally: [SimulatedTally()]
      case .passing: [SimulatedPassing()]
      case .both: [SimulatedPassing(), SimulatedTally()]
      case .counting: [SimulatedCounting()]
      case .purchases: [OwnershipStage(), EntitlementsStage(catalogue: SimulatedPurchases.catalogue)]
      }
    }
  }

  static let topics = TopicSettings(prefix: "", partitions: 3)
  /// A run that takes longer hangs; good ones take a few hundred.
  private static let stepLimit = 15_000
  /// As long as nothing changes for so long, and nobody stands still, there is nothing under way.
  private static let restMilliseconds: Int64 = 400
  /// Short ones, so that a run has time for many of them; who stands still does so for up to four.
  private static let timeoutMilliseconds: Int64 = 1_000

  let seed: UInt64
  let faults: [SimulatedFault]
  let world: SimulatedWorld
  let broker: SimulatedBroker
  let store: SimulatedStoreServer
  let shape: Shape
  let stages: [any Stage]
  /// Of each stage's group; where there are two stages, two.
  private let members: Int
  private var roles: [(stage: any Stage, index: Int)] = []
  private var inputs = 0
  private var isClosing = false
  /// The store as it stood at some step.
  private var backup = SimulatedDatabase()

  static func group(_ stage: any Stage) -> String { "simulated-\(stage.name.rawValue)" }

  private init(seed: UInt64, dice: UInt64, faults: [SimulatedFault]?, bug: PlantedBug?, keepsTrace: Bool) {
    self.seed = seed
    // What is played and what goes wrong has dice of its own, so that a run without one of its faults is the same play.
    var random = SeededRandom(seed: seed)
    shape = Shape.allCases.randomElement(using: &random) ?? .tally
    members = Int.random(in: 2...3, using: &random)
    world = SimulatedWorld(seed: random.next() &+ dice, keepsTrace: keepsTrace)
    broker = SimulatedBroker(
      world: world, bug: bug, isCooperative: Bool.random(using: &random),
      latency: [0, 5, 20, 60].randomElement(using: &random) ?? 0)
    store = SimulatedStoreServer(world: world, bug: bug)
    stages = shape.stages
    let some = SimulatedFault.some(&random, processes: stages.count * (stages.count > 1 ? 2 : members))
    self.faults = faults ?? some
    world.stepLimit = Self.stepLimit
    try? broker.ensure(Self.topics.specs)
    play(&random)
    store.isOwner = { [unowned broker] stage, link, partition in
      broker.group("simulated-\(stage)").isOwner(link, partition)
    }
    broker.positionInStore = { [unowned store] in
      store.database.stages[StageName.entitlements.rawValue]?.positions[$0]?.next
    }
  }

  /// One run.
  /// - Parameters:
  ///   - dice: another order of the same play's steps.
  ///   - faults: instead of those that the seed decides.
  public static func run(
    seed: UInt64, dice: UInt64 = 0, faults: [SimulatedFault]? = nil, bug: PlantedBug? = nil, keepsTrace: Bool = false
  ) -> Outcome {
    let simulation = Simulation(seed: seed, dice: dice, faults: faults, bug: bug, keepsTrace: keepsTrace)
    simulation.run()
    let world = simulation.world
    defer { world.end() }
    return Outcome(
      seed: seed, dice: dice, faults: simulation.faults, struck: world.struck, violations: world.violations,
      steps: world.steps,
      switches: world.switches, digest: world.traceDigest, trace: world.trace)
  }

  /// The faults that a seed decides.
  public static func faults(seed: UInt64) -> [SimulatedFault] {
    Simulation(seed: seed, dice: 0, faults: nil, bug: nil, keepsTrace: false).faults
  }

  // MARK: the play

  private func play(_ random: inout SeededRandom) {
    let length = Int64.random(in: 50...3_000, using: &random)
    if shape == .purchases {
      for (at, record) in SimulatedPurchases.records(&random, within: length, topics: Self.topics) {
        publish(record, at: at)
      }
      return
    }
    let count = Int.random(in: 10...40, using: &random)
    let keys = Int.random(in: 3...8, using: &random)
    var at: [Int64] = (0..<count).map { _ in Int64.random(in: 0...length, using: &random) }
    at.sort()
    let type: EventType = shape == .tally ? .factNoted : .paymentAdded
    for index in 0..<count {
      let record = Record(
        key: Array("k\(Int.random(in: 0..<keys, using: &random))".utf8),
        value: Array(value(index, at: at[index], &random).utf8),
        headers: Envelope(id: "in-\(index)", source: "/simulation", type: type).headers,
        timestamp: Instant(milliseconds: SimulatedWorld.epoch + at[index] - Int64.random(in: 0...50, using: &random)))
      publish(ProducedRecord(topic: Self.topics.name(topic(&random)), record: record), at: at[index])
    }
  }

  /// Where the play's records come in.
  private func topic(_ random: inout SeededRandom) -> Topic {
    let inputs = stages[0].inputs.filter { $0 != .parked }
    return inputs[Int.random(in: 0..<inputs.count, using: &random)]
  }

  private func value(_ index: Int, at: Int64, _ random: inout SeededRandom) -> String {
    switch Int.random(in: 0..<12, using: &random) {
    case 0: return "\(SimulatedTally.poison) n\(index)"
    case 1, 2: return "n\(index)+\(Int64.random(in: 0...1_500, using: &random))"
    case 3, 4:
      guard shape != .tally else { return "n\(index)" }
      let until = SimulatedWorld.epoch + at + Int64.random(in: 0...2_000, using: &random)
      return "\(SimulatedPassing.parking)\(until) n\(index)"
    default: return "n\(index)"
    }
  }

  private func publish(_ produced: ProducedRecord, at: Int64) {
    inputs += 1
    world.after(at) { [unowned self] in
      inputs -= 1
      guard let place = try? broker.place(produced) else { return }
      _ = broker.append(produced.record, to: place, of: nil)
    }
  }

  // MARK: the run

  private func run() {
    arm()
    for stage in stages {
      for index in 0..<(stages.count > 1 ? 2 : members) { start(stage, index) }
    }
    world.replace = { [unowned self] process in
      let role = roles[process.index]
      process.isReplaced = true
      start(role.stage, role.index, isSuccessor: true)
    }
    var seen = (broker: -1, store: -1)
    var since: Int64 = 0
    var wasDone = false
    world.run { [self] in
      // A look at everything is dear, and nothing is missed by looking seldom.
      guard world.steps.isMultiple(of: 16) else { return false }
      let isDone = isDone
      if seen != (broker.changes, store.changes) || !isDone || !wasDone {
        seen = (broker.changes, store.changes)
        since = world.now
      }
      wasDone = isDone
      return world.now - since >= Self.restMilliseconds
    }
    close()
    guard !world.isAbandoned else { return }
    SimulationJudge(self).judge()
    for case .end(let fault) in faults where world.violations.isEmpty { end(fault) }
  }

  /// Has all members stop in an orderly way, without any more faults.
  private func close() {
    world.callFaults = [:]
    world.stepFaults = []
    isClosing = true
    for process in world.processes { process.stop?.set() }
    world.run { [world, broker] in world.haveAllEnded && broker.open.isEmpty }
    isClosing = false
  }

  private func arm() {
    for fault in faults {
      switch fault {
      case .call(let place, let what): world.callFaults[place, default: []].append(what)
      case .step(let step, let what):
        world.stepFaults.append(
          (
            step,
            { [unowned self] in
              world.strike(fault)
              strike(what)
            }
          ))
      case .end: break
      }
    }
    world.stepFaults.append((world.dice(20...400), { [unowned self] in backup = store.database }))
    world.stepFaults.sort { $0.step < $1.step }
  }

  private func strike(_ fault: SimulatedFault.AtStep) {
    switch fault {
    case .rebalance: for group in broker.sortedGroups { group.gather() }
    case .expel: for group in broker.sortedGroups { group.expelAll() }
    case .expelOne: for group in broker.sortedGroups { group.expelFirst() }
    case .logOutage: broker.outageUntil = world.now + world.dice(20...2_500)
    case .storeOutage: store.outageUntil = world.now + world.dice(20...2_500)
    case .restart0: world.processes.first?.stop?.set()
    case .restart1: world.processes.dropFirst().first?.stop?.set()
    case .restart2: world.processes.last?.stop?.set()
    }
  }

  private func start(_ stage: any Stage, _ index: Int, mayStop: Bool = false, isSuccessor: Bool = false) {
    roles.append((stage, index))
    let process = world.process("\(stage.name.rawValue.first.map(String.init) ?? "")\(index)") {
      [unowned self] process in
      while true {
        let stop = process.begin()
        let link = SimulatedLink(world, process)
        // Whoever starts a process anew takes his time.
        if process.life > 1 { _ = link.wait(world.dice(0...1_500)) { [unowned self] in isClosing } }
        if isClosing || world.isAbandoned { return }
        // Whoever looks after the processes has started another one in its place.
        if process.isReplaced, process.life > 1 { return }
        do throws(RunnerFailure) {
          try runner(stage, index, link).run(until: stop)
        } catch {
          if !process.hasCrashed {
            process.failure = error
            // Only who has lost its name may go, and only where there are two of a name.
            if case .fenced = error, process.isReplaced { return }
            if !mayStop { world.violate("\(link.name) stopped for good: \(error)") }
            return
          }
        }
      }
    }
    process.isReplaced = isSuccessor
  }

  private func runner(_ stage: any Stage, _ index: Int, _ link: SimulatedLink) -> StageRunner {
    var settings = RunnerSettings(
      topics: Self.topics, group: Self.group(stage), instance: "\(stage.name.rawValue)-\(index)")
    settings.sessionTimeoutMilliseconds = Self.timeoutMilliseconds
    settings.transactionTimeoutMilliseconds = Self.timeoutMilliseconds
    // Half of the plays have members that keep their place over a restart.
    settings.isStatic = seed & 1 == 1
    if let first = stages.first, first.name != stage.name {
      settings.stagesBefore = [(Self.group(first), first.inputs[0])]
    }
    let logger = Logger(clock: link, minimum: .warning) { [world] line in
      world.note(link.process, String(decoding: line.dropLast(), as: UTF8.self))
    }
    return StageRunner(
      stage: stage, log: SimulatedLog(broker, link), store: stage.hasState ? SimulatedStore(store, link) : nil,
      settings: settings, clock: link, pacing: link, logger: logger, metrics: Metrics())
  }

  // MARK: rest

  private var isDone: Bool {
    guard inputs == 0, broker.open.isEmpty, !broker.isOut, store.outageUntil <= world.now,
      !world.processes.contains(where: { $0.isStalled(at: world.now) })
    else { return false }
    for stage in stages where !stage.inputs.allSatisfy({ isWorkedOff($0, by: stage) }) { return false }
    let now = SimulatedWorld.epoch + world.now
    // What the tally waits for comes soon; a purchase may last for years.
    return !store.database.rows.values.contains { row in
      guard row.key.table == .account, let due = row["due_at"].integer else { return false }
      return shape != .purchases || due <= now
    }
  }

  private func isWorkedOff(_ topic: Topic, by stage: any Stage) -> Bool {
    let name = Self.topics.name(topic)
    let offsets = broker.group(Self.group(stage)).offsets
    return (0..<Self.topics.partitions).allSatisfy { number in
      let place = TopicPartition(name, number)
      return (try? broker.read(place, from: offsets[place] ?? 0, max: 1))?.isEmpty == true
    }
  }

  // MARK: what people do to a deployment that stands

  private func end(_ fault: SimulatedFault.AtEnd) {
    guard let tally = stages.last, tally.hasState else { return }
    let before = store.database
    let positions = before.stages[tally.name.rawValue]?.positions ?? [:]
    var affected = Set(positions.keys)
    switch fault {
    case .storeDeleted, .storeRestored:
      let put = fault == .storeDeleted ? SimulatedDatabase(bug: before.bug) : backup
      let old = put.stages[tally.name.rawValue]?.positions ?? [:]
      affected = affected.filter { positions[$0]?.next != nil && old[$0]?.next != positions[$0]?.next }
      store.database = put
    case .offsetsGone:
      affected = affected.filter { positions[$0]?.next != nil }
      for partition in affected { broker.group(Self.group(tally)).forget(partition) }
    }
    guard !affected.isEmpty else { return }
    world.strike(.end(fault))
    let output = outputs(of: affected)
    world.stepLimit = world.steps + Self.stepLimit
    let first = world.processes.count
    for index in 0..<2 { start(tally, index, mayStop: true) }
    let limit = world.now + 20 * Self.timeoutMilliseconds
    world.run { [world] in world.haveAllEnded || world.now > limit }
    for process in world.processes.dropFirst(first) {
      guard case .inconsistent? = process.failure else {
        world.violate(
          "\(process.name) goes on after \(fault.rawValue): \(process.failure.map { "\($0)" } ?? "it runs")")
        continue
      }
    }
    close()
    if outputs(of: affected) != output { world.violate("something was published after \(fault.rawValue)") }
  }

  private func outputs(of partitions: Set<TopicPartition>) -> [StoredRecord] {
    broker.contents(Self.topics.name(.entitlements)).filter { stored in
      guard let origin = try? Envelope(reading: stored.record).origin else { return true }
      return partitions.contains(origin.coordinates.topicPartition)
    }
  }
}
