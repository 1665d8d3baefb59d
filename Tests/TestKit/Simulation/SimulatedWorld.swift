import Dispatch
import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Time, chance and the order of steps of one simulation. Processes are threads, but only the one that holds the baton runs:
/// it gives it on at each call through a port, to whom the dice name. So one seed is one order of steps, and time is a number
/// that moves when nobody has anything to do.
///
/// Without processes it serves a conformance suite: then each call runs at once under a lock, and who waits turns time.
///
/// `@unchecked Sendable`: the state belongs to whoever holds the baton; without processes, to whoever holds the lock.
public final class SimulatedWorld: @unchecked Sendable {
  private struct Event {
    let at: Int64
    let number: Int
    let run: () -> Void
  }

  /// The date at which every simulation begins.
  static let epoch: Int64 = 1_764_460_800_000

  /// Milliseconds since the beginning.
  private(set) var now: Int64 = 0
  private(set) var steps = 0
  private(set) var switches = 0
  private var random: SeededRandom
  private var events: [Event] = []
  private var eventNumber = 0
  private(set) var processes: [SimulatedProcess] = []
  private let driver = SimulatedProcess(name: "driver", index: -1)
  private var isDriverReady: () -> Bool = { false }
  private let lock = NSRecursiveLock()

  /// What strikes at a call, by process, call and how often it was called.
  var callFaults: [SimulatedFault.Place: [SimulatedFault.AtCall]] = [:]
  /// What strikes at a step, in the order of steps, with what it does.
  var stepFaults: [(step: Int, run: () -> Void)] = []
  private(set) var struck: [SimulatedFault] = []
  var stepLimit = Int.max

  /// Starts a successor under a process's name.
  var replace: (SimulatedProcess) -> Void = { _ in }

  /// What must not have happened and did.
  private(set) var violations: [String] = []
  /// Set when the run can't go on; from then on all calls fail at once.
  private(set) var isAbandoned = false

  private var digest: UInt64 = 0xcbf2_9ce4_8422_2325
  private let keepsTrace: Bool
  private(set) var trace: [String] = []

  init(seed: UInt64, keepsTrace: Bool = false) {
    random = SeededRandom(seed: seed)
    self.keepsTrace = keepsTrace
  }

  /// Of all steps in their order: two runs with the same one were the same run.
  var traceDigest: UInt64 { digest }

  // MARK: dice

