import Glibc
import PurchasesContracts
import PurchasesKafka
import PurchasesKafkaLog

/// The broker that the tests run against. `Scripts/test` starts one with `Scripts/kafka`, where Apache Kafka can be fetched,
/// and names it here; elsewhere the suites that need it are skipped by name.
enum Broker {
  static let bootstrap = environment("PURCHASES_TEST_KAFKA")
  /// The settings of a client for a broker that requires TLS and a password: `name=value` lines.
  static let secured = environment("PURCHASES_TEST_KAFKA_TLS")
  static let why =
    "PURCHASES_TEST_KAFKA names no broker (Apache Kafka could not be fetched, or Scripts/test was not used)"
  static let whySecured = "PURCHASES_TEST_KAFKA_TLS names no settings of a secured broker (see Scripts/test)"

  static let askMilliseconds: Int32 = 20_000

  private static func environment(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// A name that no other run and no other test has.
  static func fresh(_ part: String) -> String { "test-\(part)-\(UInt64.random(in: 0...UInt64.max))" }

  static func settings(_ more: [String: String] = [:]) throws -> KafkaSettings {
    var values = more
    values["bootstrap.servers"] = bootstrap ?? "127.0.0.1:1"
    return try KafkaSettings(values)
  }

  static func log(_ more: [String: String] = [:], servers: String? = nil) throws(LogFailure)
    -> PurchasesKafkaLog.KafkaLog
  {
    try PurchasesKafkaLog.KafkaLog(url: "kafka://\(servers ?? bootstrap ?? "127.0.0.1:1")", settings: more)
  }

  static func topic(
    _ part: String, partitions: Int32 = 1, replication: Int16 = 1, on log: PurchasesKafkaLog.KafkaLog
  ) throws -> String {
    let name = fresh(part)
    try log.ensure([
      TopicSpec(name: name, partitions: partitions, replication: replication, isCompacted: false, maximumBytes: 1 << 20)
    ])
    return name
  }
}
