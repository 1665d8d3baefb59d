import Foundation
import PurchasesRunner
import PurchasesTestKit
import Synchronization
import Testing

/// The production loop in a simulation: see `Simulation` in the test kit. What a failed run prints, shrunk, runs again with
/// `PURCHASES_SIM_SEED`, `PURCHASES_SIM_DICE` and `PURCHASES_SIM_FAULTS`; `PURCHASES_SIM_RUNS` is how many runs `plays` makes.
@Suite struct SimulationTests {
  private static let environment = ProcessInfo.processInfo.environment
  /// What `make check` and `make test` make each time, besides those of a fixed seed: some seconds' worth.
  private static let runs = 600
  /// As many at once as a small machine has cores: a run itself is one thread at a time.
  private static let atOnce = 2

  /// The first of these runs that goes wrong, with all that was counted.
  private static func play(from first: UInt64, _ count: Int, bug: PlantedBug? = nil) -> Tally {
    let tally = Mutex(Tally())
    _ = onThreads(atOnce) { thread in
      for index in stride(from: thread, to: count, by: atOnce) {
        if tally.withLock({ $0.failure != nil }) { return }
        let outcome = Simulation.run(seed: first &+ UInt64(index), bug: bug)
        tally.withLock { $0.add(outcome) }
      }
    }.wait()
    return tally.withLock { $0 }
  }

  struct Tally: Sendable {
    var runs = 0
    var steps = 0
    var longest = 0
    var switches = 0
    var struck: [String: Int] = [:]
    var failure: Simulation.Outcome?

    mutating func add(_ outcome: Simulation.Outcome) {
      runs += 1
      steps += outcome.steps
      longest = max(longest, outcome.steps)
      switches += outcome.switches
      for fault in outcome.struck { struck[fault.kind, default: 0] += 1 }
      if !outcome.isGood { failure = failure ?? outcome }
    }
  }

  @Test func plays() throws {
    if let text = Self.environment["PURCHASES_SIM_SEED"] { return try playAgain(text) }
    let count = Int(Self.environment["PURCHASES_SIM_RUNS"] ?? "") ?? Self.runs
    let seed = UInt64.random(in: 0...UInt64.max)
    // Said first, so that it is known should a run take the process with it.
    print("simulation: seed \(seed), \(count) runs")
    let watch = Stopwatch()
    let tally = Self.play(from: seed, count)
    let each = max(1, tally.runs)
    print(
      "simulation: \(tally.runs) runs in \(watch.milliseconds) ms, \(tally.steps / each) steps (at most \(tally.longest)) and "
        + "\(tally.switches / each) switches each, \(tally.struck.values.reduce(0, +)) faults")
    if Self.environment["PURCHASES_SIM_RUNS"] != nil {
      for (kind, count) in tally.struck.sorted(by: { $0.key < $1.key }) { print("  \(kind): \(count)") }
    }
    if let failure = tally.failure { Issue.record(Comment(rawValue: Simulation.report(Simulation.shrunk(failure)))) }
  }

  private func playAgain(_ text: String) throws {
    let seed = try #require(UInt64(text), "PURCHASES_SIM_SEED is a number")
    let faults = try Self.environment["PURCHASES_SIM_FAULTS"].map {
      try #require(SimulatedFault.list($0), "PURCHASES_SIM_FAULTS is a list as a failed run prints it")
    }
    let dice = try #require(UInt64(Self.environment["PURCHASES_SIM_DICE"] ?? "0"), "PURCHASES_SIM_DICE is a number")
    let outcome = Simulation.run(seed: seed, dice: dice, faults: faults, keepsTrace: true)
    print(outcome.trace.joined(separator: "\n"))
    if !outcome.isGood { Issue.record(Comment(rawValue: Simulation.report(outcome))) }
  }

  @Test func theRunsOfAFixedSeedAreGood() {
    if let failure = Self.play(from: 1, Self.runs).failure {
      Issue.record(Comment(rawValue: Simulation.report(Simulation.shrunk(failure))))
    }
  }

