import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesVerification

/// One core judging signed transactions, each with its whole verdict, evidence included.
struct VerificationRun {
  let proofs: [[UInt8]]
  private let root: Certificate
  private let strangers: Strangers
  private let judge: ProofJudge

  /// Different proofs under one chain, as a day brings them.
  static let proofCount = 3_000
  /// Times at which the memory of a long run is looked at.
  private static let looks = 50
  /// One proof in so many comes under a chain that nobody saw before, which none of the caches may keep for ever.
  private static let strangerEvery = 20

  init() throws {
    let day = Day(accounts: 4_000)
    proofs = try day.transactions(Self.proofCount)
    root = day.scenario.authority.root
    strangers = Strangers(authority: day.scenario.authority.authority)
    judge = ProofJudge(try Day.verification(day.scenario.authority))
  }

  var averageBytes: Int { proofs.reduce(0) { $0 + $1.count } / proofs.count }

  private func verify(_ index: Int) throws { try Self.verify(proofs[index % proofs.count], judge) }

  static func verify(_ proof: [UInt8], _ judge: ProofJudge) throws {
    let verdict = judge.judge(proof, expecting: .transaction, at: Day.begin.advanced(byMilliseconds: 172_800_000))
    guard case .verified(let verified) = verdict, verified.evidence["proof"] != nil else {
      throw BenchFailure("a genuine transaction was not verified: \(verdict)")
    }
  }

  /// Judges for so many seconds of processor time, which is what `openssl speed` counts too.
  func run(seconds: Double) throws -> Sample {
    for index in 0..<100 { try verify(index) }
    return try Sample.while(seconds) { count in
      // The clock is asked rarely: asking takes time too.
      for index in count..<count + 200 { try verify(index) }
      return 200
    }
  }

  /// Judges so many, some under chains of their own, and tells how memory stood after a fifth of them and afterwards.
  func run(count: Int) throws -> Sample {
    let (began, begin) = (Gauge.now, Gauge.cpu)
    var watch = MemoryWatch()
    for index in 0..<count {
      if index % Self.strangerEvery == 0 {
        let payload = try CompactJWS.split(proofs[index % proofs.count]).payload
        try Self.verify(strangers.proof(index, payload: payload), judge)
      } else {
        try verify(index)
      }
      guard (index + 1) % max(1, count / Self.looks) == 0 else { continue }
      watch.look(isWarm: (index + 1) * 5 >= count)
      if (index + 1) % max(1, count / 10) == 0 {
        File.complain("bench: \(index + 1) verified, \(Gauge.memory) KiB, \(Int(Gauge.now - began)) s")
      }
    }
    return Sample(count: count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin, memory: watch.memory)
  }

  /// Writes what another program needs to judge the same proofs: `root.der`, and `tokens` with one a line.
  func write(to folder: String) throws {
    try File.write(root.der, to: folder + "/root.der")
    try File.write(Array(proofs.joined(separator: [0x0a])), to: folder + "/tokens")
  }
}
