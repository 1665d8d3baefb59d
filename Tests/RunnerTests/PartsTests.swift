import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Synchronization
import Testing

@testable import PurchasesRunner

@Suite struct PartsTests {
  @Test func logLinesAreJSONWhateverIsInThem() throws {
    let lines = Mutex<[UInt8]>([])
    let logger = Logger(clock: ManualClock(), write: { bytes in lines.withLock { $0 += bytes } })
    logger.warning("quote \" backslash \\ line\nend \u{1}", ["name": "tab\tand é"])
    let text = lines.withLock { String(decoding: $0, as: UTF8.self) }
    #expect(text.hasSuffix("}\n"))
    #expect(text.contains(#""message":"quote \" backslash \\ line\nend \u0001""#))
    #expect(text.contains(#""name":"tab\u0009and é""#))
    #expect(text.split(separator: "\n").count == 1)
  }

  @Test func whatIsExpectedIsMutedAndAnErrorNever() {
    let lines = Mutex<[UInt8]>([])
    let logger = Logger(
      clock: ManualClock(), minimum: .info, muted: ["expected"], write: { bytes in lines.withLock { $0 += bytes } })
    logger.warning("expected")
    logger.warning("unexpected")
    logger.error("expected")
    let text = lines.withLock { String(decoding: $0, as: UTF8.self) }
    #expect(text.split(separator: "\n").count == 2)
    #expect(text.contains(#""warning","message":"unexpected""#) && text.contains(#""error","message":"expected""#))
  }

