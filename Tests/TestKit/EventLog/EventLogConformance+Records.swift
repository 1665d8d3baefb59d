import Foundation
import PurchasesContracts
import PurchasesCore

let topicCases: [EventLogCase] = [
  EventLogCase("topics are made once and keep their partitions") { test in
    let topic = try test.topic("made", partitions: 3)
    try requireEqual(try test.log.partitionCount(of: topic), 3, "partitions")
    _ = try test.topic("made", partitions: 3)
    try requireFailure([.refused], "ensuring another number of partitions") {
      _ = try test.topic("made", partitions: 5)
    }
    try requireEqual(try test.another().partitionCount(of: topic), 3, "partitions seen by another handle")
    try requireEqual(try test.log.bounds(of: topic).count, 3, "partitions with bounds")
    try test.log.probe()
  },
  EventLogCase("an unknown topic is refused by name") { test in
    let unknown = test.name("unknown")
    try requireFailure([.refused], "partitionCount") { _ = try test.log.partitionCount(of: unknown) }
    try requireFailure([.refused], "bounds") { _ = try test.log.bounds(of: unknown) }
  },
]

let recordCases: [EventLogCase] = [
  EventLogCase("keys are placed by the Java client's partitioner") { test in
    // Hashes that the Java client's own tests name, with the sign bit cleared.
    let hashes: [(String, Int32)] = [
      ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
      ("a-little-bit-longer-string", -1_486_304_829), ("abc", 479_470_107),
      ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ]
    for (key, hash) in hashes {
      for count: Int32 in [1, 4, 7, .max] {
        try requireEqual(
          Partitioner.partition(forKey: Array(key.utf8), of: count), (hash & .max) % count,
          "partition of \(key) among \(count)")
      }
    }
    let topic = try test.topic("keys", partitions: 5)
    let keys = hashes.map(\.0) + (0..<100).map { "Production/\($0 * 7919)" }
    let places = try test.publish(keys.map { record(topic, key: $0, "v") })
    for (key, place) in zip(keys, places) {
      try requireEqual(
        place.partition, Partitioner.partition(forKey: Array(key.utf8), of: 5), "partition of the key \(key)")
    }
    let committed = try test.publish(keys.map { record(topic, key: $0, "again") }, on: test.another())
    try requireEqual(committed.map(\.partition), places.map(\.partition), "the same keys from another handle")
  },
  EventLogCase("records without a key go to some partition, and a named partition wins over the key") { test in
    let topic = try test.topic("unkeyed", partitions: 3)
    let unkeyed = try test.publish((0..<9).map { record(topic, "\($0)") })
    try require(unkeyed.allSatisfy { (0..<3).contains($0.partition) }, "partitions of unkeyed records: \(unkeyed)")
    let named = try test.publish((0..<9).map { record(topic, key: "k\($0)", "n\($0)", partition: 2) })
    try require(named.allSatisfy { $0.partition == 2 }, "partitions of records sent to partition 2: \(named)")
    try requireEqual(try test.values(of: topic).count, 18, "records")
  },
  EventLogCase("records of one key keep their order") { test in
    let topic = try test.topic("order")
    let producer = try test.log.producer()
    var completions: [Completion] = []
    for round in 0..<40 {
      let completion = Completion()
      completions.append(completion)
      producer.publish((0..<10).map { record(topic, key: "key\($0)", "\(round)") }) { completion.complete($0) }
    }
    try requireEqual(producer.close(withinMilliseconds: test.harness.patienceMilliseconds), 0, "records left open")
    for completion in completions {
      try require(completion.count == 1, "a publish was reported \(completion.count) times by the end of close")
    }
    var seen: [String: [Int]] = [:]
    for stored in try test.contents(of: topic).values.joined() {
      seen[text(stored.record.key), default: []].append(Int(text(stored.record.value)) ?? -1)
    }
    try requireEqual(seen.count, 10, "keys")
    for (key, rounds) in seen { try requireEqual(rounds, Array(0..<40), "order within \(key)") }
  },
  EventLogCase("key, value, headers and timestamp come back byte for byte") { test in
    let topic = try test.topic("bytes", partitions: 1)
    let every = (0...255).map { UInt8($0) }
    let records = [
      Record(key: nil, value: nil, timestamp: Instant(milliseconds: 1)),
      Record(key: [], value: [], timestamp: Instant(milliseconds: 2)),
      Record(key: [0], value: nil, timestamp: Instant(milliseconds: 1_700_000_000_001)),
      Record(key: nil, value: [0, 0, 0], timestamp: Instant(milliseconds: 1_700_000_000_002)),
      Record(
        key: every, value: every + every,
        headers: [
          Header("a", every), Header("a", [UInt8]()), Header("b", nil as [UInt8]?), Header("ce_é", "ü"),
          Header("a", "last"),
        ], timestamp: Instant(milliseconds: 4_102_444_800_000)),
      Record(
        key: [1], value: [UInt8](repeating: 7, count: LogCase.maximumBytes - 2_000),
        timestamp: Instant(milliseconds: 1_700_000_000_003)),
    ]
    let places = try test.publish(records.map { ProducedRecord(topic: topic, partition: 0, record: $0) })
    let stored = try test.contents(of: topic, on: test.another())[0] ?? []
    try requireEqual(stored.map(\.coordinates), places, "coordinates read and reported")
    for (index, (read, written)) in zip(stored, records).enumerated() {
      try require(read.record == written, "record \(index) came back changed")
    }
  },
  EventLogCase("a publish that was reported is there for another handle") { test in
    let topic = try test.topic("durable")
    let other = try test.another()
    for round in 0..<10 {
      let place = try test.publish([record(topic, key: "k", "\(round)")])[0]
      let reader = try other.reader()
      defer { reader.close() }
      let read = try reader.read(place.topicPartition, from: place.offset, max: 1)
      try requireEqual(read.map { text($0.record.value) }, ["\(round)"], "the record at \(place)")
    }
  },
  EventLogCase("records are refused one by one, and the others written") { test in
    let topic = try test.topic("refusals", partitions: 2)
    let large = Record(
      key: nil, value: [UInt8](repeating: 1, count: LogCase.maximumBytes * 2), timestamp: Instant(milliseconds: 1))
    let results = try test.results(of: [
      record(topic, "first"), ProducedRecord(topic: topic, record: large), record(test.name("nowhere"), "x"),
      record(topic, "x", partition: 2), record(topic, "last"),
    ])
    try requireEqual(results.count, 5, "results")
    for index in [0, 4] { _ = try results[index].get() }
    for (index, what) in [(1, "a record that is too large"), (2, "an unknown topic"), (3, "an unknown partition")] {
      try requireFailure([.refused], what) { _ = try results[index].get() }
    }
    try requireEqual(try test.values(of: topic), ["first", "last"], "values")
  },
  EventLogCase("a closed producer takes nothing") { test in
    let topic = try test.topic("closed")
    let producer = try test.log.producer()
    try requireEqual(producer.close(withinMilliseconds: 1_000), 0, "records left open")
    let completion = Completion()
    producer.publish([record(topic, "late")]) { completion.complete($0) }
    let late = Date(timeIntervalSinceNow: Double(test.harness.patienceMilliseconds) / 1000)
    let results = try completion.wait(until: late)
    try requireFailure([.unavailable], "publishing after close") { _ = try results[0].get() }
    try requireEqual(try test.values(of: topic), [], "values")
  },
  EventLogCase("several handles publish at once without loss, repetition or disorder") { test in
    let topic = try test.topic("crowd")
    let handles = [test.log, try test.another(), try test.another(), try test.another()]
    let failures = Failures()
    let patience = test.harness.patienceMilliseconds
    DispatchQueue.concurrentPerform(iterations: handles.count) { index in
      do {
        let producer = try handles[index].producer()
        for round in 0..<50 {
          let batch = (0..<5).map { record(topic, key: "h\(index)", "h\(index)-\(round * 5 + $0)") }
          producer.publish(batch) { results in
            for result in results {
              if case .failure(let failure) = result { failures.add("\(failure)") }
            }
          }
        }
        let open = producer.close(withinMilliseconds: patience)
        if open > 0 { failures.add("\(open) records left open") }
      } catch {
        failures.add("\(error)")
      }
    }
    try requireEqual(failures.all, [], "failures")
    var seen: [String: [String]] = [:]
    for stored in try test.contents(of: topic).values.joined() {
      seen[text(stored.record.key), default: []].append(text(stored.record.value))
    }
    for index in handles.indices {
      try requireEqual(seen["h\(index)"] ?? [], (0..<250).map { "h\(index)-\($0)" }, "records of handle \(index)")
    }
  },
]