  /// Faults that the simulation found in the loop; each goes wrong again without its mend.
  @Test(
    arguments: [
      // A recovery that was dropped at assignment left the new partition lying.
      (6_291_109_278_174_575_947, "0:store.commit:1:crash-after,0:log.membership:1:fail=stale"),
      // A member that stood still between its claim and the question for the offset took the store for an old backup.
      (13_773_548_628_261_863_579, "0:log.committed:1:stall=3270"),
    ] as [(UInt64, String)])
  func whatWasFoundStaysMended(seed: UInt64, list: String) throws {
    let outcome = Simulation.run(seed: seed, faults: try #require(SimulatedFault.list(list)), keepsTrace: true)
    #expect(outcome.isGood, "\(Simulation.report(outcome))")
    #expect(Set(outcome.struck) == Set(outcome.faults), "all of it came to pass")
  }

  @Test func theSameSeedIsTheSameRun() {
    for seed in UInt64(1)...20 {
      let first = Simulation.run(seed: seed, keepsTrace: true)
      let second = Simulation.run(seed: seed, keepsTrace: true)
      #expect(first.digest == second.digest && first.trace == second.trace, "seed \(seed)")
    }
    #expect(Simulation.run(seed: 1).digest != Simulation.run(seed: 2).digest)
  }

  @Test func faultsAreReadAsTheyArePrinted() {
    var seen: Set<SimulatedFault> = []
    for seed in UInt64(1)...200 { seen.formUnion(Simulation.faults(seed: seed)) }
    for fault in seen { #expect(SimulatedFault.list(fault.description) == [fault]) }
    #expect(seen.count > 300)
    #expect(SimulatedFault.list("0:log.poll:1:crash,step:5:rebalance,end:store-deleted")?.count == 3)
    for wrong in ["0:log.poll:1", "0:log.nowhere:1:crash", "x:log.poll:1:crash", "step:5:storm", "0:log.poll:1:stall"] {
      #expect(SimulatedFault.list(wrong) == nil, "\(wrong)")
    }
  }

  /// A simulation that can't fail shows nothing: each rule, broken on purpose, is noticed within so many runs, and told with
  /// few faults.
  @Test(arguments: PlantedBug.allCases)
  func aBrokenRuleIsFound(bug: PlantedBug) throws {
    let tally = Self.play(from: 1, 1_000, bug: bug)
    let failure = try #require(tally.failure, "not found in \(tally.runs) runs")
    let shrunk = Simulation.shrunk(failure, bug: bug)
    print(
      "\(bug.rawValue): found after \(tally.runs) runs, \(failure.faults.count) faults shrunk to \(shrunk.faults.map(\.description)): \(shrunk.violations.first ?? "")"
    )
    #expect(!shrunk.isGood)
    #expect(shrunk.faults.count <= 3)
    #expect(Simulation.report(shrunk).contains("PURCHASES_SIM_SEED=\(failure.seed)"))
    let honest = Simulation.run(seed: failure.seed, dice: shrunk.dice, faults: shrunk.faults)
    #expect(honest.isGood, "it is the bug, and not the faults")
  }

  // MARK: the simulated log and store are held to the suites of the real ones

  @Test(arguments: SimulatedConformance.logCases)
  func theSimulatedLogIsALog(logCase: EventLogCase) throws {
    try logCase.run(SimulatedConformance.log())
    try logCase.run(SimulatedConformance.cooperativeLog())
  }

  @Test(arguments: SimulatedConformance.storeCases)
  func theSimulatedStoreIsAStore(storeCase: StoreCase) throws { try storeCase.run(SimulatedConformance.store()) }

  @Test func whatDoesNotApplyIsNamedAsItIs() {
    let log = Set(eventLogConformance.map(\.name))
    let store = Set(storeConformance.map(\.name))
    #expect(Set(SimulatedConformance.notForTheLog.keys).isSubset(of: log))
    #expect(Set(SimulatedConformance.notForTheStore.keys).isSubset(of: store))
  }
}
