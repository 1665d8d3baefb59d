extension Simulation {
  /// Fewer faults that still make a run go wrong, by leaving out one after the other until none can be spared; with all
  /// steps. The dice stay those of the seed.
  public static func shrunk(_ outcome: Outcome, bug: PlantedBug? = nil) -> Outcome {
    // What never came to pass is no part of it.
    var faults = outcome.faults.filter { Set(outcome.struck).contains($0) }
    if run(seed: outcome.seed, faults: faults, bug: bug).isGood { faults = outcome.faults }
    var place = 0
    var didShrink = false
    while true {
      guard place < faults.count else {
        // One that was needed may be needed no more when a later one is gone.
        guard didShrink else { break }
        (place, didShrink) = (0, false)
        continue
      }
      var fewer = faults
      fewer.remove(at: place)
      if run(seed: outcome.seed, faults: fewer, bug: bug).isGood {
        place += 1
      } else {
        faults = fewer
        didShrink = true
      }
    }
    return run(seed: outcome.seed, faults: faults, bug: bug, keepsTrace: true)
  }

  /// What a developer needs of a run that went wrong: what happened, and how to have exactly that again.
  public static func report(_ outcome: Outcome) -> String {
    let list = outcome.faults.map(\.description).joined(separator: ",")
    var text = "the simulation of seed \(outcome.seed) goes wrong with \(outcome.faults.count) faults:\n"
    for fault in outcome.faults { text += "  \(fault)\n" }
    text += "what is wrong:\n"
    for violation in outcome.violations { text += "  \(violation)\n" }
    text += "the steps (step, time, process, what):\n"
    for line in outcome.trace { text += "  \(line)\n" }
    text += "to run it again: PURCHASES_SIM_SEED=\(outcome.seed) PURCHASES_SIM_FAULTS='\(list)'"
    return text + " swift test --filter SimulationTests.plays"
  }
}
