import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

/// Properties of worlds with thousands of accounts, whose purchases are claimed, transferred, refunded and spent at random; and
/// of each property that a bug breaks it.
@Suite struct PropertyTests {
  static let seed: UInt64 =
    getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 0...UInt64(Int64.max))

  /// Three accounts each.
  static let histories = 1_000
  /// Enough for each bug to show.
  static let fewer = 300

  static let horizon = RandomHistory.horizon

  static func arrivals(_ count: Int, _ policy: RestorePolicy, seed: UInt64 = seed) -> [RandomHistory.Arrival] {
    let all = (0..<count).flatMap {
      RandomHistory(seed: seed &+ UInt64($0) &* 1_000_003, number: $0, policy: policy).arrivals
    }
    return all.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
  }

  static func play(
    _ arrivals: [RandomHistory.Arrival], _ policy: RestorePolicy, fault: (any Stage) -> any Stage = { $0 }
  ) -> World {
    let world = World(RandomHistory.catalogue, partitions: 4, policy: policy, fault: fault)
    for (index, arrival) in arrivals.enumerated() {
      world.pass(arrival.event, key: arrival.key, at: arrival.at)
      if index % 1_000 == 999 { world.tick(arrival.at) }
    }
    world.tick(max(arrivals.last?.at ?? 0, horizon))
    return world
  }

  @Test(arguments: [RestorePolicy.keep, .transfer])
  func theyHoldOverThousandsOfAccounts(policy: RestorePolicy) throws {
    print("properties: SEED=\(Self.seed), policy \(policy.rawValue)")
    let arrivals = Self.arrivals(Self.histories, policy)
    let world = Self.play(arrivals, policy)
    let properties = try Properties(world, arrivals)
    #expect(world.entitlements.tables.unordered(.account).count > Self.histories)
    #expect(properties.refundedAccounts() > 50)
    for (name, wrong) in [
      ("effects", properties.oneEffectPerKey()), ("credits", properties.conservation()),
      ("owners", properties.atMostOneOwner()), ("refunds", properties.noAccessAfterRefund(at: Self.horizon)),
    ] {
      #expect(wrong.isEmpty, "SEED=\(Self.seed) \(name): \(wrong.count), such as \(wrong.first ?? "")")
    }
  }

  // MARK: Union over chains

  /// An account may use what one of its purchases alone would give it, and nothing else. Seasons are no part of it: one
  /// begins where the other ends.
  static func union(_ fault: (any Stage) -> any Stage = { $0 }) throws -> [String] {
    var wrong: [String] = []
    for number in 0..<fewer {
      let history = RandomHistory(seed: seed &+ UInt64(number) &* 1_000_003, policy: .keep)
      guard try !history.arrivals.contains(where: { try isApart($0.event) }) else { continue }
      let whole = play(history.arrivals, .keep, fault: fault)
      let parts = Dictionary(grouping: history.arrivals, by: \.key).values.map { play($0, .keep) }
      for instant in history.instants {
        for account in history.accounts {
          let together = whole.active(account, at: instant)
          let alone = Set(parts.flatMap { $0.active(account, at: instant) }).sorted()
          if together != alone { wrong.append("history \(number), \(account) at \(instant): \(together), \(alone)") }
        }
      }
    }
    return wrong
  }

  private static func isApart(_ event: VerifiedEvent) throws -> Bool {
    switch event {
    case .noted(let fact): if case .ordered = try fact.event() { true } else { false }
    case .verified(let event):
      try event.parts.contains { try $0.kind == .transaction && $0.transactionRevision().type == .nonRenewing }
    case .rejected, .pending: false
    }
  }

  @Test func anAccountMayUseTheUnionOfItsPurchases() throws {
    let wrong = try Self.union()
    #expect(wrong.isEmpty, "SEED=\(Self.seed): \(wrong.count), such as \(wrong.first ?? "")")
  }

  // MARK: Each can fail

  private func wrong(
    in stage: StageName, policy: RestorePolicy = .keep, by check: (Properties) -> [String],
    fault: @escaping @Sendable (StoredRecord, [Action]) -> [Action]
  ) throws -> [String] {
    // Always the same ones: whether a bug shows must not be a matter of luck.
    let arrivals = Self.arrivals(Self.fewer, policy, seed: 1)
    let world = Self.play(arrivals, policy) { $0.name == stage ? FaultyStage($0, fault) : $0 }
    return check(try Properties(world, arrivals))
  }

  private static func isOdd(_ record: StoredRecord) -> Bool { record.coordinates.offset % 2 == 1 }

  private static func type(_ action: Action) -> EventType? {
    if case .emit(let event) = action { event.type } else { nil }
  }

  @Test func aCreditThatIsGivenTwiceIsFound() throws {
    let found = try wrong(
      in: .entitlements, by: { $0.oneEffectPerKey() },
      fault: { _, actions in actions + actions.filter { Self.type($0) == .creditAdded }.prefix(1) })
    #expect(!found.isEmpty)
  }

  @Test func aLineThatIsNotWrittenIsFound() throws {
    let found = try wrong(
      in: .entitlements, by: { $0.conservation() },
      fault: { record, actions in
        actions.filter {
          if case .write(let write) = $0, Self.isOdd(record) { write.key.table.name != Table.ledger.name } else { true }
        }
      })
    #expect(!found.isEmpty)
  }

  @Test func aSecondOwnerIsFound() throws {
    // The old owner is never told.
    let found = try wrong(
      in: .ownership, policy: .transfer, by: { $0.atMostOneOwner() },
      fault: { _, actions in
        let index = actions.firstIndex { Self.type($0) == .purchaseTransferred }
        return actions.enumerated().filter { $0.offset != index }.map(\.element)
      })
    #expect(!found.isEmpty)
  }

  @Test func accessThatARefundLeavesIsFound() throws {
    let found = try wrong(
      in: .entitlements, by: { $0.noAccessAfterRefund(at: Self.horizon) },
      fault: { record, actions in
        // A tick that came to nothing would come again, for ever.
        guard record.record.headerText("ce_type") != EventType.clockTicked.wireName else { return actions }
        return actions.contains { Self.type($0) == .entitlementRevoked } ? [] : actions
      })
    #expect(!found.isEmpty)
  }

  @Test func aPurchaseThatIsForgottenIsFound() throws {
    let found = try Self.union { stage in
      stage.name == .entitlements
        ? FaultyStage(stage) { record, actions in Self.isOdd(record) ? [] : actions } : stage
    }
    #expect(!found.isEmpty)
  }
}