  func dice(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
  func dice(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  /// True once in so many.
  func oneIn(_ count: Int) -> Bool { dice(1...count) == 1 }

  // MARK: what happens by itself

  /// Has something happen after so many milliseconds, in its turn.
  func after(_ milliseconds: Int64, _ run: @escaping () -> Void) {
    let at = now + max(0, milliseconds)
    eventNumber += 1
    let place = events.firstIndex { $0.at > at } ?? events.count
    events.insert(Event(at: at, number: eventNumber, run: run), at: place)
  }

  func violate(_ what: @autoclosure () -> String) {
    guard !isAbandoned else { return }
    violations.append("at \(now) ms: \(what())")
    note(nil, "VIOLATION: \(violations[violations.count - 1])")
  }

  func note(_ process: SimulatedProcess?, _ text: @autoclosure () -> String) {
    guard keepsTrace else { return }
    trace.append("\(steps)\t\(now) ms\t\(process?.name ?? "-")\t\(text())")
  }

  private func mix(_ values: Int64...) {
    for value in values {
      digest = (digest ^ UInt64(bitPattern: value)) &* 0x100_0000_01b3
    }
  }

  // MARK: processes

  func process(_ name: String, _ body: @escaping (SimulatedProcess) -> Void) -> SimulatedProcess {
    let process = SimulatedProcess(name: name, index: processes.count)
    processes.append(process)
    let handed = Handed { [self] in
      process.baton.wait()
      body(process)
      process.hasEnded = true
      give(to: choose(process))
    }
    let thread = Thread { handed.run() }
    thread.stackSize = Self.stackBytes
    thread.start()
    return process
  }

  // Deep enough for a runner in a debug build.
  private static let stackBytes = 1 << 20

  /// Carries a body to its thread, which alone calls it.
  private final class Handed: @unchecked Sendable {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
  }

  /// Lets the processes go on until this holds, or the run can't go on. Called by the one who made the world.
  func run(until holds: @escaping () -> Bool) {
    isDriverReady = holds
    let next = choose(driver)
    if next === driver { return }
    give(to: next)
    driver.baton.wait()
  }

  var haveAllEnded: Bool { processes.allSatisfy(\.hasEnded) }

  /// Ends the run: every process comes to its end without doing anything more.
  func abandon(_ why: String?) {
    if let why { violate(why) }
    isAbandoned = true
    for process in processes { process.stop?.set() }
  }

  /// Breaks the ties between the world and what runs in it.
  func end() {
    events = []
    stepFaults = []
    isDriverReady = { false }
    replace = { _ in }
    for process in processes { process.wait = nil }
  }

  private func give(to process: SimulatedProcess) {
    switches += 1
    process.baton.signal()
  }

  /// Lets others go on, and returns when it is this one's turn again.
  fileprivate func yield(_ process: SimulatedProcess) {
    let next = choose(process)
    guard next !== process else { return }
    give(to: next)
    process.baton.wait()
  }

  private func choose(_ current: SimulatedProcess) -> SimulatedProcess {
    if steps > stepLimit, !isAbandoned { abandon("it does not come to rest within \(stepLimit) steps") }
    while true {
      if isAbandoned { return processes.first { !$0.hasEnded } ?? driver }
      while let first = stepFaults.first, first.step <= steps {
        stepFaults.removeFirst()
        first.run()
      }
      if isDriverReady() { return driver }
      let runnable = processes.filter { $0.canRun(at: now) }
      let due = events.prefix { $0.at <= now }.count
      guard runnable.count + due > 0 else {
        guard let next = nextInstant() else {
          abandon("nobody can go on: \(processes.filter { !$0.hasEnded }.map(\.name))")
          continue
        }
        now = next
        continue
      }
      // A process goes on for some calls as a rule: cheaper than a switch each time, and as real.
      if dice(0...1) == 0, runnable.contains(where: { $0 === current }) { return current }
      let pick = dice(0...runnable.count + due - 1)
      if pick < runnable.count { return runnable[pick] }
      let event = events.remove(at: pick - runnable.count)
      mix(now, -2, Int64(event.number))
      event.run()
    }
  }

  private func nextInstant() -> Int64? {
    var next = events.first?.at
    for process in processes where !process.hasEnded {
      if let at = process.nextInstant(after: now) { next = min(next ?? at, at) }
    }
    return next.map { max($0, now + 1) }
  }

  // MARK: calls

  /// A process is at a call: others may go on before it, and then what the faults say happens.
  fileprivate func arrive(_ link: SimulatedLink, _ call: SimulatedCall) -> SimulatedFault.AtCall? {
    guard let process = link.process else { return nil }
    steps += 1
    now += dice(0...1)
    yield(process)
    guard !link.isGone else { return nil }
    let count = process.calls[call, default: 0] + 1
    process.calls[call] = count
    mix(now, Int64(process.index), Int64(call.number), Int64(count))
    note(process, "\(call.rawValue) #\(count)")
    let place = SimulatedFault.Place(process: process.index, call: call, count: count)
    var strikes: SimulatedFault.AtCall?
    for fault in callFaults[place] ?? [] {
      struck.append(.call(place, fault))
      note(process, "FAULT \(fault)")
      switch fault {
      case .stall(let milliseconds): stand(process, milliseconds)
      case .replaced(let milliseconds):
        replace(process)
        stand(process, milliseconds)
      default: strikes = strikes ?? fault
      }
    }
    return strikes
  }

  private func stand(_ process: SimulatedProcess, _ milliseconds: Int64) {
    process.stalledUntil = now + milliseconds
    yield(process)
    note(process, "goes on")
  }

  func strike(_ fault: SimulatedFault) {
    struck.append(fault)
    mix(now, -3)
    note(nil, "FAULT \(fault)")
  }

  fileprivate func locked<T, E: Error>(_ body: () throws(E) -> T) throws(E) -> T {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }

  /// Without processes: time is turned until the answer is yes.
  fileprivate func turn(_ milliseconds: Int64, _ isReady: () -> Bool) -> Bool {
    let deadline = now + milliseconds
    while true {
      while let event = events.first, event.at <= now {
        events.removeFirst()
        event.run()
      }
      if isReady() { return true }
      guard now < deadline else { return false }
      now = min(deadline, max(now + 1, events.first?.at ?? deadline))
    }
  }
}

/// One process of a simulation, over all its lives.
final class SimulatedProcess {
  let name: String
  let index: Int
  fileprivate let baton = DispatchSemaphore(value: 0)
  /// What it waits for, and until when at most.
  fileprivate var wait: (deadline: Int64, isReady: () -> Bool)?
  /// It stands still until then, with all its threads.
  fileprivate var stalledUntil: Int64 = 0
  fileprivate(set) var hasEnded = false
  fileprivate var calls: [SimulatedCall: Int] = [:]
  /// Counts how often it was started.
  fileprivate(set) var life = 0
  /// Its present life ended in a crash.
  fileprivate(set) var hasCrashed = false
  /// Ends its present life in an orderly way.
  private(set) var stop: StopSignal?
  var failure: RunnerFailure?
  /// Another process has, or had, its name.
  var isReplaced = false

  init(name: String, index: Int) {
    self.name = name
    self.index = index
  }

  func begin() -> StopSignal {
    life += 1
    hasCrashed = false
    let stop = StopSignal()
    self.stop = stop
    return stop
  }

  fileprivate func canRun(at now: Int64) -> Bool {
    guard !hasEnded, stalledUntil <= now else { return false }
    guard let wait else { return true }
    return wait.deadline <= now || wait.isReady()
  }

  func isStalled(at now: Int64) -> Bool { !hasEnded && stalledUntil > now }

  fileprivate func nextInstant(after now: Int64) -> Int64? {
    if stalledUntil > now { return stalledUntil }
    return wait?.deadline
  }

  fileprivate func crash() {
    hasCrashed = true
    stop?.set()
  }
}

/// What one life of a process has of the world: through it go all its calls. A life that is over has no effect any more.
public final class SimulatedLink: Clock, Pacing, @unchecked Sendable {
  // Sendable because it is used by the thread that holds the baton, or under the world's lock.
  let world: SimulatedWorld
  let process: SimulatedProcess?
  let life: Int

  init(_ world: SimulatedWorld, _ process: SimulatedProcess? = nil) {
    self.world = world
    self.process = process
    life = process?.life ?? 0
  }

  /// It crashed, or the run is over.
  var isGone: Bool {
    guard let process else { return false }
    return world.isAbandoned || process.hasCrashed || process.life != life
  }

  var isStalled: Bool { process.map { $0.stalledUntil > world.now } ?? false }
  var stalledUntil: Int64 { process?.stalledUntil ?? 0 }
  var name: String { process.map { "\($0.name).\($0.life)" } ?? "-" }

  /// Waits for something, at most so long; answers whether it is there.
  func wait(_ milliseconds: Int64, _ isReady: @escaping () -> Bool) -> Bool {
    guard !isGone else { return false }
    guard let process else { return world.turn(milliseconds, isReady) }
    if isReady() { return true }
    process.wait = (world.now + milliseconds, isReady)
    world.yield(process)
    process.wait = nil
    return !isGone && isReady()
  }

  private static let gone = "this process is no more"

  /// One call of the log's port.
  func log<T>(_ call: SimulatedCall, _ body: () throws(LogFailure) -> T) throws(LogFailure) -> T {
    guard process != nil else { return try world.locked(body) }
    guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
    let fault = world.arrive(self, call)
    guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
    switch fault {
    case nil, .stall, .replaced, .commit:
      let value = try body()
      guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
      return value
    case .fail(let kind): throw LogFailure(LogFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail before")
    case .failAfter(let kind):
      _ = try body()
      throw LogFailure(LogFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail afterwards")
    case .crash: throw died()
    case .crashAfter:
      _ = try? body()
      throw died()
    }
  }

  private func died() -> LogFailure {
    process?.crash()
    return LogFailure(.unavailable, Self.gone)
  }

  /// One call of the store's port.
  func store<T>(_ call: SimulatedCall, _ body: () throws(StoreFailure) -> T) throws(StoreFailure) -> T {
    guard process != nil else { return try world.locked(body) }
    guard !isGone else { throw StoreFailure(.unavailable, Self.gone) }
    let fault = world.arrive(self, call)
    guard !isGone else { throw StoreFailure(.unavailable, Self.gone) }
    switch fault {
    case nil, .stall, .replaced, .commit: return try body()
    case .fail(let kind): throw StoreFailure(StoreFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail before")
    case .failAfter(let kind):
      _ = try body()
      throw StoreFailure(StoreFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail afterwards")
    case .crash, .crashAfter:
      if fault == .crashAfter { _ = try? body() }
      process?.crash()
      throw StoreFailure(.unavailable, Self.gone)
    }
  }

  /// The finish of a commit, which has faults of its own.
  func finish(_ body: (SimulatedFault.OfCommit?) throws(LogFailure) -> Void) throws(LogFailure) {
    guard process != nil else {
      return try world.locked { () throws(LogFailure) in try body(nil) }
    }
    guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
    let fault = world.arrive(self, .finish)
    guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
    switch fault {
    case nil, .stall, .replaced: try body(nil)
    case .commit(let fault): try body(fault)
    case .fail(let kind): throw LogFailure(LogFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail before")
    case .failAfter(let kind):
      try body(nil)
      throw LogFailure(LogFailure.Kind(rawValue: kind) ?? .unavailable, "made to fail afterwards")
    case .crash: throw died()
    case .crashAfter:
      try? body(nil)
      throw died()
    }
    guard !isGone else { throw LogFailure(.unavailable, Self.gone) }
  }

  // MARK: Clock and Pacing

  public func now() -> Instant { Instant(milliseconds: SimulatedWorld.epoch + world.now) }
  public func milliseconds() -> Int64 { world.now }
  public func chance(_ range: ClosedRange<Int64>) -> Int64 { isGone ? range.lowerBound : world.dice(range) }

  public func pause(milliseconds: Int64, until stop: StopSignal) {
    guard !isGone else { return }
    _ = world.arrive(self, .pause)
    _ = wait(milliseconds) { stop.isSet }
  }
}
