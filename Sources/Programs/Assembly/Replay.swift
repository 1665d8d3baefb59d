import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Runs a stage with state again from recorded input into another store. The live group, its offsets, the live store and
/// all topics stay as they are.
public struct Replay {
  public struct Outcome: Sendable {
    public var records: Int64
    public var outputs: Int64
    public var seconds: Double
    /// False when it was stopped before the end; the same command goes on from there.
    public var isComplete: Bool
  }

  public static let group = "replay"
  static let progressMilliseconds: Int64 = 100

  private let deployment: Deployment
  private let stage: any Stage

  public init(_ deployment: Deployment, stage: any Stage) {
    self.deployment = deployment
    self.stage = stage
  }

  /// - Parameter progress: told of records done and records in all.
  public func run(
    from log: any EventLog, into store: any Store, until stop: StopSignal, progress: (Int64, Int64) -> Void
  ) throws -> Outcome {
    let watch = Stopwatch()
    let topics = stage.inputs.map { deployment.topics.name($0) }
    let reader = try store.reader()
    let resumed = try reader.positions(stage: stage.name.rawValue).compactMapValues(\.next)
    reader.close()
    let replay = try ReplayLog(source: log, topics: topics, resumed: resumed)
    var settings = RunnerSettings(topics: deployment.topics, group: Self.group, instance: Self.group)
    settings.isReplay = true
    let handed = Handed(
      StageRunner(
        stage: stage, log: replay, store: store, settings: settings, clock: deployment.clock,
        // What it would say was said when it happened.
        logger: Logger(clock: deployment.clock, minimum: .error), metrics: Metrics()))
    let done = StopSignal()
    let worker = Worker<RunnerFailure?>(name: "replay") {
      do throws(RunnerFailure) {
        try handed.runner.run(until: done)
        return nil
      } catch { return error }
    }
    while !worker.isDone, !stop.isSet {
      let (now, total) = replay.progress
      progress(now, total)
      if now == total { break }
      stop.wait(milliseconds: Self.progressMilliseconds)
    }
    done.set()
    if let failure = worker.wait() { throw failure }
    let (now, total) = replay.progress
    return Outcome(records: now, outputs: replay.outputs, seconds: watch.seconds, isComplete: now == total)
  }

  /// The runner belongs to its thread alone from the moment it is handed over.
  private final class Handed: @unchecked Sendable {
    let runner: StageRunner
    init(_ runner: StageRunner) { self.runner = runner }
  }

  /// Writes into the log what a person is about to do. No entry, no action.
  public static func record(
    _ action: String, _ arguments: [String], reason: String, deployment: Deployment, log: any EventLog
  ) throws {
    let act = OperatorActed(
      actID: UUID().uuidString.lowercased(), operatorName: NSUserName(), reason: reason, action: action,
      arguments: arguments)
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let record = ReceivedRecord(.operatorActed(act)).produced(
      to: deployment.topics, source: "/purchases/tool", at: deployment.clock.now())
    for result in producer.publishAndWait([record]) { _ = try result.get() }
  }
}
