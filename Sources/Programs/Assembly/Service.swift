import Foundation
import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesGateway
import PurchasesHTTPServer
import PurchasesRunner
import Synchronization

/// Stages and, where asked for, the gateway, in one process: what `run`, `gateway`, `stage` and `demo` start.
public final class Service: Sendable {
  public let deployment: Deployment
  private let log: any EventLog
  private let store: (any Store)?
  private let stages: [RunningStage]
  /// Of the entitlements stage, where it is one of them.
  private let history: CatalogueHistory?
  private let watch: CatalogueWatch?
  private let escrow: EscrowGauges?
  private let stop: StopSignal
  private let beginning: Beginning
  private let parts = Mutex(Parts())

  private struct Parts {
    var gateway: Gateway?
    var producer: (any LogProducer)?
    var reader: (any StoreReader)?
    var health: HTTPServer?
    /// Stage loops that have not ended.
    var running = 0
  }

  private final class RunningStage: Sendable {
    let name: StageName
    let topics: [Topic]
    let group: String
    let health: StageHealth
    let worker: Worker<RunnerFailure?>

    init(name: StageName, topics: [Topic], group: String, health: StageHealth, worker: Worker<RunnerFailure?>) {
      self.name = name
      self.topics = topics
      self.group = group
      self.health = health
      self.worker = worker
    }
  }

  /// The stop was asked for before all was open, while something could not be reached: an end as good as any other.
  public struct Stopped: Error {}

  /// Whose catalogues the entitlements stage goes by.
  public enum Catalogues: Sendable {
    /// That of the file, published by the service itself, and whatever is published later.
    case file(CatalogueFile)
    case published

    var file: CatalogueFile? { if case .file(let file) = self { file } else { nil } }
  }

  /// How long the gateway may take for the requests in hand when it is stopped: above a delivery in a healthy cluster.
  static let gatewayStopSeconds = 10.0
  static let producerStopMilliseconds: Int64 = 10_000
  /// How often idleness is asked of the log.
  static let idlePollMilliseconds: Int64 = 50

  /// - Parameters:
  ///   - stages: all but entitlements.
  ///   - entitlements: the catalogue that this stage works by from now on, or those that were published; nil: it runs elsewhere.
  ///   - appStore: whom the stages may ask what only Apple knows; nil where nobody may.
  ///   - isPatient: whether a log or a store that can't be reached is waited for, for a minute, and a new catalogue comes
  ///     into force when other processes have heard of it, too.
  public init(
    _ deployment: Deployment, stages: [any Stage], entitlements: Catalogues?, appStore: (any AppStore)? = nil,
    isPatient: Bool = false, stop: StopSignal
  ) throws {
    self.deployment = deployment
    self.stop = stop
    let beginning = Beginning(stop: stop, logger: deployment.logger, isPatient: isPatient)
    self.beginning = beginning
    let log = try beginning.open("log") { try deployment.openLogWithTopics() }
    self.log = log
    var history: CatalogueHistory?
    var stages = stages
    store = try beginning.open("store") {
      guard entitlements != nil || stages.contains(where: \.hasState) else { return nil }
      let store = try deployment.openStore()
      if let entitlements {
        var catalogues = CatalogueLog(log, deployment)
        let group = deployment.group(.entitlements)
        do {
          history = try KeptCatalogue.keep(
            entitlements.file, clock: deployment.clock, lead: isPatient ? KeptCatalogue.leadMilliseconds : 0, in: store,
            group: group, &catalogues)
        } catch let superseded as SupersededCatalogue {
          // A service that is started again after a newer one was published goes by the newer one.
          guard isPatient else { throw UsageError(superseded.description) }
          CatalogueWatch.setRefused(true, deployment)
          deployment.logger.error(
            "catalogue refused; the one in force goes on", ["reason": superseded.description])
          history = try KeptCatalogue.keep(nil, clock: deployment.clock, lead: 0, in: store, group: group, &catalogues)
        }
      }
      return store
    }
    self.history = history
    if let history {
      let place = stages.firstIndex { $0.name == .auditing } ?? stages.endIndex
      stages.insert(EntitlementsStage(history: history), at: place)
    }
    let source = StageSource()
    escrow = try beginning.open("store") { [store] in
      guard let store, stages.contains(where: { $0.name == .ownership }) else { return nil }
      return EscrowGauges(try store.reader(), clock: deployment.clock)
    }
    var started: [RunningStage] = []
    for stage in stages {
      let settings = deployment.runner(stage.name)
      let runner = StageRunner(
        stage: stage, source: stage.name == .entitlements ? source : nil, log: log, store: stage.hasState ? store : nil,
        appStore: appStore, settings: settings,
        clock: deployment.clock, logger: deployment.logger, metrics: deployment.metrics)
      let handed = Handed(runner)
      let worker = Worker<RunnerFailure?>(name: stage.name.rawValue) {
        do throws(RunnerFailure) {
          try handed.runner.run(until: stop)
          return nil
        } catch {
          // One stage that can't go on ends the process: whoever started it sees which and why.
          stop.set()
          return error
        }
      }
      started.append(
        RunningStage(
          name: stage.name, topics: stage.inputs, group: settings.group, health: runner.health, worker: worker))
    }
    self.stages = started
    if isPatient, let entitlements, let history, let store {
      watch = CatalogueWatch(
        entitlements.file, history, deployment, log: log, store: store, source: source, stop: stop)
    } else {
      watch = nil
    }
  }

