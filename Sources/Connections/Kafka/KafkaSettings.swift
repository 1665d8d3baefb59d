import CPurchasesKafka

/// Settings of librdkafka by their own names. All of them pass through, but for those that would break a guarantee
/// this package gives: these are refused with the reason.
public struct KafkaSettings: Hashable, Sendable {
  public private(set) var values: [String: String]

  /// - Throws: a `KafkaError` of severity `setting` when a setting is refused. Names and values that only librdkafka can
  ///   judge are judged when a client is made.
  public init(_ values: [String: String] = [:]) throws(KafkaError) {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      if let reason = KafkaSettings.refusal(name, value) { throw .setting(name, reason) }
    }
    self.values = values
  }

  /// Whether any client would take these settings: unknown names and impossible values throw.
  public func validate() throws(KafkaError) {
    rd_kafka_conf_destroy(try configuration(role: [:]))
  }

  public subscript(name: String) -> String? { values[name] }

  /// A setting that is a whole number; nil where it is not set.
  public func number(_ name: String) -> Int64? { values[name].flatMap { Int64($0) } }

  /// The same settings, with these where nothing was set. They must be ones that are not refused.
  public func withDefaults(_ defaults: [String: String]) -> KafkaSettings {
    var copy = self
    for (name, value) in defaults where copy.values[name] == nil && !copy.sets(aliasOf: name) {
      copy.values[name] = value
    }
    return copy
  }

  /// The same settings, with none of these numbers above the limit: for a role that cannot have what another role may.
  public func capped(_ names: [String], at limit: Int64) -> KafkaSettings {
    var copy = self
    for name in names {
      if let value = copy.number(name), value > limit { copy.values[name] = String(limit) }
    }
    return copy
  }

  /// The same settings, with none of these numbers below the limit. One that is not set is left to librdkafka.
  public func raised(_ names: [String], to limit: Int64) -> KafkaSettings {
    var copy = self
    for name in names {
      if let value = copy.number(name), value < limit { copy.values[name] = String(limit) }
    }
    return copy
  }

  // librdkafka knows these by two names; a default must not undo what was set by the other.
  private static let aliases = [
    ["message.timeout.ms", "delivery.timeout.ms"], ["linger.ms", "queue.buffering.max.ms"],
    ["fetch.message.max.bytes", "max.partition.fetch.bytes"],
  ]

  private func sets(aliasOf name: String) -> Bool {
    KafkaSettings.aliases.contains { $0.contains(name) && $0.contains { values[$0] != nil } }
  }

  private static let ours = "is set by this program"

  private static func refusal(_ name: String, _ value: String) -> String? {
    let value = value.lowercased()
    switch name {
    case "enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store":
      return value == "false"
        ? nil : "must stay false: a position may only be committed once the work on the records is durable"
    case "enable.idempotence":
      return value == "true" ? nil : "must stay true: without it a retry can store a record twice or out of order"
    case "acks", "request.required.acks":
      return value == "all" || value == "-1"
        ? nil : "must stay all: a record counts as accepted only when every in-sync replica has it"
    case "isolation.level":
      return value == "read_committed" ? nil : "must stay read_committed: aborted records must never be seen"
    case "auto.offset.reset":
      return value == "error" ? nil : "must stay error: records that are gone must be reported, not skipped"
    case "partitioner":
      return value == "murmur2" || value == "murmur2_random"
        ? nil : "must stay murmur2: all producers have to agree on the partition of a key"
    case "enable.partition.eof", "allow.auto.create.topics", "transactional.id", "group.id", "enabled_events",
      "log.queue", "offset.store.method", "dr_cb", "delivery.report.only.error", "queuing.strategy":
      return ours
    default:
      return nil
    }
  }

  // Names whose values must not be repeated in a message.
  private static func isSecret(_ name: String) -> Bool {
    name.hasSuffix("password") || name.hasSuffix("secret") || name.hasSuffix(".pem") || name.hasSuffix("_key")
      || name == "sasl.oauthbearer.config"
  }

  /// librdkafka's configuration object, owned by the caller. What the role needs stands above the user's settings.
  func configuration(role: [String: String]) throws(KafkaError) -> OpaquePointer {
    guard let configuration = rd_kafka_conf_new() else { preconditionFailure("librdkafka is out of memory") }
    do throws(KafkaError) {
      for (name, value) in values.sorted(by: { $0.key < $1.key }) where role[name] == nil {
        try KafkaSettings.set(configuration, name, value)
      }
      for (name, value) in role.sorted(by: { $0.key < $1.key }) {
        try KafkaSettings.set(configuration, name, value)
      }
    } catch {
      rd_kafka_conf_destroy(configuration)
      throw error
    }
    return configuration
  }

  private static func set(_ configuration: OpaquePointer, _ name: String, _ value: String) throws(KafkaError) {
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    switch rd_kafka_conf_set(configuration, name, value, &text, text.count) {
    case RD_KAFKA_CONF_OK: return
    case RD_KAFKA_CONF_UNKNOWN: throw .setting(name, "librdkafka does not know it")
    default: throw .setting(name, isSecret(name) ? "the value is not accepted" : Client.string(text))
    }
  }
}
