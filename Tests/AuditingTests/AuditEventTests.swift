import PurchasesContracts
import PurchasesCore
import Testing

@Suite struct AuditEventTests {
  private let events: [AuditEvent] = [
    .checkpointed(
      AuditCheckpointed(
        scope: .partition(TopicPartition("purchases.received", 2)), size: 7, root: "00ff", note: "a\n7\nAAA=\n\n— a b\n"
      )),
    .checkpointed(
      AuditCheckpointed(scope: .summary(added: ["a\n1\nAAA=\n", "b\n2\nAAA=\n"]), size: 2, root: "00ff", note: "n")),
    .anomaly(
      AuditAnomaly(
        kind: .purchasedNeverGranted, subject: TransactionSubject("Production/1"),
        since: Instant(milliseconds: 1_800_000_000_000), ageMilliseconds: 3_600_000, explanation: "why")),
    .anomaly(
      AuditAnomaly(
        kind: .unreadableInInternalTopic, coordinates: Coordinates(topic: "t", partition: 1, offset: 9),
        since: Instant(milliseconds: 1_800_000_000_000), ageMilliseconds: 0, explanation: "why")),
  ]

  @Test func everyEventIsReadBackAsItWasWritten() throws {
    for event in events { #expect(try AuditEvent(type: event.type, data: event.data) == event) }
  }

  @Test func whatIsMissingOrWrongIsNamed() {
    func failure(_ type: EventType, _ json: String) -> String? {
      do {
        _ = try AuditEvent(type: type, data: Array(json.utf8))
        return nil
      } catch { return error.field }
    }
    #expect(failure(.auditCheckpointed, "{}") == "scope")
    #expect(failure(.auditCheckpointed, #"{"scope":"partition"}"#) == "topic")
    #expect(failure(.auditCheckpointed, #"{"scope":"partition","topic":"t","partition":-1}"#) == "partition")
    #expect(failure(.auditCheckpointed, #"{"scope":"summary"}"#) == "added")
    #expect(failure(.auditCheckpointed, #"{"scope":"summary","added":[1]}"#) == "added")
    #expect(failure(.auditCheckpointed, #"{"scope":"summary","added":[]}"#) == "size")
    #expect(failure(.auditAnomalyFound, #"{"kind":"?"}"#) == "kind")
    #expect(failure(.auditAnomalyFound, #"{"kind":"finished-without-grant"}"#) == "since")
    #expect(failure(.paymentAdded, "{}") == "type")
  }
}