  /// The runner belongs to its thread alone from the moment it is handed over.
  private final class Handed: @unchecked Sendable {
    let runner: StageRunner
    init(_ runner: StageRunner) { self.runner = runner }
  }

  /// Opens the gateway; answers the port that it listens on.
  public func openGateway(_ settings: Gateway.Settings) throws -> UInt16 {
    let producer = try log.producer()
    // The stages may run elsewhere; their answers are in the store all the same.
    let reader = try beginning.open("store") {
      try (store ?? deployment.openStore()).reader()
    }
    let metrics = deployment.metrics
    let probes = Gateway.Probes(
      dead: { [self] in dead }, unready: { [self] in unready }, metrics: { [self] in measured },
      answered: { answered in
        metrics.count(
          "purchases_http_answers_total", "Answers by route and status",
          ["route": answered.route, "status": String(answered.status)])
        metrics.count("purchases_http_events_total", "Events taken in over HTTP", by: answered.accepted)
        metrics.count("purchases_http_refused_total", "Events refused over HTTP", by: answered.refused)
      })
    let gateway: Gateway
    do throws(GatewayError) {
      gateway = try Gateway(settings, producer: producer, store: reader, clock: deployment.clock, probes: probes)
    } catch {
      switch error {
      case .unprotected: throw UsageError("--listen: \(error)")
      case .token: throw UsageError("--token: \(error)")
      case .server: throw error
      }
    }
    parts.withLock {
      $0.gateway = gateway
      $0.producer = producer
      $0.reader = reader
    }
    return gateway.port
  }

  /// Serves `/livez`, `/readyz` and `/metrics` for a process without a gateway.
  public func openHealth(_ address: Address) throws -> UInt16 {
    let server = try HTTPServer(HTTPServer.Settings(address: address.host, port: address.port)) { [self] request in
      switch "/" + request.path.joined(separator: "/") {
      case "/livez": Self.answer(dead.map { [$0] } ?? [])
      case "/readyz": Self.answer(unready)
      case "/metrics":
        HTTPResponse(status: 200, contentType: "text/plain; version=0.0.4", body: Array(measured.utf8))
      default: HTTPResponse(status: 404, contentType: "text/plain", body: Array("no such path\n".utf8))
      }
    }
    parts.withLock { $0.health = server }
    return server.port
  }

  /// The metrics, with the lag of each stage as it is at this moment.
  private var measured: String {
    let progress = GroupProgress(log: log, topics: deployment.topics)
    defer { progress.close() }
    for stage in stages {
      for topic in stage.topics {
        // A log that can't be reached shows in /readyz; the other metrics are worth having all the same.
        guard let lag = try? progress.lag(group: stage.group, topic: topic) else { continue }
        deployment.metrics.set(
          "purchases_lag_records", "Offsets between a stage and the end of a topic, transaction marks included",
          ["stage": stage.name.rawValue, "topic": topic.rawValue], to: Double(lag))
      }
    }
    escrow?.measure(into: deployment.metrics)
    return deployment.metrics.text
  }

