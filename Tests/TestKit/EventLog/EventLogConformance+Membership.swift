import PurchasesContracts
import PurchasesCore

let membershipCases: [EventLogCase] = [
  EventLogCase("a member may commit between revocation and release, and not after") { test in
    let input = try test.topic("in", partitions: 2)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<2).map { record(input, "\($0)", partition: Int32($0)) })
    let first = try test.worker("w1", group: "g", topics: [input])
    try test.poll([first], until: "a record of each partition") { first.records.count == 2 }
    let membership = try first.lastMembership()
    first.releases = false
    let second = try test.worker("w2", group: "g", topics: [input], on: test.another())
    try test.poll([first, second], until: "a partition to be revoked") { !first.unreleased.isEmpty }
    let moved = first.unreleased
    try require(second.assigned.isDisjoint(with: moved), "\(moved) went on before it was let go")
    let offsets = Dictionary(uniqueKeysWithValues: moved.map { ($0, places[Int($0.partition)].offset + 1) })
    try first.worker.commit([record(output, "before")], offsets: offsets, membership: membership)
    try first.worker.release(moved)
    first.releases = true
    try test.poll([first, second], until: "one partition each") {
      first.assigned.count == 1 && second.assigned.count == 1
    }
    let now = second.assigned
    let stale = Dictionary(uniqueKeysWithValues: now.map { ($0, places[Int($0.partition)].offset + 1) })
    try requireFailure([.stale], "committing a partition that has moved on") {
      try first.worker.commit([record(output, "after")], offsets: stale, membership: membership)
    }
    try requireEqual(try test.values(of: output), ["before"], "output")
  },
  EventLogCase("a batch from before its partition went away and came back cannot be committed") { test in
    let input = try test.topic("in", partitions: 2)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<2).map { record(input, "\($0)", partition: Int32($0)) })
    let first = try test.worker("w1", group: "g", topics: [input])
    try test.poll([first], until: "a record of each partition") { first.records.count == 2 }
    let all = first.assigned
    let membership = try first.lastMembership()
    let second = try test.worker("w2", group: "g", topics: [input], on: test.another())
    try test.poll([first, second], until: "one partition each") {
      first.assigned.count == 1 && second.assigned.count == 1
    }
    let moved = second.assigned
    second.worker.close()
    try test.poll([first], until: "the first member to hold everything again") { first.assigned == all }
    let offsets = Dictionary(uniqueKeysWithValues: moved.map { ($0, places[Int($0.partition)].offset + 1) })
    try requireFailure([.stale], "committing under the membership of before") {
      try first.worker.commit([record(output, "old")], offsets: offsets, membership: membership)
    }
    try test.poll([first], until: "a commit under the present membership") {
      guard first.assigned == all else { return false }
      try first.worker.commit([record(output, "new")], offsets: offsets, membership: first.worker.membership())
      return true
    }
    try requireEqual(try test.values(of: output), ["new"], "output")
  },
  EventLogCase("a member that fell silent can commit nothing, and no offset goes back") { test in
    let input = try test.topic("in", partitions: 2)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<20).map { record(input, "\($0)", partition: Int32($0 % 2)) })
    let first = try test.worker("w1", group: "g", topics: [input])
    try test.poll([first], until: "20 records") { first.records.count == 20 }
    let membership = try first.lastMembership()
    let all = first.assigned
    let second = try test.worker("w2", group: "g", topics: [input], on: test.another())
    // The first one is not polled any more: its session runs out.
    try test.poll([second], until: "the second member to take everything over") {
      second.assigned == all && second.records.count >= 20
    }
    let ends = [TopicPartition(input, 0): places[18].offset + 1, TopicPartition(input, 1): places[19].offset + 1]
    try second.worker.commit([record(output, "second")], offsets: ends, membership: second.lastMembership())
    for offsets in [
      [TopicPartition(input, 0): places[4].offset, TopicPartition(input, 1): places[5].offset], ends, [:],
    ] as [[TopicPartition: Int64]] {
      try requireFailure([.stale], "a commit by the silent member") {
        try first.worker.commit([record(output, "first")], offsets: offsets, membership: membership)
      }
    }
    try requireEqual(
      try test.log.committed(group: test.name("g"), topic: input),
      [0: places[18].offset + 1, 1: places[19].offset + 1],
      "offsets")
    try requireEqual(try test.values(of: output), ["second"], "output")
    try test.poll([first, second], until: "the silent member to be back with a share of its own") {
      first.assigned.count == 1 && second.assigned.count == 1 && first.assigned != second.assigned
    }
    try test.poll([first, second], until: "the returned member to commit") {
      guard first.assigned.count == 1 else { return false }
      do {
        try first.worker.commit([record(output, "returned")], offsets: [:], membership: first.worker.membership())
        return true
      } catch let failure as LogFailure where failure.kind == .stale || failure.kind == .aborted {
        return false
      }
    }
    try requireEqual(try test.values(of: output), ["returned", "second"], "output")
  },
  EventLogCase("a worker whose name was taken over is fenced") { test in
    let input = try test.topic("in", partitions: 2)
    let output = try test.topic("out", partitions: 1)
    let places = try test.publish((0..<4).map { record(input, "\($0)", partition: Int32($0 % 2)) })
    let older = try test.worker("same", group: "g", topics: [input])
    try test.poll([older], until: "4 records") { older.records.count == 4 }
    let newer = try test.worker("same", group: "g", topics: [input], on: test.another())
    let ends = [TopicPartition(input, 0): places[2].offset + 1, TopicPartition(input, 1): places[3].offset + 1]
    for _ in 0..<2 {
      try requireFailure([.fenced], "a commit by the older worker") {
        try older.worker.commit([record(output, "older")], offsets: ends, membership: older.lastMembership())
      }
    }
    older.worker.close()
    try test.poll([newer], until: "the newer worker to read everything") { newer.records.count >= 4 }
    try newer.worker.commit([record(output, "newer")], offsets: ends, membership: newer.lastMembership())
    try requireEqual(try test.values(of: output), ["newer"], "output")
    try requireEqual(
      try test.log.committed(group: test.name("g"), topic: input), [0: places[2].offset + 1, 1: places[3].offset + 1],
      "offsets")
  },
]
