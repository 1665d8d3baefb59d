extension Simulation {
  /// Orders of steps that are tried without a fault: to leave one out shifts all dice after it, and what went wrong for
  /// another reason may go wrong again only in another order.
  private static let orders: UInt64 = 6

  /// Fewer faults that still make a run go wrong, by leaving out one after the other until none can be spared; with all
  /// steps.
  public static func shrunk(_ outcome: Outcome, bug: PlantedBug? = nil) -> Outcome {
    var dice = outcome.dice
    var faults = outcome.faults
    /// Whether it goes wrong with these too, and then these are all.
    func suffice(_ fewer: [SimulatedFault]) -> Bool {
      for order in 0..<orders where !run(seed: outcome.seed, dice: dice &+ order, faults: fewer, bug: bug).isGood {
        dice &+= order
        faults = fewer
        return true
      }
      return false
    }
    // What never came to pass is no part of it.
    _ = suffice(faults.filter { Set(outcome.struck).contains($0) })
    var place = 0
    while place < faults.count {
      var fewer = faults
      fewer.remove(at: place)
      // One that was needed may be needed no more when another one is gone.
      place = suffice(fewer) ? 0 : place + 1
    }
    return run(seed: outcome.seed, dice: dice, faults: faults, bug: bug, keepsTrace: true)
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
    text += "to run it again: PURCHASES_SIM_SEED=\(outcome.seed) PURCHASES_SIM_DICE=\(outcome.dice)"
    return text + " PURCHASES_SIM_FAULTS='\(list)' swift test --filter SimulationTests.plays"
  }
}
