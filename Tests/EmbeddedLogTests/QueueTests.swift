import PurchasesContracts
import PurchasesEmbeddedLog
import PurchasesSQLite
import Testing

/// What waits for the writer while another process holds the file's write lock.
@Suite struct QueueTests {
  let test: TestLog
  let log: EmbeddedLog
  let blocker: SQLiteConnection

  init() throws {
    test = try TestLog()
    log = try test.open()
    try log.ensure([test.spec("t")])
    blocker = try SQLiteConnection(path: test.path)
  }

  @Test func aFullQueueIsSaidSoAndLosesNothing() throws {
    let producer = try log.producer()
    try blocker.execute("BEGIN IMMEDIATE")
    var boxes: [Box] = []
    let batch = (0..<10_000).map { test.produced("t", "\($0)") }
    for _ in 0..<30 {
      let box = Box()
      boxes.append(box)
      producer.publish(batch) { box.set($0) }
    }
    let refused = boxes.filter { $0.calls == 1 }
    #expect(refused.count >= 18, "the queue holds ten batches, and the writer has taken at most two")
    for box in refused {
      #expect(box.results.count == 10_000)
      for case .failure(let failure) in box.results.prefix(1) { #expect(failure.kind == .unavailable) }
    }
    try blocker.execute("COMMIT")
    #expect(producer.close(withinMilliseconds: 60_000) == 0)
    #expect(boxes.allSatisfy { $0.calls == 1 })
    let written = boxes.filter { (try? $0.results[0].get()) != nil }
    #expect(written.count + refused.count == 30)
    #expect(try log.bounds(of: "t")[0]?.end == Int64(written.count * 10_000))
  }

  @Test func whatAClosingProducerGivesUpIsNotWritten() throws {
    let producer = try log.producer()
    let other = try log.producer()
    try blocker.execute("BEGIN IMMEDIATE")
    // The writer takes the first and waits with it for the lock; the others stay in the queue.
    let boxes = (0..<3).map { _ in Box() }
    producer.publish([test.produced("t", "0")]) { boxes[0].set($0) }
    other.publish([test.produced("t", "other")]) { boxes[1].set($0) }
    producer.publish([test.produced("t", "1")]) { boxes[2].set($0) }
    #expect(producer.close(withinMilliseconds: 0) == 2)
    try blocker.execute("COMMIT")
    #expect(other.close(withinMilliseconds: 60_000) == 0)
    log.close()
    #expect(boxes.allSatisfy { $0.calls == 1 })
    let again = try test.open()
    defer { again.close() }
    let seen = try test.contents(of: "t", in: again).count
    #expect(seen == boxes.filter { (try? $0.results[0].get()) != nil }.count)
    #expect(seen >= 1)
  }

  @Test func aClosedLogSaysSo() throws {
    let producer = try log.producer()
    log.close()
    let box = Box()
    producer.publish([test.produced("t", "late")]) { box.set($0) }
    #expect(box.results.count == 1)
    for case .failure(let failure) in box.results { #expect(failure.kind == .unavailable) }
    #expect(kind { try log.probe() } == .unavailable)
    #expect(kind { try log.ensure([test.spec("u")]) } == .unavailable)
    log.close()
  }

  @Test func aCompletionMayCloseTheLog() throws {
    let producer = try log.producer()
    let box = Box()
    let log = log
    producer.publish([test.produced("t", "last")]) { results in
      log.close()
      box.set(results)
    }
    #expect(producer.close(withinMilliseconds: 60_000) == 0)
    #expect(try box.results.first?.get().offset == 0)
  }
}