/// Failures collected from several threads.
final class Failures: @unchecked Sendable {
  // Sendable because the list is only touched under the lock.
  private let lock = NSLock()
  private var list: [String] = []
  func add(_ failure: String) { lock.withLock { list.append(failure) } }
  var all: [String] { lock.withLock { list } }
}

let readerCases: [EventLogCase] = [
  EventLogCase("bounds hold exactly what is there") { test in
    let topic = try test.topic("bounds", partitions: 2)
    for (partition, bounds) in try test.log.bounds(of: topic) {
      try requireEqual(bounds.start, bounds.end, "bounds of the empty partition \(partition)")
    }
    let places = try test.publish((0..<20).map { record(topic, "\($0)", partition: 0) })
    let bounds = try test.log.bounds(of: topic)
    guard let filled = bounds[0], let empty = bounds[1] else { throw Unmet("bounds: \(bounds)") }
    try require(filled.start <= places[0].offset, "start \(filled.start) is after the first record \(places[0])")
    try require(filled.end > places[19].offset, "end \(filled.end) is before the last record \(places[19])")
    try requireEqual(empty.start, empty.end, "bounds of the empty partition")
    let reader = try test.log.reader()
    defer { reader.close() }
    try requireEqual(try reader.read(TopicPartition(topic, 0), from: filled.end, max: 10), [], "records at the end")
    try requireEqual(try reader.read(TopicPartition(topic, 1), from: empty.end, max: 10), [], "records of partition 1")
  },
  EventLogCase("a reader goes from any offset to the end in steps") { test in
    let topic = try test.topic("steps", partitions: 1)
    let places = try test.publish((0..<50).map { record(topic, "\($0)") })
    let reader = try test.another().reader()
    defer { reader.close() }
    let partition = TopicPartition(topic, 0)
    for start in [0, 1, 24, 49] {
      var seen: [String] = []
      var next = places[start].offset
      while true {
        let read = try reader.read(partition, from: next, max: 7)
        try require(read.count <= 7, "\(read.count) records where at most 7 were asked for")
        guard let last = read.last else { break }
        seen += read.map { text($0.record.value) }
        next = last.coordinates.offset + 1
      }
      try requireEqual(seen, (start..<50).map(String.init), "records from the one at place \(start)")
    }
  },
  EventLogCase("a waiting reader hears of records from another handle") { test in
    let topic = try test.topic("waiting", partitions: 1)
    let partition = TopicPartition(topic, 0)
    let end = try test.publish([record(topic, "old")])[0].offset + 1
    let reader = try test.log.reader()
    defer { reader.close() }
    try require(try reader.wait(partition, beyond: end - 1, milliseconds: 1_000), "what is there needs no wait")
    try require(try !reader.wait(partition, beyond: end, milliseconds: 20), "there is nothing to wait for yet")
    let other = try test.another()
    let failures = Failures()
    let patience = test.harness.patienceMilliseconds
    let thread = Thread {
      let completion = Completion()
      do {
        let producer = try other.producer()
        producer.publish([record(topic, "new")]) { completion.complete($0) }
        let open = producer.close(withinMilliseconds: patience)
        if open > 0 { failures.add("\(open) records left open") }
      } catch {
        failures.add("\(error)")
      }
    }
    thread.start()
    try require(
      try reader.wait(partition, beyond: end, milliseconds: test.harness.patienceMilliseconds),
      "the reader was not woken; \(failures.all)")
    let read = try reader.read(partition, from: end, max: 10)
    try requireEqual(read.map { text($0.record.value) }, ["new"], "records after the wait")
    try test.wait(for: "the publishing thread") {
      thread.isFinished ? true : try reader.wait(partition, beyond: .max - 1, milliseconds: 10)
    }
    try requireEqual(failures.all, [], "failures")
  },
  EventLogCase("an instant finds the first record at or after it") { test in
    let topic = try test.topic("times", partitions: 2)
    let base: Int64 = 1_700_000_000_000
    let times: [Int64] = [1_000, 2_000, 2_000, 3_000, 9_000, 4_000, 9_500]
    let places = try test.publish(
      times.enumerated().map { record(topic, "\($0)", partition: 0, at: base + $1) })
    let partition = TopicPartition(topic, 0)
    let expected: [(Int64, Int?)] = [
      (-5_000_000, 0), (999, 0), (1_000, 0), (1_001, 1), (2_000, 1), (2_001, 3), (3_000, 3), (3_500, 4), (4_000, 4),
      (9_001, 6), (9_500, 6), (9_501, nil),
    ]
    for (time, index) in expected {
      try requireEqual(
        try test.log.offset(of: partition, at: Instant(milliseconds: base + time)), index.map { places[$0].offset },
        "offset at \(time)")
    }
    try requireEqual(
      try test.log.offset(of: TopicPartition(topic, 1), at: Instant(milliseconds: base)), nil, "an empty partition")
  },
]
