import PurchasesLocalAppStore
import PurchasesRunner
import Synchronization

/// Has a scenario played and tells on standard error how far it is and what it waits for.
struct ScenarioWatch {
  private static let tickMilliseconds: Int64 = 100
  /// A stop is answered within a second: requests that are in hand for longer than this are left to themselves.
  private static let graceMilliseconds: Int64 = 500
  /// So often a line is added where there is no terminal to write over.
  private static let pause = Duration.seconds(5)

  private let player: ScenarioPlayer

  /// How far the play is, from its thread to this one.
  private final class Pace: Sendable {
    private let progress = Mutex<ScenarioPlayer.Progress?>(nil)

    func set(_ now: ScenarioPlayer.Progress) { progress.withLock { $0 = now } }
    var text: String? { progress.withLock { $0.map { "\($0.steps) of \($0.allSteps) steps" } } }
  }

  init(_ player: ScenarioPlayer) { self.player = player }

  func play(until stop: StopSignal) -> PlayReport {
    let player = player
    let over = StopSignal()
    let pace = Pace()
    let worker = Worker(name: "scenario") {
      let report = player.play { pace.set($0) }
      over.set()
      return report
    }
    var told: (at: ContinuousClock.Instant, requests: Int)?
    let start = ContinuousClock.now
    var lastProgress = start
    while !over.wait(milliseconds: Self.tickMilliseconds) {
      if stop.isSet {
        player.stop()
        // A client that waits for its permit may do so for as long as the gateway holds the question.
        guard over.wait(milliseconds: Self.graceMilliseconds) else { return player.soFar }
        break
      }
      let now = ContinuousClock.now
      let trouble = player.trouble
      if trouble.requests > told?.requests ?? 0, told.map({ now - $0.at >= Self.pause }) ?? true {
        told = (now, trouble.requests)
        Output.endProgress()
        Output.error(
          "the gateway does not take requests, they are sent again: \(trouble.requests) so far; \(trouble.reason)")
      }
      guard let text = pace.text else { continue }
      if Output.isTerminal {
        Output.progress(text)
      } else if now - lastProgress >= Self.pause {
        lastProgress = now
        Output.error(text)
      }
    }
    Output.endProgress()
    return worker.wait()
  }
}