  private static func answer(_ reasons: [String]) -> HTTPResponse {
    let text = reasons.isEmpty ? "ok\n" : reasons.joined(separator: "\n") + "\n"
    return HTTPResponse(status: reasons.isEmpty ? 200 : 503, contentType: "text/plain", body: Array(text.utf8))
  }

  private var dead: String? {
    stages.first { !$0.health.isLive }.map { "stage \($0.name.rawValue) hangs or has failed" }
  }

  private var unready: [String] {
    var reasons = stages.filter { !$0.health.isReady }.map {
      "stage \($0.name.rawValue) is \(Self.text($0.health.state))"
    }
    do { try log.probe() } catch { reasons.append("log: \(error.kind.rawValue)") }
    if let reader = parts.withLock({ $0.reader }) {
      do { try reader.probe() } catch { reasons.append("store: \(error.kind.rawValue)") }
    }
    return reasons
  }

  private static func text(_ state: StageHealth.State) -> String {
    switch state {
    case .starting: "starting"
    case .working: "working"
    case .retrying: "retrying"
    case .stopped: "stopped"
    case .failed: "failed"
    }
  }

  /// Waits until the stages of this process have worked off all there is, or the stop is asked for. Stages are asked in the
  /// order in which records travel: once one is idle, only those after it can get more to do.
  /// - Parameter last: the last stage that is asked; those behind it may still have work.
  public func waitUntilIdle(upTo last: StageName = .auditing) throws {
    let progress = GroupProgress(log: log, topics: deployment.topics)
    let reader = try store?.reader()
    defer {
      progress.close()
      reader?.close()
    }
    while !stop.isSet {
      if try isIdle(progress, reader, upTo: last) { return }
      stop.wait(milliseconds: Self.idlePollMilliseconds)
    }
  }

  private func isIdle(
    _ progress: GroupProgress, _ reader: (any StoreReader)?, upTo last: StageName
  ) throws -> Bool {
    let now = deployment.clock.now()
    // A stage that has not compared log and store yet may have to publish, or to stop.
    guard stages.allSatisfy({ $0.health.hasRecovered }) else { return false }
    for stage in stages {
      for topic in stage.topics where try !progress.isIdle(group: stage.group, topic: topic, now: now) { return false }
      guard let reader else { continue }
      switch stage.name {
      case .entitlements:
        // What is due becomes a tick, and the tick a record to be worked off.
        let horizon = now.milliseconds - RunnerSettings.settlingMilliseconds
        let due = try reader.rows(.account, where: "due_at", atMost: horizon, limit: 1)
        if !due.isEmpty { return false }
        // So do accounts that the newest catalogue has not been over yet.
        for version in history?.outdated(at: now) ?? []
        where try !reader.rows(.account, where: "catalogue_version", is: .text(version), limit: 1).isEmpty {
          return false
        }
      case .auditing:
        guard try AuditProgress.isSettled(reader) else { return false }
      case .verification, .ownership: break
      }
      if stage.name == last { break }
    }
    return true
  }

  /// Stops what takes work in, then the stages, and answers why one of them failed, if one did.
  public func close() -> RunnerFailure? {
    let (gateway, producer, reader, health) = parts.withLock { parts in
      defer { parts = Parts() }
      return (parts.gateway, parts.producer, parts.reader, parts.health)
    }
    gateway?.stop(within: Self.gatewayStopSeconds)
    if let producer {
      let lost = producer.close(withinMilliseconds: Self.producerStopMilliseconds)
      if lost > 0 {
        deployment.logger.error("records not delivered; none of them was answered 2xx", ["count": String(lost)])
      }
    }
    stop.set()
    var failure: RunnerFailure?
    for stage in stages {
      if let ended = stage.worker.wait() { failure = failure ?? ended }
    }
    watch?.wait()
    health?.stop(within: 1)
    reader?.close()
    escrow?.close()
    store?.close()
    log.close()
    return failure
  }
}
