import PurchasesContracts
import PurchasesCore
import PurchasesKafkaLog

/// The entitlements stage on a store of a large deployment's size, beside the same records on an empty one.
extension Bench {
  /// Rate on the large store over that on the empty one.
  private static let largeFloor = 0.7
  /// KiB that the stage's process may have had resident at any time.
  private static let largeMemory = 300 * 1024

  func large() throws -> (Row, [Claim]) {
    let accounts = LargeAccounts(count: largeAccounts)
    let path = "\(folder)/large.db"
    defer { File.removeDatabase(path) }
    say("large: filling a store with \(accounts.count) accounts of \(LargeAccounts.purchases) transactions")
    let filled = try Child.own(["child", "fill", path, "\(accounts.count)"]).sample()
    let gigabytes = Double(LargeStore.bytes(path)) / 1e9
    say("large: \(Spread.text(gigabytes, 1)) GB in \(Spread.text(filled.seconds, 0)) s")
    _ = try Child.own(["child", "slices", brokers, "\(accounts.count)", "\(largeSlice)", "\(pairs)"]).sample()
    var row = Row(
      "entitlements on \(accounts.count) accounts", beside: "the same records on an empty store", unit: "records",
      floor: Self.largeFloor)
    var slice = 0
    func run(_ store: String, _ group: String?) throws -> Sample {
      try scratch { prefix, own in
        try Child.own(
          [
            "child", "stage", StageName.entitlements.rawValue, brokers, store, prefix, group ?? own,
            LargeSlices.prefix(slice),
          ]
        ).sample()
      }
    }
    try row.measure(pairs) {
      slice += 1
      return try run(path, LargeStore.group)
    } limit: {
      try withStore("SQLite") { try run($0, nil) }
    }
    for pair in row.pairs where pair.ours.count != pair.limit.count || pair.ours.count != largeSlice {
      throw BenchFailure("large: \(pair.ours.count) and \(pair.limit.count) records of \(largeSlice) worked off")
    }
    let peak = row.pairs.compactMap(\.ours.peak).max() ?? 0
    let small = row.pairs.compactMap(\.limit.peak).max() ?? 0
    let resident = Claim(
      name: "memory on \(accounts.count) accounts",
      text: "at most \(peak / 1024) MiB resident, mapped files included (\(small / 1024) MiB on an empty store); "
        + "\(filled.count) transactions in a file of \(Spread.text(gigabytes, 1)) GB",
      limit: "below \(Self.largeMemory / 1024) MiB",
      values: [("kibPeak", Double(peak)), ("kibPeakEmpty", Double(small)), ("gigabytes", gigabytes)],
      isOK: peak > 0 && peak < Self.largeMemory)
    return (row, [resident])
  }
}

/// What comes to the accounts next, in as many topics as there are runs: a run on the large store finds it as the one before
/// left it, and records that nobody has worked off.
struct LargeSlices {
  let accounts: LargeAccounts
  let size: Int

  static func prefix(_ slice: Int) -> String { "large-\(slice)." }

  /// Fills the topics `owned` of so many slices.
  func publish(_ count: Int, brokers: String) throws -> Sample {
    let (began, begin) = (Gauge.now, Gauge.cpu)
    let log = try KafkaLog(url: "kafka://\(brokers)")
    defer { log.close() }
    var story = Story(accounts: accounts)
    for slice in 1...count {
      let topics = TopicSettings(prefix: Self.prefix(slice))
      try log.ensure(topics.specs)
      let places = (0..<size).map { story.next($0) }
      try Inputs.publish(to: topics.name(.owned), log) { body in
        for (place, (index, turn, occasion)) in places.enumerated() {
          let logged = Day.begin.advanced(byMilliseconds: 120_000 + Int64(slice * size + place))
          try body(accounts.record(index, turn: turn, occasion, logged: logged))
        }
      }
    }
    return Sample(count: count * size, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
  }

  /// Of ten records five report the next purchase of some account of the store, three are Apple's word on one of those, one
  /// repeats what the store has answered long ago, and one is a new account's first.
  private struct Story {
    let accounts: LargeAccounts
    private var drawn: UInt64 = 0
    private var newcomers = 0
    private var turns: [Int: Int] = [:]
    private var reported: [(Int, Int)] = []

    init(accounts: LargeAccounts) { self.accounts = accounts }

    private mutating func below(_ bound: Int) -> Int {
      drawn += 1
      return Int(LargeAccounts.mixed(drawn &* 0x9E37_79B9) % UInt64(bound))
    }

    mutating func next(_ place: Int) -> (index: Int, turn: Int, LargeAccounts.Occasion) {
      switch place % 10 {
      case 1, 4, 7:
        let (index, turn) = reported[reported.count - 1 - below(min(reported.count, 2_000))]
        return (index, turn, .notification)
      case 5: return (below(accounts.count), below(LargeAccounts.purchases), .report)
      case 8:
        newcomers += 1
        return (accounts.count + newcomers - 1, 0, .report)
      default:
        let index = below(accounts.count)
        let turn = turns[index] ?? LargeAccounts.purchases
        turns[index] = turn + 1
        reported.append((index, turn))
        if reported.count > 10_000 { reported.removeFirst(5_000) }
        return (index, turn, .report)
      }
    }
  }
}
