import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

@Suite struct OrderIndependenceTests {
  /// 7,700 histories in worlds of 100, and 2,500 in one; each world is played in its own order, shuffled, and shuffled with duplicates.
  static let worlds = getenv("WORLDS").flatMap { Int(String(cString: $0)) } ?? 77
  static let historiesPerWorld = 100

  static let seed: UInt64 =
    getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 0...UInt64(Int64.max))

  @Test func anyOrderEndsTheSame() async {
    print("order independence: SEED=\(Self.seed), \(Self.worlds * Self.historiesPerWorld) histories")
    await withTaskGroup(of: Void.self) { group in
      for world in 0..<Self.worlds {
        group.addTask { Self.play(world) }
      }
    }
  }

  /// One log with thousands of accounts in it.
  @Test func anyOrderEndsTheSameForThousandsOfAccounts() { Self.play(Self.worlds, histories: 2_500) }

  /// A fold that forgets what every other record said ends differently in another order.
  @Test func anOrderThatMattersIsFound() {
    var dice = SeededRandom(seed: Self.seed)
    var items: [History.Item] = []
    for history in 0..<Self.historiesPerWorld { items += History(number: history + 1, &dice).items }
    let worlds = [items, items.shuffled(using: &dice)].map { items in
      Self.run(items, ticks: 0, partitions: 3, &dice) { stage in
        stage.name == .entitlements
          ? FaultyStage(stage) { record, actions in record.coordinates.offset % 2 == 0 ? actions : [] } : stage
      }
    }
    #expect(worlds[0].digest(at: Self.end) != worlds[1].digest(at: Self.end))
  }

  static func play(_ world: Int, histories: Int = historiesPerWorld) {
    var dice = SeededRandom(seed: seed &+ UInt64(world) &* 1_000_003)
    var items: [History.Item] = []
    for history in 0..<histories { items += History(number: history + 1, &dice).items }
    let expected = run(items, ticks: 0, partitions: 3, &dice)
    var shuffled = items.shuffled(using: &dice)
    for _ in 0..<items.count / 4 {
      shuffled.insert(items[Int(dice.roll(0...Int64(items.count - 1)))], at: Int(dice.roll(0...Int64(shuffled.count))))
    }
    let other = run(shuffled, ticks: 5, partitions: 5, &dice)
    for instant in [end / 3, end, end + 3 * History.grid] {
      let (one, two) = (expected.digest(at: instant), other.digest(at: instant))
      #expect(one.accounts > Int64(histories / 2))
      #expect(
        one.hex == two.hex,
        "SEED=\(seed) world \(world): \(one == two ? "" : difference(expected, other, at: instant))")
    }
    check(expected, world)
    check(other, world)
  }

  /// The first account that two worlds disagree about, in both.
  static func difference(_ a: World, _ b: World, at instant: Int64) -> String {
    let (a, b) = (a.states(at: instant), b.states(at: instant))
    for key in Set(a.keys).union(b.keys).sorted() where a[key] != b[key] {
      return "\(key): \(a[key] ?? "-") or \(b[key] ?? "-")"
    }
    return "no account"
  }

  /// The last tick: all that Apple signed is in by then, and of what was bought some is over and some is not.
  static let end = History.horizon

  /// As the samples, with a season that ends within the histories.
  static let catalogue = Samples.catalogue(
    String(decoding: Samples.catalogue.json, as: UTF8.self).replacing("P30D", with: "PT2S").replacing(
      #""products":["#,
      with: #""products":[{"id":"pro.plus","type":"auto-renewable","group":"plus","level":1,"entitlements":["plus"]},"#)
  )

  static func run(
    _ items: [History.Item], ticks: Int64, partitions: Int32, _ dice: inout SeededRandom,
    fault: (any Stage) -> any Stage = { $0 }
  ) -> World {
    let world = World(catalogue, partitions: partitions, fault: fault)
    // Log time passes while the facts come in: some are in the future then, some long past.
    let start = dice.roll(0...end)
    for (index, item) in items.enumerated() {
      let now = start + Int64(index) * (end - start) / Int64(items.count)
      world.pass(item.event, key: item.key, at: now)
      if ticks > 0, dice.chance(Int64(items.count) / ticks) { world.tick(now) }
    }
    world.tick(end)
    return world
  }

  /// What was published is what the facts say, and versions have no gap.
  static func check(_ world: World, _ number: Int) {
    for row in world.entitlements.tables.rows(.account) {
      guard let account = try? AccountRow(row) else {
        Issue.record("an account can't be read")
        continue
      }
      let now = Access.active(account.state.facts, world.catalogue, at: Instant(milliseconds: end))
      let published = account.state.published
      #expect(
        published.map(\.entitlement) == now.map(\.entitlement) && published.map(\.state) == now.map(\.state),
        "SEED=\(seed) world \(number) account \(account.account)")
      #expect(account.state.dueAt.map { $0.milliseconds > end } ?? true)
    }
    var versions: [String: [Int64]] = [:]
    for row in world.entitlements.tables.unordered(.change) {
      versions[row.key.values[1].text ?? "", default: []].append(row.key.values[2].integer ?? 0)
    }
    for (account, versions) in versions {
      #expect(versions.sorted() == (1...Int64(versions.count)).map { $0 })
      #expect(world.row(account)?.version == Int64(versions.count))
    }
    #expect(world.quarantined.isEmpty, "\(world.quarantined.prefix(1))")
  }
}
