import PurchasesContracts

/// Calls of a process at which it can be interrupted.
public enum SimulatedCall: String, Sendable, Hashable, CaseIterable {
  case join = "log.join"
  case poll = "log.poll"
  case committed = "log.committed"
  case start = "log.start"
  case hold = "log.pause"
  case release = "log.release"
  case membership = "log.membership"
  case begin = "log.begin"
  case finish = "log.finish"
  case close = "log.close"
  case bounds = "log.bounds"
  case offsets = "log.offsets"
  case read = "log.read"
  case open = "store.open"
  case claim = "store.claim"
  case fetch = "store.fetch"
  case commit = "store.commit"
  case amend = "store.amend"
  case unpublished = "store.unpublished"
  case pause = "pause"

  var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// One thing that goes wrong in a simulation, at a place that still means something when other faults are taken away.
public enum SimulatedFault: Sendable, Hashable, CustomStringConvertible {
  /// The so-manieth time that a process makes a call.
  public struct Place: Sendable, Hashable {
    public var process: Int
    public var call: SimulatedCall
    public var count: Int
  }

  public enum AtCall: Sendable, Hashable, CustomStringConvertible {
    /// The call fails and had no effect.
    case fail(String)
    /// It had its effect, and fails.
    case failAfter(String)
    /// The process is gone before, or after, the effect; it is started anew.
    case crash
    case crashAfter
    /// The process stands still for so long and then goes on as if nothing had been.
    case stall(Int64)
    /// The same, and meanwhile a successor is started under its name.
    case replaced(Int64)
    case commit(OfCommit)

    public var description: String {
      switch self {
      case .fail(let kind): "fail=\(kind)"
      case .failAfter(let kind): "fail-after=\(kind)"
      case .crash: "crash"
      case .crashAfter: "crash-after"
      case .stall(let milliseconds): "stall=\(milliseconds)"
      case .replaced(let milliseconds): "replaced=\(milliseconds)"
      case .commit(let fault): fault.rawValue
      }
    }

    init?(_ text: Substring) {
      let parts = text.split(separator: "=", maxSplits: 1)
      switch (parts.first, parts.count) {
      case ("fail", 2): self = .fail(String(parts[1]))
      case ("fail-after", 2): self = .failAfter(String(parts[1]))
      case ("crash", 1): self = .crash
      case ("crash-after", 1): self = .crashAfter
      case ("stall", 2), ("replaced", 2):
        guard let milliseconds = Int64(parts[1]) else { return nil }
        self = parts[0] == "stall" ? .stall(milliseconds) : .replaced(milliseconds)
      default:
        guard let fault = OfCommit(rawValue: String(text)) else { return nil }
        self = .commit(fault)
      }
    }
  }

  /// What can become of a commit that the log is at.
  public enum OfCommit: String, Sendable, Hashable {
    /// The log gives it up.
    case aborted
    /// It is committed, and the answer is lost.
    case answerLost = "answer-lost"
    /// The client gives it up while the request is under way; it comes to the log later.
    case endLate = "end-late"
    /// The request never comes to the log.
    case endLost = "end-lost"
  }

  public enum AtStep: String, Sendable, Hashable, CaseIterable {
    /// The groups come together anew, for no reason that a member knows.
    case rebalance
    /// All members are put out of their groups, or one of each.
    case expel
    case expelOne = "expel-one"
    /// The log, or the store, answers nobody for a while.
    case logOutage = "log-outage"
    case storeOutage = "store-outage"
    /// One process is stopped in an orderly way and started again.
    case restart0 = "restart-0"
    case restart1 = "restart-1"
    case restart2 = "restart-2"
  }

  /// What people can do to a deployment that stands: it must not go on as if nothing had been.
  public enum AtEnd: String, Sendable, Hashable, CaseIterable {
    case storeRestored = "store-restored"
    case storeDeleted = "store-deleted"
    case offsetsGone = "offsets-gone"
  }

  case call(Place, AtCall)
  case step(Int, AtStep)
  case end(AtEnd)

  /// As `description` writes it, and `PURCHASES_SIM_FAULTS` names it.
  public init?(_ text: Substring) {
    let parts = text.split(separator: ":")
    switch (parts.first, parts.count) {
    case ("end", 2):
      guard let end = AtEnd(rawValue: String(parts[1])) else { return nil }
      self = .end(end)
    case ("step", 3):
      guard let step = Int(parts[1]), let what = AtStep(rawValue: String(parts[2])) else { return nil }
      self = .step(step, what)
    case (_, 4):
      guard let process = Int(parts[0]), let call = SimulatedCall(rawValue: String(parts[1])),
        let count = Int(parts[2]), let what = AtCall(parts[3])
      else { return nil }
      self = .call(Place(process: process, call: call, count: count), what)
    default: return nil
    }
  }

