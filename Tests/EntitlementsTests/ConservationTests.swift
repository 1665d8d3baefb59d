import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesOwnership
import PurchasesTestKit
import Testing

/// Both stages with a log between them whose partitions are worked off in any order, as processes that lag behind each
/// other do: what one account hands on waits in the other's partition.
private final class Streams {
  static let partitions: Int32 = 3
  let topics = TopicSettings(partitions: partitions)
  let ownership: InMemoryStage
  let entitlements: InMemoryStage
  private var places = InMemoryPlaces(partitions: partitions)
  /// By topic and partition.
  private var waiting: [String: [[StoredRecord]]]
  private(set) var owned: [StoredRecord] = []
  private(set) var written: [StoredRecord] = []
  private(set) var quarantined: [String] = []
  /// The planted bug: a log that loses what one account hands on to another.
  var losesWhatIsHandedOn = false

  init(_ policy: RestorePolicy) {
    ownership = InMemoryStage(OwnershipStage(OwnershipSettings(restorePolicy: policy)), topics: topics)
    entitlements = InMemoryStage(EntitlementsStage(catalogue: Samples.catalogue), topics: topics)
    let none = [[StoredRecord]](repeating: [], count: Int(Self.partitions))
    waiting = [topics.name(.verified): none, topics.name(.owned): none]
  }

  func say(_ event: VerifiedEvent, key: String, at milliseconds: Int64) {
    put(event.record(key: key, at: milliseconds, topics: topics))
  }

  private func put(_ produced: ProducedRecord) {
    // What is sent back to the beginning comes through verification as it is.
    if produced.topic == topics.name(.received) {
      let event = VerifiedEvent.noted(FactNoted(type: .accessOrdered, data: produced.record.value ?? []))
      let key = String(decoding: produced.record.key ?? [], as: UTF8.self)
      return say(event, key: key, at: produced.record.timestamp.milliseconds)
    }
    let stored = places.place(produced)
    if waiting[produced.topic] == nil { return written.append(stored) }
    if losesWhatIsHandedOn, produced.topic == topics.name(.owned),
      String(decoding: produced.record.value ?? [], as: UTF8.self).contains("handed-on")
    {
      return
    }
    waiting[produced.topic]?[Int(stored.coordinates.partition)].append(stored)
  }

  /// Works off one record of any partition; false when none is left.
  func step(_ dice: inout SeededRandom) -> Bool {
    let places = [Topic.verified, .owned].flatMap { topic in
      (0..<Int(Self.partitions)).map { (topics.name(topic), $0) }
    }.filter { !(waiting[$0.0]?[$0.1].isEmpty ?? true) }
    guard let (topic, partition) = places.randomElement(using: &dice),
      let record = waiting[topic]?[partition].removeFirst()
    else { return false }
    let stage = topic == topics.name(.owned) ? entitlements : ownership
    if topic == topics.name(.owned) { owned.append(record) }
    let actions = stage.actions(record)
    for action in actions { if case .quarantine(let reason, _) = action { quarantined.append(reason) } }
    for output in stage.records(record, actions) { put(output) }
    return true
  }

  /// Both stages' tables, as one store has them.
  var reader: InMemoryStoreReader {
    let reader = InMemoryStoreReader()
    for row in ownership.tables.unordered(.alias) { reader.put(row) }
    for table in [Table.answer, .account, .ledger, .balance] {
      for row in entitlements.tables.unordered(table) { reader.put(row) }
    }
    return reader
  }
}

/// What was said to a world, kept the plainest way, and what must come of it.
private struct Said {
  /// All statements of each consumable.
  var purchases: [String: [SampleTransaction]] = [:]
  var spends: [(account: String, key: String)] = []
  var adjustments: [String: Int64] = [:]
  var orders: [(account: String, id: String)] = []
  var merged: Set<String> = []

  /// The newest statement counts: later, then revoked.
  func worth() -> Int64 {
    purchases.values.reduce(0) { sum, statements in
      let newest = statements.max { a, b in
        a.signed == b.signed ? a.revoked == nil && b.revoked != nil : a.signed < b.signed
      }
      guard let newest else { return sum }
      let worth = 100 * (newest.quantity ?? 1)
      guard newest.revoked != nil else { return sum + worth }
      guard let percentage = newest.percentage else { return sum }
      return sum + worth - (worth * percentage * 2 + 100_000) / 200_000
    }
  }
}

