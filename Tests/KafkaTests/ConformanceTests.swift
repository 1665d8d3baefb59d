import PurchasesContracts
import PurchasesKafkaLog
import PurchasesTestKit
import Testing

/// Kafka judged by the suite that the embedded log is judged by.
@Suite(.serialized, .enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaConformanceTests {
  // Long enough that a busy machine does not miss the heartbeats of two seconds in a row.
  static let sessionMilliseconds: Int64 = 4_000

  @Test(arguments: eventLogConformance) func holds(_ attempt: EventLogCase) throws {
    try attempt.run(
      EventLogHarness(prefix: Broker.fresh("c") + ".", sessionTimeoutMilliseconds: Self.sessionMilliseconds) {
        try Broker.log()
      })
  }
}