  public var description: String {
    switch self {
    case .call(let place, let what): "\(place.process):\(place.call.rawValue):\(place.count):\(what)"
    case .step(let step, let what): "step:\(step):\(what.rawValue)"
    case .end(let what): "end:\(what.rawValue)"
    }
  }

  /// What it is, wherever it strikes.
  public var kind: String {
    switch self {
    case .call(let place, .stall): "\(place.call.rawValue):stall"
    case .call(let place, .replaced): "\(place.call.rawValue):replaced"
    case .call(let place, let what): "\(place.call.rawValue):\(what)"
    case .step(_, let what): "step:\(what.rawValue)"
    case .end: description
    }
  }

  /// A list as it is printed and read: separated by commas. Nil when one of them can't be read.
  public static func list(_ text: String) -> [SimulatedFault]? {
    var faults: [SimulatedFault] = []
    for part in text.split(separator: ",") {
      guard let fault = SimulatedFault(part) else { return nil }
      faults.append(fault)
    }
    return faults
  }

  // MARK: by chance

  private static func kinds(_ call: SimulatedCall) -> [AtCall] {
    let crashes: [AtCall] = [.crash, .crashAfter]
    return switch call {
    case .join, .claim, .amend: [.fail("unavailable"), .failAfter("unavailable")] + crashes
    case .commit:
      [.fail("unavailable"), .failAfter("unavailable"), .failAfter("unavailable"), .fail("conflict")] + crashes
    case .poll: [.fail("unavailable"), .fail("unavailable"), .crash]
    case .committed, .bounds, .offsets, .read, .open, .fetch, .unpublished: [.fail("unavailable"), .crash]
    case .start: [.fail("unavailable"), .failAfter("unavailable"), .fail("stale")] + crashes
    case .release: [.fail("unavailable"), .failAfter("unavailable")] + crashes
    case .hold: [.fail("unavailable"), .failAfter("unavailable")]
    case .membership: [.fail("stale"), .crash]
    case .begin: [.fail("stale"), .fail("aborted"), .fail("unavailable"), .failAfter("unavailable")] + crashes
    case .finish:
      [
        .commit(.aborted), .commit(.answerLost), .commit(.endLate), .commit(.endLost), .commit(.endLate),
        .fail("unavailable"), .failAfter("unavailable"), .failAfter("indefinite"),
      ] + crashes
    case .close, .pause: [.crash]
    }
  }

  /// How often a call is made in a run, about, and how often a fault is put there.
  private static let weights: [(call: SimulatedCall, weight: Int, upTo: Int)] = [
    (.finish, 6, 8), (.begin, 4, 8), (.commit, 6, 8), (.claim, 3, 5), (.committed, 2, 5), (.start, 2, 6),
    (.poll, 5, 60), (.release, 3, 3), (.unpublished, 2, 2), (.fetch, 2, 12), (.amend, 1, 2), (.membership, 1, 3),
    (.join, 1, 3), (.open, 1, 3), (.bounds, 1, 10), (.offsets, 1, 10), (.read, 1, 10), (.close, 1, 2), (.hold, 1, 3),
    (.pause, 1, 2),
  ]

  /// A list of faults for so many processes.
  static func some(_ random: inout SeededRandom, processes: Int) -> [SimulatedFault] {
    var faults: [SimulatedFault] = []
    let count = Int.random(in: 0...10, using: &random)
    let total = weights.reduce(0) { $0 + $1.weight }
    for _ in 0..<count {
      if Int.random(in: 0..<8, using: &random) == 0, let what = AtStep.allCases.randomElement(using: &random) {
        faults.append(.step(Int.random(in: 10...500, using: &random), what))
        continue
      }
      var pick = Int.random(in: 0..<total, using: &random)
      guard
        let weight = weights.first(where: { weight in
          pick -= weight.weight
          return pick < 0
        })
      else { continue }
      let what: AtCall?
      switch Int.random(in: 0..<20, using: &random) {
      case 0: what = .replaced(Int64.random(in: 0...2_500, using: &random))
      case 1..<6: what = .stall(Int64.random(in: 50...4_000, using: &random))
      default: what = kinds(weight.call).randomElement(using: &random)
      }
      guard let what else { continue }
      let place = Place(
        process: Int.random(in: 0..<processes, using: &random), call: weight.call,
        count: Int.random(in: 1...weight.upTo, using: &random))
      faults.append(.call(place, what))
    }
    if Int.random(in: 0..<12, using: &random) == 0, let end = AtEnd.allCases.randomElement(using: &random) {
      faults.append(.end(end))
    }
    return faults
  }
}
