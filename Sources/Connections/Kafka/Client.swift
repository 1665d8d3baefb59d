import CPurchasesKafka
import Dispatch
import Glibc
import Synchronization

/// One line of librdkafka's log.
public struct KafkaLogLine: Hashable, Sendable {
  /// As in syslog: 0 (emergency) to 7 (debug).
  public let level: Int
  /// librdkafka's own name of the place, such as `FAIL` or `REQTMOUT`.
  public let facility: String
  public let message: String
}

/// Takes log lines. Called on librdkafka's own threads: it must be quick and must not call back into Kafka.
public typealias KafkaLogSink = @Sendable (KafkaLogLine) -> Void

/// One librdkafka handle and what it calls back.
///
/// `@unchecked Sendable`: librdkafka's handle may be used from any thread; it is destroyed in `deinit` only, when no
/// one can be calling it any more. What this class adds to it is behind a lock.
final class Client: @unchecked Sendable {
  static let errorTextSize = 512
  let pointer: OpaquePointer
  private let callback: Unmanaged<Callback>
  private let topics = Mutex<[String: Topic]>([:])
  private let refusal = Mutex<(error: KafkaError, at: Int64)?>(nil)
  private let skipsClose: Bool
  /// How many connections had ended when partitions' leaders last answered.
  let endedWhenAnswered = Atomic(0)
  private let isAbandoned = Atomic(false)

  /// `@unchecked Sendable`: librdkafka's topic handle is safe to use from any thread; freed once, in `deinit`.
  final class Topic: @unchecked Sendable {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { rd_kafka_topic_destroy(pointer) }
  }

  private final class Callback: Sendable {
    let log: KafkaLogSink
    let ended = Atomic(0)
    init(_ log: @escaping KafkaLogSink) { self.log = log }
  }

  /// - Parameter skipsClose: destroying does not leave the consumer group; the consumer has seen to that.
  init(
    _ kind: rd_kafka_type_t, _ settings: KafkaSettings, role: [String: String], events: Int32, skipsClose: Bool = false,
    log: @escaping KafkaLogSink
  ) throws(KafkaError) {
    let configuration = try settings.configuration(role: role)
    let callback = Unmanaged.passRetained(Callback(log))
    rd_kafka_conf_set_opaque(configuration, callback.toOpaque())
    rd_kafka_conf_set_events(configuration, events)
    rd_kafka_conf_set_log_cb(configuration) { client, level, facility, message in
      guard let client, let opaque = rd_kafka_opaque(client), let facility, let message else { return }
      let line = KafkaLogLine(
        level: Int(level), facility: String(cString: facility), message: String(cString: message))
      // One list of settings serves all roles, so some of them are another role's: that is no news.
      if line.facility == "CONFWARN", line.message.contains(" property and will be ignored by this ") { return }
      Unmanaged<Callback>.fromOpaque(opaque).takeUnretainedValue().log(line)
    }
    rd_kafka_conf_set_closesocket_cb(configuration) { socket, opaque in
      if let opaque, purchases_kafka_has_sent(socket) != 0 {
        Unmanaged<Callback>.fromOpaque(opaque).takeUnretainedValue().ended.add(1, ordering: .relaxed)
      }
      return close(socket)
    }
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    guard let pointer = rd_kafka_new(kind, configuration, &text, text.count) else {
      rd_kafka_conf_destroy(configuration)
      callback.release()
      let reason = Client.string(text)
      let culprit = (Array(settings.values.keys) + Array(role.keys)).filter { reason.contains($0) }
        .max { $0.count < $1.count }
      throw KafkaError(.setting, .invalidArgument, "the Kafka client's settings: \(reason)", setting: culprit)
    }
    self.pointer = pointer
    self.callback = callback
    self.skipsClose = skipsClose
  }

  /// The error that made the client unusable, where there is one.
  var fatalError: KafkaError? {
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    let code = rd_kafka_fatal_error(pointer, &text, text.count)
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return KafkaError(.fatal, KafkaCode(code), Client.string(text))
  }

  /// Connections that are over after something was sent on them. Attempts at a broker that isn't there don't count.
  var endedConnections: Int { callback.takeUnretainedValue().ended.load(ordering: .relaxed) }

  /// Gives the handle up without destroying it. librdkafka's destroy waits without end for a group that never answers: a few
  /// megabytes that are never freed do less harm than a process that never stops.
  func abandon() { isAbandoned.store(true, ordering: .relaxed) }

  /// Well above what ending takes with brokers that hang: connections are cut, not ended in order.
  private static let endSeconds = 10.0

  /// Waits for the handle's end, and not for ever: librdkafka joins all threads of the handle, and a process that was told to
  /// stop must stop. What is left behind ends by itself, or with the process.
  deinit {
    topics.withLock { $0.removeAll() }
    guard !isAbandoned.load(ordering: .relaxed) else { return }
    // Nobody else has them any more.
    nonisolated(unsafe) let pointer = pointer
    let callback = callback
    let flags = skipsClose ? Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) : 0
    let ended = DispatchSemaphore(value: 0)
    DispatchQueue(label: "purchases.kafka.end").async {
      rd_kafka_destroy_flags(pointer, flags)
      callback.release()
      ended.signal()
    }
    _ = ended.wait(timeout: .now() + Client.endSeconds)
  }

  static func string(_ text: [CChar]) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The handle of a topic, made once: looking it up by name for each record would cost more than the record.
  func topic(_ name: String) throws(KafkaError) -> Topic {
    let found = topics.withLock { topics -> Topic? in
      if let topic = topics[name] { return topic }
      guard let pointer = rd_kafka_topic_new(self.pointer, name, nil) else { return nil }
      let topic = Topic(pointer)
      topics[name] = topic
      return topic
    }
    guard let found else { throw .code(rd_kafka_last_error(), "topic \(name)") }
    return found
  }

  /// Notes an error that librdkafka reports aside from any call. A refused log-in shows up here only: calls would just
  /// time out.
  func note(_ event: OpaquePointer) -> KafkaError {
    let code = KafkaCode(rd_kafka_event_error(event))
    let text = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? code.explanation
    var severity = KafkaError.severity(of: code)
    var reported = code
    if rd_kafka_event_error_is_fatal(event) != 0 || code == .fatal {
      severity = .fatal
      reported = fatalError?.code ?? code
    }
    let error = KafkaError(severity, reported, text)
    if Client.isRefusal(code) { refusal.withLock { $0 = (error, monotonicMilliseconds()) } }
    return error
  }

  static func isRefusal(_ code: KafkaCode) -> Bool {
    code == .authentication || code == .tls || code.rawValue == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED.rawValue
      || code.rawValue == RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM.rawValue
  }

  // librdkafka tries again about once a second, so a refusal that still holds has been told within this.
  private static let refusalMilliseconds: Int64 = 5_000

  /// The broker's refusal to let us in, while it holds. A success clears it: passwords change under way, and a broker that
  /// goes down in the middle of a handshake looks like one.
  var refused: KafkaError? {
    refusal.withLock { refusal in
      guard let found = refusal, monotonicMilliseconds() - found.at < Client.refusalMilliseconds else { return nil }
      return found.error
    }
  }

  func clearRefusal() { refusal.withLock { $0 = nil } }

  /// Replaces a time-out by its known cause.
  func explained(_ error: KafkaError) -> KafkaError {
    switch error.code {
    case .timedOut, .transport, .allBrokersDown, .messageTimedOut: refused ?? error
    default: error
    }
  }
}

/// Milliseconds of the clock that never jumps: for deadlines.
func monotonicMilliseconds() -> Int64 {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
}
