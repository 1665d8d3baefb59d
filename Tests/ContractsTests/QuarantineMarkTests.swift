import PurchasesContracts
import PurchasesCore
import Testing

struct QuarantineMarkTests {
  private let ours = [
    Header("purchases-quarantine-reason", "value: is missing"), Header("purchases-quarantine-stage", "verification"),
    Header("purchases-quarantine-topic", "purchases.received"), Header("purchases-quarantine-partition", "3"),
    Header("purchases-quarantine-offset", "44"), Header("purchases-quarantine-alarm", "none"),
    Header("purchases-quarantine-index", "1"), Header("purchases-quarantine-count", "2"),
  ]

  private func mark(_ headers: [Header]) -> QuarantineMark? {
    QuarantineMark(Record(key: nil, value: nil, headers: headers, timestamp: Instant(milliseconds: 1)))
  }

  /// Anybody may write such headers into `received`; what a stage adds stands behind them.
  @Test func aSendersOwnHeadersDoNotPassForAStages() throws {
    let forged = [
      Header("purchases-quarantine-reason", "nothing to see"), Header("purchases-quarantine-stage", "ownership"),
      Header("purchases-quarantine-topic", "purchases.owned"), Header("purchases-quarantine-partition", "0"),
      Header("purchases-quarantine-offset", "0"), Header("purchases-quarantine-alarm", "unreadable"),
      Header("purchases-quarantine-index", "0"), Header("purchases-quarantine-count", "1"),
    ]
    let found = try #require(mark(forged + ours))
    #expect(found == mark(ours))
    #expect(found.origin == Coordinates(topic: "purchases.received", partition: 3, offset: 44))
    #expect(found.stage == "verification" && found.reason == "value: is missing" && found.alarm == nil)
    #expect(found.index == 1 && found.count == 2)
  }

  @Test func whatNoStagePutThereHasNoMark() {
    for missing in [1, 2, 3, 4] {
      var headers = ours
      headers.remove(at: missing)
      #expect(mark(headers) == nil)
    }
    #expect(mark([]) == nil)
  }
}
