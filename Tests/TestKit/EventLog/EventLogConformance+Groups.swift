import PurchasesContracts
import PurchasesCore

let groupCases: [EventLogCase] = [
  EventLogCase("a lone member gets every partition and reads everything once") { test in
    let topic = try test.topic("alone")
    let written = try test.publish((0..<200).map { record(topic, key: "k\($0)", "\($0)") })
    let worker = try test.worker("w", group: "g", topics: [topic])
    try test.poll([worker], until: "200 records and the end of 4 partitions", max: 30) {
      worker.records.count >= 200 && worker.atEnd.count == 4
    }
    try requireEqual(worker.assigned, Set((0..<4).map { TopicPartition(topic, $0) }), "assignment")
    try requireEqual(worker.records.map(\.coordinates).sorted(), written.sorted(), "coordinates")
    for partition in 0..<4 {
      let offsets = worker.records.filter { $0.coordinates.partition == partition }.map(\.coordinates.offset)
      try requireEqual(offsets, offsets.sorted(), "order of partition \(partition)")
    }
    let late = try test.publish([record(topic, key: "late", "late")])
    try test.poll([worker], until: "a record published after the end was reached") {
      worker.records.last?.coordinates == late[0]
    }
  },
  EventLogCase("committed offsets belong to the group and outlive the member") { test in
    let topic = try test.topic("offsets", partitions: 2)
    let places = try test.publish((0..<10).map { record(topic, "\($0)", partition: 0) })
    let first = try test.worker("w1", group: "g", topics: [topic])
    try test.poll([first], until: "10 records") { first.records.count == 10 }
    let zero = TopicPartition(topic, 0)
    let one = TopicPartition(topic, 1)
    let before = try first.worker.committed([zero, one])
    try require(before[zero] == .some(nil) && before[one] == .some(nil), "offsets before any commit: \(before)")
    try requireEqual(try test.log.committed(group: test.name("g"), topic: topic), [:], "offsets before any commit")
    try first.worker.commit([], offsets: [zero: places[5].offset], membership: first.lastMembership())
    let other = try test.another()
    try requireEqual(
      try other.committed(group: test.name("g"), topic: topic), [0: places[5].offset], "offsets seen by another handle")
    try requireEqual(try other.committed(group: test.name("g2"), topic: topic), [:], "offsets of another group")
    first.worker.close()
    let second = try test.worker("w2", group: "g", topics: [topic], on: other)
    try test.poll([second], until: "the records after the committed offset") { second.records.count >= 5 }
    try requireEqual(second.values, ["5", "6", "7", "8", "9"], "records after the committed offset")
  },
  EventLogCase("paused partitions give nothing, and starting again goes to the named offset") { test in
    let topic = try test.topic("pauses", partitions: 2)
    let places = try test.publish(
      (0..<10).map { record(topic, "a\($0)", partition: 0) } + (0..<10).map { record(topic, "b\($0)", partition: 1) })
    let worker = try test.worker("w", group: "g", topics: [topic])
    try test.poll([worker], until: "20 records") { worker.records.count == 20 }
    worker.forgetRecords()
    try worker.worker.pause([TopicPartition(topic, 0)])
    _ = try test.publish([record(topic, "a10", partition: 0), record(topic, "b10", partition: 1)])
    try test.poll([worker], until: "the record of the partition that goes on, and its end") {
      !worker.records.isEmpty && worker.atEnd.contains(TopicPartition(topic, 1))
    }
    try requireEqual(worker.values, ["b10"], "records while partition 0 is paused")
    worker.forgetRecords()
    try worker.worker.start([TopicPartition(topic, 0): places[7].offset])
    try test.poll([worker], until: "the records from offset 7 on") { worker.records.count >= 4 }
    try requireEqual(worker.values, ["a7", "a8", "a9", "a10"], "records after starting again")
  },
  EventLogCase("two members share the partitions, and one that leaves hands its own over") { test in
    let topic = try test.topic("shared")
    let all = Set((0..<4).map { TopicPartition(topic, $0) })
    let first = try test.worker("w1", group: "g", topics: [topic])
    try test.poll([first], until: "the first member to hold everything") { first.assigned == all }
    let second = try test.worker("w2", group: "g", topics: [topic], on: test.another())
    try test.poll([first, second], until: "two members to hold two partitions each") {
      first.assigned.count == 2 && second.assigned.count == 2
    }
    try requireEqual(first.assigned.union(second.assigned), all, "both shares")
    let places = try test.publish((0..<40).map { record(topic, "\($0)", partition: Int32($0 % 4)) })
    try test.poll([first, second], until: "40 records") { first.records.count + second.records.count >= 40 }
    try requireEqual((first.records + second.records).map(\.coordinates).sorted(), places.sorted(), "records of both")
    for driver in [first, second] {
      let offsets = driver.next.filter { driver.assigned.contains($0.key) }
      try driver.worker.commit([], offsets: offsets, membership: driver.lastMembership())
    }
    second.worker.close()
    try test.poll([first], until: "the first member to hold everything again") { first.assigned == all }
    first.forgetRecords()
    _ = try test.publish((0..<4).map { record(topic, "late\($0)", partition: Int32($0)) })
    try test.poll([first], until: "a record of each partition") { first.records.count >= 4 }
    try requireEqual(first.values.sorted(), (0..<4).map { "late\($0)" }, "records after the hand-over")
  },
  EventLogCase("a static member that restarts keeps its partitions") { test in
    let topic = try test.topic("static")
    // Longer sessions than elsewhere: they must not run out while the other member is watched for a moment.
    let first = try test.worker("w1", group: "g", topics: [topic], isStatic: true, sessions: 10)
    let other = try test.another()
    let second = try test.worker("w2", group: "g", topics: [topic], on: other, isStatic: true, sessions: 10)
    try test.poll([first, second], until: "two members to hold two partitions each") {
      first.assigned.count == 2 && second.assigned.count == 2
    }
    let share = first.assigned
    let revocations = second.revocations
    first.worker.close()
    for _ in 0..<4 { try second.step() }
    try requireEqual(second.assigned.count, 2, "partitions of the other member while the first is away")
    let again = try test.worker("w1", group: "g", topics: [topic], isStatic: true, sessions: 10)
    try test.poll([again, second], until: "the restarted member to hold its share") { again.assigned == share }
    try requireEqual(second.revocations, revocations, "partitions taken from the other member")
    try requireEqual(second.assigned.count, 2, "partitions of the other member")
  },
  EventLogCase("a static member that restarts lets go of what it had for one that joined meanwhile") { test in
    let topic = try test.topic("scaled")
    let all = Set((0..<4).map { TopicPartition(topic, $0) })
    let first = try test.worker("w1", group: "g", topics: [topic], isStatic: true, sessions: 10)
    try test.poll([first], until: "the first member to hold everything") { first.assigned == all }
    first.worker.close()
    let second = try test.worker("w2", group: "g", topics: [topic], on: test.another(), isStatic: true, sessions: 10)
    for _ in 0..<4 { try second.step() }
    let again = try test.worker("w1", group: "g", topics: [topic], isStatic: true, sessions: 10)
    try test.poll([again, second], until: "two members to hold two partitions each") {
      again.assigned.count == 2 && second.assigned.count == 2
    }
    try requireEqual(again.assigned.union(second.assigned), all, "both shares")
    let places = try test.publish((0..<40).map { record(topic, "\($0)", partition: Int32($0 % 4)) })
    try test.poll([again, second], until: "40 records") { again.records.count + second.records.count >= 40 }
    try requireEqual((again.records + second.records).map(\.coordinates).sorted(), places.sorted(), "records of both")
  },
]

