import PurchasesContracts
import PurchasesCore
import PurchasesVerification

/// One core judging signed transactions, each with its whole verdict, evidence included.
struct VerificationRun {
  let proofs: [[UInt8]]
  let judge: ProofJudge

  /// Different proofs under one chain, as a day brings them.
  static let proofCount = 3_000

  init() throws {
    let day = Day(accounts: 4_000)
    proofs = try day.transactions(Self.proofCount)
    judge = ProofJudge(try Day.verification(day.scenario.authority))
  }

  var averageBytes: Int { proofs.reduce(0) { $0 + $1.count } / proofs.count }

  private func verify(_ index: Int) throws -> VerifiedProof {
    let verdict = judge.judge(
      proofs[index % proofs.count], expecting: .transaction, at: Day.begin.advanced(byMilliseconds: 172_800_000))
    guard case .verified(let proof) = verdict else { throw BenchFailure("a genuine transaction was not verified") }
    return proof
  }

  /// Judges for so many seconds of processor time, which is what `openssl speed` counts too.
  func run(seconds: Double) throws -> Sample {
    for index in 0..<100 { _ = try verify(index) }
    let (began, begin) = (Gauge.now, Gauge.cpu)
    var count = 0
    while Gauge.cpu - begin < seconds {
      // The clock is asked rarely: asking takes time too.
      for _ in 0..<200 {
        let proof = try verify(count)
        guard proof.evidence["proof"] != nil else { throw BenchFailure("a verdict without evidence") }
        count += 1
      }
    }
    return Sample(count: count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
  }

  /// Judges so many and tells how memory stood after a fifth of them and at the end.
  func run(count: Int) throws -> Sample {
    let (began, begin) = (Gauge.now, Gauge.cpu)
    var early = 0
    for index in 0..<count {
      if index == count / 5 { early = Gauge.memory }
      _ = try verify(index)
    }
    return Sample(count: count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin, memory: (early, Gauge.memory))
  }
}
