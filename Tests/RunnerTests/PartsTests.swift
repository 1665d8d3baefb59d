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
    let set = WorkingSet()
    set.apply(.put(Row(key, [.text("b")])))
    set.add(Fetched(rows: [key: Row(key, [.text("old")])]), for: [.row(key)])
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
}