let commitCases: [EventLogCase] = [
  EventLogCase("records and offsets are committed together") { test in
    let input = try test.topic("in")
    let output = try test.topic("out")
    let other = try test.another()
    _ = try test.publish((0..<300).map { record(input, key: "k\($0 % 50)", "\($0)") })
    let worker = try test.worker("w", group: "g", topics: [input])
    var committed: [TopicPartition: Int64] = [:]
    var done = 0
    while done < 300 {
      worker.forgetRecords()
      try test.poll([worker], until: "the next batch", max: 70) { !worker.records.isEmpty }
      let outputs = worker.records.map { stored in
        ProducedRecord(topic: output, record: stored.record)
      }
      var offsets: [TopicPartition: Int64] = [:]
      for stored in worker.records { offsets[stored.coordinates.topicPartition] = stored.coordinates.offset + 1 }
      try worker.worker.commit(outputs, offsets: offsets, membership: worker.lastMembership())
      done += worker.records.count
      for (partition, offset) in offsets {
        try require(offset > committed[partition] ?? -1, "\(partition) went from \(committed) to \(offset)")
        committed[partition] = offset
      }
      try requireEqual(try test.values(of: output, on: other).count, done, "output records after a commit")
      let seen = try other.committed(group: test.name("g"), topic: input)
      for (partition, offset) in committed {
        try requireEqual(seen[partition.partition], offset, "committed offset of \(partition)")
      }
    }
    try requireEqual(try test.values(of: output, on: other), (0..<300).map(String.init).sorted(), "output")
    for stored in try test.contents(of: output).values.joined() {
      try requireEqual(
        stored.coordinates.partition, Partitioner.partition(forKey: stored.record.key ?? [], of: 4),
        "partition of \(text(stored.record.key))")
    }
  },
  EventLogCase("a commit that fails leaves nothing of itself, and the next one works") { test in
    let input = try test.topic("in", partitions: 1)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<5).map { record(input, "\($0)") })
    let worker = try test.worker("w", group: "g", topics: [input])
    try test.poll([worker], until: "5 records") { worker.records.count == 5 }
    let partition = TopicPartition(input, 0)
    let large = Record(
      key: nil, value: [UInt8](repeating: 1, count: LogCase.maximumBytes * 2), timestamp: Instant(milliseconds: 1))
    try requireFailure([.refused, .aborted], "committing a record that is too large") {
      try worker.worker.commit(
        [record(output, "torn"), ProducedRecord(topic: output, record: large), record(output, "torn")],
        offsets: [partition: places[4].offset + 1], membership: worker.lastMembership())
    }
    try requireEqual(try test.values(of: output), [], "output after the failed commit")
    try requireEqual(
      try test.log.committed(group: test.name("g"), topic: input), [:], "offsets after the failed commit")
    // What follows must not bring the failed records back into view.
    try test.poll([worker], until: "a successful commit") {
      guard worker.assigned == [partition] else { return false }
      try worker.worker.commit(
        [record(output, "whole")], offsets: [partition: places[4].offset + 1], membership: worker.worker.membership())
      return true
    }
    try requireEqual(try test.values(of: output, on: test.another()), ["whole"], "output after the good commit")
    try requireEqual(
      try test.log.committed(group: test.name("g"), topic: input), [0: places[4].offset + 1], "offsets")
  },
  EventLogCase("a commit in two halves lets the worker poll between, and a close finishes it") { test in
    let input = try test.topic("in", partitions: 1)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<5).map { record(input, "\($0)") })
    let worker = try test.worker("w", group: "g", topics: [input])
    try test.poll([worker], until: "5 records") { worker.records.count == 5 }
    let partition = TopicPartition(input, 0)
    try worker.worker.beginCommit(
      [record(output, "first")], offsets: [partition: places[2].offset], membership: worker.lastMembership())
    let late = try test.publish([record(input, "late")])
    try test.poll([worker], until: "a record that came while a commit was under way") { worker.records.count == 6 }
    try worker.worker.finishCommit()
    try requireEqual(try test.values(of: output), ["first"], "output after the first commit")
    try requireEqual(try test.log.committed(group: test.name("g"), topic: input), [0: places[2].offset], "offsets")
    try worker.worker.finishCommit()
    try worker.worker.beginCommit(
      [record(output, "second")], offsets: [partition: late[0].offset + 1], membership: worker.lastMembership())
    worker.worker.close()
    let other = try test.another()
    try requireEqual(try test.values(of: output, on: other), ["first", "second"], "output after the close")
    try requireEqual(try other.committed(group: test.name("g"), topic: input), [0: late[0].offset + 1], "offsets")
  },
  EventLogCase("a commit needs neither records nor offsets, and may be large") { test in
    let input = try test.topic("in", partitions: 1)
    let output = try test.topic("out", partitions: 3)
    _ = try test.publish([record(input, "x")])
    let worker = try test.worker("w", group: "g", topics: [input])
    try test.poll([worker], until: "a record") { worker.records.count == 1 }
    try worker.worker.commit([], offsets: [:], membership: worker.lastMembership())
    let many = (0..<3_000).map { record(output, key: "k\($0)", "\($0)") }
    try worker.worker.commit(many, offsets: [:], membership: worker.worker.membership())
    try requireEqual(try test.values(of: output).count, 3_000, "records of one commit")
    try requireEqual(try test.log.committed(group: test.name("g"), topic: input), [:], "offsets")
  },
]
