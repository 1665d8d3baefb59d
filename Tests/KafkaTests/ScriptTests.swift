import PurchasesContracts
import PurchasesCore
import Testing

/// Kafka's own tools, as `Scripts/kafka tool` names them.
@Suite(.enabled(if: Broker.bootstrap != nil, Comment(rawValue: Broker.why)))
struct KafkaScriptTests {
  @Test func everyToolAnswersToItsShortNameAndToKafkas() throws {
    let broker = try OwnBroker()
    defer { broker.stop() }
    let log = try Broker.log(servers: broker.servers)
    let topic = try Broker.topic("tools", on: log)
    let copier = try Copier(log, group: "readers", instance: "one", from: topic, to: topic)
    defer { copier.close() }
    let producer = try log.producer()
    producer.publish([
      ProducedRecord(
        topic: topic, partition: 0, record: Record(key: nil, value: [0x68, 0x69], timestamp: Instant(milliseconds: 1)))
    ]) { _ in }
    #expect(producer.close(withinMilliseconds: 20_000) == 0)
    while copier.commits == 0 { try copier.step() }

    func tool(_ name: String, _ arguments: String...) throws -> String {
      let words = ["tool", name, "--bootstrap-server", broker.servers] + arguments
      return try run(words: [OwnBroker.script] + words)
    }
    #expect(try tool("topics", "--list").contains(topic))
    #expect(
      try tool("configs", "--describe", "--entity-type", "topics", "--entity-name", topic).contains(
        "max.message.bytes="))
    for name in ["groups", "consumer-groups"] {
      #expect(try tool(name, "--describe", "--group", "readers", "--offsets").contains(topic))
    }
    for name in ["offsets", "get-offsets"] {
      #expect(try tool(name, "--topic", topic).contains("\(topic):0:"))
    }
    for name in ["consume", "console-consumer"] {
      let read = try tool(
        name, "--topic", topic, "--partition", "0", "--offset", "0", "--max-messages", "1", "--timeout-ms", "20000")
      #expect(read.contains("hi"))
    }
    #expect(try tool("transactions", "list").contains("TransactionalId"))
    let segment = "\(broker.folder)/data1/\(topic)-0/00000000000000000000.log"
    let dump = try run(words: [OwnBroker.script, "tool", "dump-log", "--files", segment, "--print-data-log"])
    #expect(dump.contains("payload: hi"))
    #expect(throws: ProgramFailed.self) { try tool("nonsense", "--list") }
  }
}
