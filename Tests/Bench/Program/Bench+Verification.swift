import PurchasesRunner

/// What verifying costs, beside the signature checks that it can't do without.
extension Bench {
  private static let verifySeconds = 3
  /// One core and all of them follow each other so closely that what else the machine does falls on both.
  private static let coresSeconds = 2
  /// What each core must add, alone being one: 1.8 for two. It stands whatever the machine gives: a run that could not show it
  /// has not shown it.
  private static let coresFloor = 0.9
  /// Three signature checks and a fifth more.
  private static let coldFloor = 1 / 1.2

  /// Of all cores, what openssl gains on a machine with nothing else to do; below it, people are told why.
  private static let machineShare = 0.95

  func oneCore() throws -> Row {
    say("one core")
    var row = Row(
      "JWS verification, one core", beside: "openssl speed ecdsap256, verifications", unit: "proofs", floor: 0.85)
    try row.measure(pairs) {
      try Child.own(["child", "verify", "\(Self.verifySeconds)"]).sample().byCPU
    } limit: {
      try Self.checks(["256": 1])
    }
    return row
  }

  /// So many proofs a second as have these signatures each, at the rates of `openssl speed`.
  private static func checks(_ counts: KeyValuePairs<String, Double>) throws -> Sample {
    let rates = try OpenSSLSpeed.verifications(counts.map(\.key), seconds: verifySeconds)
    let seconds = counts.reduce(0) { $0 + $1.value / (rates[$1.key] ?? 1) }
    return Sample(rate: 1 / seconds)
  }

  /// All cores beside one by the clock; and, in the same rounds, what the machine gives `openssl speed` on as many.
  func bothCores() throws -> [Row] {
    let count = Cores.count
    guard count > 1 else {
      notes.append("SKIPPED: all cores beside one; this machine has one")
      return []
    }
    say("\(count) cores")
    var row = Row(
      "verification stage, \(count) cores", beside: "the same on one core, by the clock", unit: "proofs",
      floor: Self.coresFloor * Double(count))
    var machine = Row(
      "openssl speed, \(count) processes",
      beside: "openssl speed in one process, by the clock: what this machine gives",
      unit: "checks")
    for _ in 0..<pairs {
      try row.measure(1) {
        try Child.own(["child", "cores", "all", "\(Self.coresSeconds)"]).sample()
      } limit: {
        try Child.own(["child", "cores", "one", "\(Self.coresSeconds)"]).sample()
      }
      try machine.measure(1) {
        try Self.elapsed(count)
      } limit: {
        try Self.elapsed(1)
      }
    }
    let share = Spread(
      zip(row.pairs, machine.pairs).map { ours, machine in
        ours.ours.rate / ours.limit.rate / (machine.ours.rate / machine.limit.rate)
      })
    notes.append(
      "\(count) cores: what the stage gains by them is \(share.text) of what openssl speed gains by them, round by round; "
        + "a proof takes \(Spread(row.pairs.map { $0.limit.cpuRate / $0.ours.cpuRate }).text) of the processor time "
        + "that it takes where one core works alone")
    if machine.ratio.median < Double(count) * Self.machineShare {
      notes.append(
        "NOT ALL CORES ARE FREE: openssl itself gains \(machine.ratio.text), so the floor of \(count) cores can't be judged here"
      )
    }
    return [row, machine]
  }

  private static func elapsed(_ processes: Int) throws -> Sample {
    let rates = try OpenSSLSpeed.verifications(
      ["256"], seconds: coresSeconds, processes: processes, isElapsed: true)
    return Sample(rate: rates["256"] ?? 0)
  }

  func coldChains() throws -> [Row] {
    say("chains that nobody saw before")
    var apple = Row(
      "cold chain, Apple's curves", beside: "openssl speed, two checks on P-384 and one on P-256", unit: "proofs",
      floor: Self.coldFloor)
    var local = Row(
      "cold chain, all on P-256", beside: "openssl speed, three checks on P-256 (the local App Store's chains)",
      unit: "proofs")
    for _ in 0..<pairs {
      try apple.measure(1) {
        try Self.cold(.p384)
      } limit: {
        try Self.checks(["256": 1, "384": 2])
      }
      try local.measure(1) {
        try Self.cold(.p256)
      } limit: {
        try Self.checks(["256": 3])
      }
    }
    return [apple, local]
  }

  private static func cold(_ curve: ColdChains.Curve) throws -> Sample {
    try Child.own(["child", "cold", curve.rawValue, "\(verifySeconds)"]).sample().byCPU
  }

  /// Apple's library for Node on the same proofs.
  func apple(measured rounds: Int) throws -> [Row] {
    guard !apple.isEmpty else {
      notes.append("SKIPPED: Apple's library for Node, which could not be fetched (it takes npm, and its registry)")
      return []
    }
    say("Apple's library for Node")
    let run = try VerificationRun()
    try run.write(to: folder)
    notes.append("signed transactions of \(run.averageBytes) bytes on average, \(run.proofs.count) different ones")
    var row = Row(
      "beside Apple's Node library", beside: "@apple/app-store-server-library, one core, same proofs, no online checks",
      unit: "proofs")
    try row.measure(rounds) {
      try Child.own(["child", "verify", "\(Self.verifySeconds)"]).sample().byCPU
    } limit: {
      try Child(
        "/usr/bin/env",
        ["node", "Tests/Bench/apple_speed.cjs", apple, folder, "\(Self.verifySeconds)"]
      ).sample().byCPU
    }
    return [row]
  }
}
