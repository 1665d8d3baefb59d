import PurchasesContracts
import PurchasesCore
import PurchasesKafka

/// The entitlements stage beside Kafka Streams with exactly_once_v2 and a RocksDB store.
extension Bench {
  /// Ours is ahead of it.
  private static let streamsFloor = 1.0
  /// Milliseconds: of those tried (docs/speed.md) the quickest for it.
  private static let streamsCommitInterval = 2_000
  /// Its threads, and with two of them both cores are at work.
  private static let streamsThreads = [1, 2]

  func streams(measured rounds: Int) throws -> [Row] {
    guard !streams.isEmpty else {
      notes.append("SKIPPED: KAFKA STREAMS, which could not be fetched (it takes mvn, Maven Central and java)")
      return []
    }
    say("Kafka Streams")
    var tried: [(threads: Int, rate: Double)] = []
    for threads in Self.streamsThreads { tried.append((threads, try runStreams(threads).rate)) }
    guard let best = tried.max(by: { $0.rate < $1.rate }) else { return [] }
    notes.append(
      "Kafka Streams: "
        + tried.map { "\(Spread.text($0.rate, 0)) records/s on \($0.threads) thread\($0.threads == 1 ? "" : "s")" }
        .joined(separator: ", ") + "; measured on \(best.threads)")
    var row = Row(
      "entitlements on SQLite, Streams",
      beside:
        "Kafka Streams, exactly_once_v2, a RocksDB store read and written once per record, the same records passed on",
      unit: "records", floor: Self.streamsFloor)
    try row.measure(rounds) {
      try scratch { prefix, group in
        try withStore("SQLite") { store in
          try Child.own(["child", "stage", StageName.entitlements.rawValue, brokers, store, prefix, group]).sample()
        }
      }
    } limit: {
      try runStreams(best.threads)
    }
    for pair in row.pairs where pair.ours.count != pair.limit.count {
      throw BenchFailure("streams: \(pair.ours.count) records worked off, Kafka Streams found \(pair.limit.count)")
    }
    return [row]
  }

  private func runStreams(_ threads: Int) throws -> Sample {
    try scratch { prefix, group in
      let state = "\(folder)/\(group)"
      defer { File.removeFolder(state) }
      let sample = try Child(
        "/usr/bin/env",
        [
          "java", "-XX:+UseParallelGC", "-Xms1g", "-Xmx1g", "-cp", streams, "Streams", brokers, group,
          StageRun.topics.name(.owned),
          prefix + ScratchTopics.loop, state, "\(threads)", "\(Self.streamsCommitInterval)",
        ]
      ).sample()
      try ScratchTopics(brokers: brokers, prefix: prefix).remove(of: group)
      return sample
    }
  }
}