  @Test func metricsAreInThePrometheusTextFormat() {
    let metrics = Metrics()
    metrics.count("records_total", "Records", ["stage": "a\"b"], by: 3)
    metrics.count("records_total", "Records", ["stage": "a\"b"])
    metrics.set("lag", "Lag", to: 1.5)
    metrics.observe("seconds", "Time", ["stage": "x"], 0.25)
    #expect(
      metrics.text == """
        # HELP lag Lag
        # TYPE lag gauge
        lag 1.5
        # HELP records_total Records
        # TYPE records_total counter
        records_total{stage="a\\"b"} 4
        # HELP seconds Time
        # TYPE seconds summary
        seconds_count{stage="x"} 1
        seconds_sum{stage="x"} 0.25

        """)
  }

  @Test func storeAndLogStandToEachOtherAsTheyDo() {
    let partition = TopicPartition("owned", 3)
    func standing(store: Int64?, log: Int64?, kept: [(Int64?, Int64)] = []) -> Standing {
      Standing(
        of: partition, group: "g", store: store, log: log, kept: kept.map { KeptBatch(from: $0.0, next: $0.1) })
    }
    func text(_ standing: Standing) -> String { if case .inconsistent(let text) = standing { text } else { "" } }
    #expect(standing(store: nil, log: nil) == .level)
    #expect(standing(store: 7, log: 7, kept: [(5, 7)]) == .level)
    #expect(standing(store: 9, log: 5, kept: [(3, 5), (5, 7), (7, 9)]) == .ahead(9))
    #expect(standing(store: nil, log: 0) == .level)
    #expect(standing(store: 9, log: 0, kept: [(nil, 9)]) == .ahead(9))
    #expect(text(standing(store: 5, log: 7)).contains("g stands at 7, the store only at 5"))
    #expect(text(standing(store: nil, log: 1)).contains("g stands at 1, the store only at none"))
    // The offsets are gone, or were set back behind what is kept; or a batch between is missing.
    #expect(text(standing(store: 9, log: nil, kept: [(7, 9)])).contains("g has no offset"))
    // Also where all that was ever done is still kept: the first offset was there before it.
    #expect(text(standing(store: 9, log: nil, kept: [(nil, 9)])).contains("offsets are gone"))
    #expect(text(standing(store: 9, log: 3, kept: [(7, 9)])).contains("nothing to publish"))
    #expect(text(standing(store: 9, log: 3, kept: [(3, 5), (7, 9)])).contains("nothing to publish"))
    #expect(text(standing(store: 9, log: 3)).contains("nothing to publish"))

    func misplaced(_ offset: Int64) -> String? {
      Standing.misplaced(partition, group: "g", committed: offset, bounds: OffsetBounds(start: 10, end: 20))
    }
    #expect(misplaced(10) == nil && misplaced(20) == nil)
    #expect(misplaced(9)?.contains("records 9 to 9 are gone") == true)
    #expect(misplaced(21)?.contains("the log ends at 20") == true)
    #expect(Standing.lostBeginning(of: partition, start: 0) == nil)
    #expect(Standing.lostBeginning(of: partition, start: 4)?.contains("records 0 to 3 are gone") == true)
  }

  @Test func pausesGrowUpToTheirLimit() {
    var backOff = BackOff(firstMilliseconds: 100, limitMilliseconds: 1000)
    for expected in [100, 200, 400, 800, 1000, 1000, 1000] as [Int64] {
      #expect((expected / 2...expected).contains(backOff.next()))
    }
    backOff.reset()
    #expect((50...100).contains(backOff.next()))
  }

  @Test func theWorkingSetShowsWhatTheBatchWrote() {
    let key = RowKey(.alias, [.text("Sandbox"), .text("a")])
    let fetched = FetchedFacts()
    let set = WorkingSet(over: fetched)
    set.apply(.put(Row(key, [.text("b")])))
    fetched.add(Fetched(rows: [key: Row(key, [.text("old")])]))
    set.know([.row(key)])
    #expect(set.row(key)?["into_account"] == .text("b"), "what was written is newer than what is fetched")
    set.apply(.put(Row(key, [.text("c")])))
    #expect(set.writes == [.put(Row(key, [.text("c")]))], "a row goes to the store once")
    set.apply(.delete(key))
    #expect(set.row(key) == nil)
    #expect(set.writes == [.delete(key)])
  }

  @Test func aStopWakesWhoWaits() {
    let stop = StopSignal()
    let worker = Worker<Bool>(name: "waiter") {
      stop.wait()
      return stop.wait(milliseconds: 1_000_000)
    }
    stop.set()
    #expect(worker.wait())
  }

  /// Works that ask for the rows named; partition and row as numbers.
  private struct Asking: Sendable {
    let partition: Int32
    let rows: [Int]
  }

  private static func row(_ number: Int) -> Need { .row(RowKey(.alias, [.text("Sandbox"), .text("\(number)")])) }

  private func lanes(_ works: [Asking], thenAsking: Int? = nil, needs: ((Asking) -> [Need])? = nil) throws
    -> (lanes: [Lane<Asking>], fetched: [Set<Need>])
  {
    var fetched: [Set<Need>] = []
    let lanes = try Lane.lanes(
      of: works, partition: { TopicPartition("owned", $0.partition) }, count: { _ in 200 },
      needsDependOnFacts: thenAsking != nil,
      needs: { work, _ in
        needs?(work) ?? work.rows.map { Self.row($0) }
          + (fetched.isEmpty ? [] : [thenAsking.map { Self.row($0) }].compactMap { $0 })
      },
      fetch: { needs in
        fetched.append(needs)
        return Fetched()
      })
    return (lanes, fetched)
  }

  @Test func lanesAreWholePartitionsThatShareNoFact() throws {
    let works = (0..<40).map { Asking(partition: Int32($0 % 4), rows: [$0]) }
    let (lanes, fetched) = try lanes(works)
    #expect(lanes.count == min(Cores.count, 4))
    #expect(fetched == [Set((0..<40).map { Self.row($0) })], "all lanes' facts are fetched at one go")
    for partition in Int32(0)..<4 {
      let own = lanes.filter { $0.works.contains { $0.partition == partition } }
      #expect(own.count == 1, "a partition is in one lane")
      #expect(
        own.first?.works.filter { $0.partition == partition }.flatMap(\.rows)
          == (0..<40).filter { $0 % 4 == partition },
        "in order")
    }
  }

  @Test func whatSharesAFactIsDecidedInOneLane() throws {
    let works = (0..<40).map { Asking(partition: Int32($0 % 4), rows: [$0]) }
    let shared = works + [Asking(partition: 2, rows: [1])]
    #expect(try lanes(shared).lanes.map { $0.works.count } == [41])
    // Found out in the second round only: what the first one knew is known still.
    let (late, fetched) = try lanes(works, thenAsking: 100)
    #expect(late.map { $0.works.count } == [40])
    #expect(fetched == [Set((0..<40).map { Self.row($0) }), [Self.row(100)]])
    #expect(try lanes(works) { _ in [.watch(upTo: Instant(milliseconds: 0), limit: 1)] }.lanes.count == 1)
    #expect(try lanes([works[0]]).lanes.count == 1)
  }

  /// What a search of the store finds for a tick is its own partition's, as a rule: then the others go on beside it.
  @Test func aSearchLeavesTheOtherPartitionsApart() throws {
    let works = (0..<40).map { Asking(partition: Int32($0 % 4), rows: [$0]) }
    let search = Need.due(partition: 1, upTo: Instant(milliseconds: 0), limit: 10)
    func lanes(finding number: Int) throws -> [Lane<Asking>] {
      try Lane.lanes(
        of: works, partition: { TopicPartition("owned", $0.partition) }, count: { _ in 200 }, needsDependOnFacts: false,
        needs: { work, _ in work.rows.map { Self.row($0) } + (work.rows == [1] ? [search] : []) },
        fetch: { _ in
          let key = RowKey(.alias, [.text("Sandbox"), .text("\(number)")])
          return Fetched(queries: [search: [Row(key, [.text("x")])]])
        })
    }
    // Asked for by nobody, or by a work of the searching partition itself.
    for number in [100, 5] {
      let apart = try lanes(finding: number)
      #expect(apart.count == min(Cores.count, 4))
    }
    // Another partition writes it.
    let shared = try lanes(finding: 2)
    #expect(shared.count == 1)
  }
}
