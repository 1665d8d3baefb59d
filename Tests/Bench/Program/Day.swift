import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesEntitlements
import PurchasesLocalAppStore
import PurchasesOwnership
import PurchasesVerification

/// What is measured: a day of the local App Store, and the stages as its deployment has them.
struct Day {
  static let seed: UInt64 = 3
  /// 2025-06-01T00:00:00Z.
  static let begin = Instant(milliseconds: 1_748_736_000_000)

  let scenario: Scenario

  init(accounts: Int) { scenario = Scenario(seed: Self.seed, accounts: accounts, day: Self.begin) }

  /// The topic `received` at the end of the day, in the order of the day. Every proof is signed here, once.
  func received(_ body: (Record) throws -> Void) throws {
    for slot in scenario.slots {
      for lane in slot.lanes {
        for step in lane {
          switch step.action {
          case .report(let report), .finish(let report, _):
            try body(
              ReceivedRecord(line: report.body(scenario.authority)).record(source: "/bench", at: slot.at))
          case .notify(let notification):
            try body(
              ReceivedRecord(type: "store.notified", data: notification.body(scenario.authority))
                .record(source: "/bench", at: slot.at))
          case .seeBalance: break
          }
        }
      }
    }
  }

  /// Signed transactions that are genuine, each another one.
  func transactions(_ count: Int) throws -> [[UInt8]] {
    let judge = ProofJudge(try Self.verification(scenario.authority))
    var proofs: [[UInt8]] = []
    for slot in scenario.slots {
      for lane in slot.lanes {
        for case .report(let report) in lane.map(\.action) where report.type == .paymentPurchased {
          guard let proof = try ReceivedRecord(line: report.body(scenario.authority)).event.proof else { continue }
          guard case .verified = judge.judge(proof, expecting: .transaction, at: slot.at) else { continue }
          proofs.append(Array(proof.utf8))
          if proofs.count == count { return proofs }
        }
      }
    }
    throw BenchFailure("the day has only \(proofs.count) signed transactions, not \(count)")
  }

  static func verification(_ authority: LocalAuthority) throws -> VerificationSettings {
    try VerificationSettings(
      apps: [.init(bundleID: DemoCatalogue.bundleID, appAppleID: DemoCatalogue.appAppleID)],
      anchors: TrustAnchors([("local App Store", authority.root.der)]))
  }

  static func stage(_ name: StageName, _ topics: TopicSettings) throws -> any Stage {
    switch name {
    case .verification: VerificationStage(try verification(LocalAuthority(seed: seed)))
    case .ownership: OwnershipStage()
    case .entitlements: EntitlementsStage(catalogue: try Catalogue(parsing: DemoCatalogue.json))
    case .auditing: AuditingStage(try AuditSettings(topics: topics, name: "bench.example/audit", key: auditKey()))
    }
  }

  private static func auditKey() throws -> Ed25519PrivateKey {
    guard let key = Ed25519PrivateKey(seed: [UInt8](repeating: 7, count: 32)) else {
      throw BenchFailure("32 bytes are no Ed25519 seed")
    }
    return key
  }
}

/// The pipeline's clock stands still at the day's beginning: nothing is due and nothing is written but what the records
/// lead to, however long a run takes.
struct StillClock: Clock {
  func now() -> Instant { Day.begin }
}
