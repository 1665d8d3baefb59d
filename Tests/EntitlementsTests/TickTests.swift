import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesTestKit
import Testing

/// More is due at one instant than one tick settles.
@Suite struct TickTests {
  private func account(_ number: Int) -> String { "aaaaaaaa-0000-4000-8000-0000000000\(number + 10)" }

  private func world(_ accounts: Int, atOnce: Int) -> World {
    let world = World(partitions: 1, atOnce: atOnce)
    for number in 0..<accounts {
      let id = "\(number + 1)"
      let gold = SampleTransaction(
        id, original: id, "silver.monthly", .autoRenewable, signed: 100, purchased: 100, expires: 1000,
        lineItem: "9\(id)", token: account(number))
      world.notify(gold, "N\(id)", "SUBSCRIBED", at: 100)
    }
    return world
  }

  private func ticks(_ world: World) -> [StoredRecord] {
    world.records.filter { $0.record.headerText("ce_type") == "clock.ticked.v1" }
  }

  @Test func oneTickLeadsToTheNextUntilNothingIsDue() throws {
    let world = world(10, atOnce: 3)
    let place = TopicPartition(world.topics.name(.owned), 0)
    #expect(world.tick(999).isEmpty && ticks(world).isEmpty)
    let events = world.tick(1000)
    #expect(events.map(\.gist).filter { $0 == "expired member" }.count == 10)
    #expect(Set(events.map(\.account)).count == 10 && events.count == 20)
    // One that the clock brought, and three that it led to, all of one instant.
    let ticks = ticks(world)
    #expect(ticks.count == 4)
    let instants = try ticks.map { try OwnedEvent(type: .clockTicked, data: $0.record.value ?? []) }.map {
      if case .ticked(let tick) = $0 { tick.instant.milliseconds } else { Int64(0) }
    }
    #expect(instants == [1000, 1000, 1000, 1000])
    let now = Instant(milliseconds: 1001)
    #expect(world.entitlements.scheduled(place, now: now, workedOff: now).isEmpty)
  }

  @Test func anEvenNumberEndsWithATickThatFindsNothing() {
    let world = world(6, atOnce: 3)
    #expect(world.tick(1000).count == 12)
    #expect(ticks(world).count == 3)
  }

  /// A log from before ticks said how many they settle.
  @Test func aTickWithoutALimitSettlesTwoThousand() throws {
    let world = world(10, atOnce: 4)
    let shadow = InMemoryStage(EntitlementsStage(history: world.history, atOnce: 4), topics: world.topics)
    world.tick(1000)
    let place = TopicPartition(world.topics.name(.owned), 0)
    for stored in world.records where stored.coordinates.topicPartition == place {
      guard stored.record.headerText("ce_type") == "clock.ticked.v1" else {
        _ = shadow.feed(stored)
        continue
      }
      guard case .ticked(var tick) = try OwnedEvent(type: .clockTicked, data: stored.record.value ?? []) else {
        continue
      }
      #expect(tick.limit == 4 && tick.dueAt == Instant(milliseconds: 1000))
      (tick.limit, tick.dueAt) = (nil, nil)
      var record = stored.record
      record.value = OwnedEvent.ticked(tick).data
      let told = shadow.feed(StoredRecord(coordinates: stored.coordinates, record: record))
      // The first one settles all of them, and leads to no other.
      #expect(told.count { $0.topic == world.topics.name(.entitlements) } == 20)
      #expect(!told.contains { $0.topic == world.topics.name(.owned) })
      return
    }
    Issue.record("no tick")
  }

  /// 7.6: the ticks that ticks led to are in the log, and a replay makes the same ones.
  @Test func aReplayOfThemIsByteIdentical() {
    let world = world(10, atOnce: 4)
    world.tick(1000)
    let owned = world.records.filter { $0.coordinates.topic == world.topics.name(.owned) }
    // The limit stands in the ticks: that of the program which replays them is no matter.
    let shadow = InMemoryStage(EntitlementsStage(history: world.history, atOnce: 3), topics: world.topics)
    let replayed = owned.flatMap { shadow.feed($0) }
    let isTick = { (record: Record) in record.headerText("ce_type") == "clock.ticked.v1" }
    #expect(
      replayed.map(\.record).filter { !isTick($0) }
        == world.records.filter { $0.coordinates.topic != world.topics.name(.owned) }.map(\.record))
    #expect(replayed.map(\.record).filter(isTick) == ticks(world).dropFirst().map(\.record))
    #expect(shadow.tables.rows(.account) == world.entitlements.tables.rows(.account))
  }
}
