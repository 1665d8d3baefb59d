import PurchasesContracts
import PurchasesKafka

/// How a deployment reaches its Kafka: an address such as `kafka://one:9092,two:9092`, and any of librdkafka's settings by
/// its own name, such as `security.protocol`.
public struct KafkaLogSettings: Sendable, Hashable {
  let client: KafkaSettings

  /// - Throws: `refused`, naming the part of the address or the setting that is wrong.
  public init(url: String, settings: [String: String] = [:]) throws(LogFailure) {
    let scheme = "kafka://"
    guard url.hasPrefix(scheme) else {
      throw LogFailure(.refused, "a Kafka address begins with \(scheme)")
    }
    let servers = String(url.dropFirst(scheme.count))
    guard !servers.contains("@") else {
      throw LogFailure(.refused, "a Kafka address holds no password: set sasl.username and sasl.password")
    }
    for server in servers.split(separator: ",", omittingEmptySubsequences: false) {
      guard KafkaLogSettings.isAddress(server) else {
        throw LogFailure(.refused, "'\(server)' in the Kafka address is not HOST:PORT")
      }
    }
    try self.init(servers: servers, settings: settings)
  }

  init(servers: String, settings: [String: String]) throws(LogFailure) {
    guard settings["metadata.broker.list"] == nil, settings["bootstrap.servers"] == nil else {
      throw LogFailure(.refused, "setting bootstrap.servers: the Kafka address says that already")
    }
    do throws(KafkaError) {
      var values = settings
      values["bootstrap.servers"] = servers
      client = try KafkaSettings(values).withDefaults(KafkaLogSettings.defaults)
      try client.validate()
    } catch {
      throw LogFailure(error)
    }
  }

  private static func isAddress(_ text: Substring) -> Bool {
    guard let colon = text.lastIndex(of: ":"), colon != text.startIndex else { return false }
    guard let port = UInt16(text[text.index(after: colon)...]), port > 0 else { return false }
    return !text[..<colon].contains { $0 == "/" || $0 == " " || $0 == "?" }
  }

  private static let defaults = [
    // The largest topic's records (10 MiB) with their coordinates and Kafka's own framing.
    "message.max.bytes": "12582912",
    // No report to the cluster about us.
    "enable.metrics.push": "false",
    // A reader whose queue was full looks again after this: the default of a second shows as a stall.
    "fetch.queue.backoff.ms": "10",
    "check.crcs": "true",
    "connections.max.idle.ms": "0",
    "reconnect.backoff.max.ms": "1000",
    "client.id": "purchases",
  ]
}
