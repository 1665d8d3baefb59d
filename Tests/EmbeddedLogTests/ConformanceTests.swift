import PurchasesContracts
import PurchasesEmbeddedLog
import PurchasesTestKit
import Testing

@Suite struct ConformanceTests {
  @Test(arguments: eventLogConformance) func holds(_ attempt: EventLogCase) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("log.db")
    try attempt.run(
      EventLogHarness(prefix: "test.", sessionTimeoutMilliseconds: 300) { try EmbeddedLog(path: path) })
  }
}