@Suite struct ConservationTests {
  static let seed: UInt64 =
    getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 0...UInt64(Int64.max))
  static let worlds = getenv("WORLDS").flatMap { Int(String(cString: $0)) } ?? 120

  private static func name(_ number: Int64) -> String { "aaaaaaaa-0000-4000-8000-00000000000\(number)" }

  private static func play(_ seed: UInt64, losesWhatIsHandedOn: Bool = false) -> (Streams, Said) {
    var dice = SeededRandom(seed: seed)
    let policies: [RestorePolicy] = [.keep, .transfer, .share]
    let streams = Streams(policies[Int(dice.roll(0...2))])
    streams.losesWhatIsHandedOn = losesWhatIsHandedOn
    var said = Said()
    let accounts: ClosedRange<Int64> = 1...6
    func order(_ order: AccessOrdered.Order, _ id: String, on account: String, at: Int64) {
      let event = ReceivedEvent.ordered(
        AccessOrdered(
          environment: .production, account: Account(account)!, order: order, orderID: id, operatorName: "op",
          reason: "r"))
      streams.say(VerifiedEvent(fact: event), key: ReceivedRecord(event).key, at: at)
      said.orders.append((account, id))
    }
    for now in 1...Int64(dice.roll(20...80)) {
      let account = name(dice.roll(accounts))
      switch dice.roll(1...12) {
      case 1...5:
        let id = "90\(dice.roll(1...8))"
        var sample = SampleTransaction(
          id, "coins.100", .consumable, signed: dice.roll(1...40), purchased: 1,
          quantity: Int64(id.last == "1" ? 3 : 1),
          token: dice.chance(3) ? name(dice.roll(accounts)) : nil)
        if dice.chance(3) {
          sample.revoked = sample.signed
          // One date and one percentage: two statements of one moment differ in nothing else.
          sample.percentage = sample.signed.isMultiple(of: 2) ? sample.signed * 1_111 : nil
        }
        said.purchases[id, default: []].append(sample)
        let key = "Production/\(id)"
        for _ in 0...(dice.chance(4) ? 1 : 0) {
          streams.say(
            sample.reported(by: account, as: dice.chance(3) ? .paymentRestored : .paymentPurchased), key: key, at: now)
        }
      case 6, 7:
        let key = "k\(dice.roll(1...12))"
        let spend = ReceivedEvent.spendRequested(
          SpendRequested(
            environment: .production, account: Account(account)!, unit: CreditUnit("coins")!,
            amount: dice.roll(1...120),
            idempotencyKey: key))
        streams.say(VerifiedEvent(fact: spend), key: "Production/\(account)", at: now)
        said.spends.append((account, key))
      case 8:
        let id = "a\(dice.roll(1...6))/\(account)"
        let amount = said.adjustments[id] ?? (dice.chance(2) ? 1 : -1) * dice.roll(1...50)
        said.adjustments[id] = amount
        order(.adjust(CreditUnit("coins")!, amount: amount), id, on: account, at: now)
      case 9:
        order(
          .transfer(OriginalTransactionID("90\(dice.roll(1...8))")!, to: Account(name(dice.roll(accounts)))!),
          "t\(now)",
          on: account, at: now)
      case 10, 11:
        let into = name(dice.roll(accounts))
        order(.merge(into: Account(into)!), "m\(now)", on: account, at: now)
        if into != account { said.merged.insert(account) }
      default:
        let claim = ReceivedEvent.claimed(
          PurchaseClaimed(
            environment: .production, account: Account(account)!,
            originalTransaction: OriginalTransactionID("90\(dice.roll(1...8))")!, attempt: "c\(now)"))
        streams.say(VerifiedEvent(fact: claim), key: ReceivedRecord(claim).key, at: now)
      }
      for _ in 0..<dice.roll(0...3) { _ = streams.step(&dice) }
    }
    while streams.step(&dice) {}
    return (streams, said)
  }

  /// Two accounts that were merged into each other at one time: one of them keeps what both have.
  private static func isMergedIntoItself(_ account: AccountRow, _ streams: Streams) -> Bool {
    var next = account.state.merge?.into
    for _ in 0..<10 {
      guard let now = next else { return false }
      if now == account.account { return true }
      let row = streams.entitlements.tables.row(AccountRow.key(.production, now)).flatMap { try? AccountRow($0) }
      next = row?.state.merge?.into
    }
    return true
  }

  /// What is wrong with a world in which nothing is left to do.
  private static func faults(_ streams: Streams, _ said: Said) throws -> [String] {
    var faults: [String] = streams.quarantined
    let reader = streams.reader
    var sums: [String: Int64] = [:]
    var lines: [String: Int64] = [:]
    var spends: [String: Int] = [:]
    for row in streams.entitlements.tables.unordered(.ledger) {
      let line = try LedgerLine(row)
      let account = row.key.values[1].text ?? ""
      sums[line.counterpart, default: 0] += line.amount
      lines[account, default: 0] += line.amount
      // By whom it was asked for, and under which key.
      if line.counterpart == "spent" {
        let origin = line.entry.hasPrefix("from:") ? String(line.entry.dropFirst(5)) : "\(account)/\(line.entry)"
        spends[origin, default: 0] += 1
      }
    }
    for row in streams.entitlements.tables.unordered(.account) {
      let account = try AccountRow(row)
      let balance = account.state.balance(of: CreditUnit("coins")!)
      let table =
        streams.entitlements.tables.row(
          RowKey(.balance, row.key.values + [.text("coins")]))?["amount"].integer ?? 0
      if balance != lines[account.account.text, default: 0] || balance != table {
        faults.append("\(account.account): \(balance), lines \(lines[account.account.text] ?? 0), table \(table)")
      }
      let held = account.state.facts.purchases.reduce(Int64(0)) { $0 + ($1.booking?.booked ?? 0) }
      if account.state.merge != nil, balance != held, !isMergedIntoItself(account, streams) {
        faults.append("\(account.account) was merged and keeps \(balance - held)")
      }
    }
    if sums["transfer", default: 0] != 0 { faults.append("transfers sum up to \(sums["transfer"] ?? 0)") }
    if sums["store", default: 0] != said.worth() {
      faults.append("the store's side is \(sums["store"] ?? 0), the purchases' worth \(said.worth())")
    }
    let adjusted = said.adjustments.values.reduce(0, +)
    if sums["operator", default: 0] != adjusted {
      faults.append("adjusted by \(sums["operator"] ?? 0), not \(adjusted)")
    }
    for (origin, count) in spends where count > 1 { faults.append("\(origin) was spent \(count) times") }
    for (account, key) in said.spends {
      let answer = try reader.answer(.production, Account(account)!, "spend:\(key)")
      let isDone = spends["\(account)/spend:\(key)"] == 1
      if answer?.outcome != (isDone ? .done : .refused) {
        faults.append("\(key) of \(account): \(answer?.outcome.rawValue ?? "no answer"), spent: \(isDone)")
      }
    }
    for (account, id) in said.orders {
      if try reader.answer(.production, Account(account)!, "order:\(id)") == nil {
        faults.append("order \(id) on \(account) has no answer")
      }
    }
    return faults
  }

  @Test(
    "credits are conserved under purchases, refunds, reversals, spends, adjustments, transfers, merges, in any order")
  func creditsAreConserved() throws {
    print("conservation: SEED=\(Self.seed), \(Self.worlds) worlds")
    for world in 0..<Self.worlds {
      let seed = Self.seed &+ UInt64(world)
      let (streams, said) = Self.play(seed)
      let faults = try Self.faults(streams, said)
      #expect(faults.isEmpty, "SEED=\(seed) WORLDS=1: \(faults)")
      // The same input again: the same lines, whatever order the partitions are taken in.
      let shadow = InMemoryStage(EntitlementsStage(catalogue: Samples.catalogue), topics: streams.topics)
      for partition in (0..<Streams.partitions).reversed() {
        for record in streams.owned where record.coordinates.partition == partition { _ = shadow.feed(record) }
      }
      for table in [Table.ledger, .balance, .answer, .account] {
        #expect(shadow.tables.rows(table) == streams.entitlements.tables.rows(table), "SEED=\(seed): \(table.name)")
      }
      guard faults.isEmpty else { break }
    }
  }

  @Test("a log that loses what is handed on is found out")
  func plantedLoss() throws {
    for world in 0..<40 where try !Self.faults(Self.play(UInt64(world), losesWhatIsHandedOn: true)).isEmpty { return }
    Issue.record("nothing was noticed")
  }
}

extension ConservationTests {
  private static func faults(_ played: (Streams, Said)) throws -> [String] { try faults(played.0, played.1) }
}
