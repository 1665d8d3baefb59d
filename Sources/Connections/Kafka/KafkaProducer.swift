import CPurchasesKafka
import Synchronization

/// Where a record was stored.
public struct Delivery: Hashable, Sendable {
  public let partition: KafkaPartition
  public let offset: Int64
}

/// Called once per record, on the producer's own thread: the record is durable on all in-sync replicas, or it is not
/// known to be.
public typealias DeliveryReport = @Sendable (Result<Delivery, KafkaError>) -> Void

/// An idempotent producer that counts a record as stored only when all in-sync replicas have it.
///
/// Safe to use from any thread. With a transactional id, records may be sent only inside a transaction, and one thread
/// at a time drives the transaction. Close it when done; a producer that is dropped unclosed gives up what it holds.
public final class KafkaProducer: Sendable {
  let client: Client
  private let thread: PollThread
  private let closed = Atomic<Bool>(false)
  public let transactionalId: String?

  /// What to do when the local queue (`queue.buffering.max.messages`, `.kbytes`) has no room.
  public enum WhenFull: Sendable {
    /// Throw a retriable `queueFull`.
    case fail
    /// Wait for room. Blocks the calling thread.
    case wait
  }

  private let firstFailure: FirstFailure

  private final class FirstFailure: Sendable {
    let error = Mutex<KafkaError?>(nil)
  }

  /// Records handed over and not reported. librdkafka's own queue length counts other news too.
  private let unreported: Tally

  private final class Tally: Sendable {
    let count = Atomic(0)
  }

  private final class Ticket {
    let report: DeliveryReport
    init(_ report: @escaping DeliveryReport) { self.report = report }
  }

  // The role's settings: what the guarantees rest on.
  static let role = [
    "enable.idempotence": "true", "acks": "all", "partitioner": "murmur2", "allow.auto.create.topics": "false",
  ]

  /// - Throws: a `KafkaError` of severity `setting`. Nothing is connected yet: an unreachable broker shows later.
  public init(
    settings: KafkaSettings, transactionalId: String? = nil, log: @escaping KafkaLogSink = { _ in }
  ) throws(KafkaError) {
    var role = KafkaProducer.role
    if let transactionalId { role["transactional.id"] = transactionalId }
    let client = try Client(
      RD_KAFKA_PRODUCER, settings, role: role, events: RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR, log: log)
    self.client = client
    self.transactionalId = transactionalId
    let firstFailure = FirstFailure()
    self.firstFailure = firstFailure
    let unreported = Tally()
    self.unreported = unreported
    thread = PollThread(client) { [weak client] event in
      switch rd_kafka_event_type(event) {
      case RD_KAFKA_EVENT_DR: KafkaProducer.report(event, firstFailure, unreported)
      case RD_KAFKA_EVENT_ERROR: _ = client?.note(event)
      default: break
      }
    }
  }

  deinit { close(milliseconds: 0) }

  private static func report(_ event: OpaquePointer, _ firstFailure: FirstFailure, _ unreported: Tally) {
    while let message = rd_kafka_event_message_next(event) {
      unreported.count.subtract(1, ordering: .relaxed)
      let failed = message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR
      guard failed || message.pointee._private != nil else { continue }
      let topic = message.pointee.rkt.flatMap { rd_kafka_topic_name($0) }.map { String(cString: $0) } ?? ""
      let partition = KafkaPartition(topic, message.pointee.partition)
      let error = failed ? KafkaError.code(message.pointee.err, "storing a record in \(partition)") : nil
      if let error { firstFailure.error.withLock { $0 = $0 ?? error } }
      guard let opaque = message.pointee._private else { continue }
      let ticket = Unmanaged<Ticket>.fromOpaque(opaque).takeRetainedValue()
      if let error {
        ticket.report(.failure(error))
      } else {
        ticket.report(.success(Delivery(partition: partition, offset: message.pointee.offset)))
      }
    }
  }

  /// Hands a record over for sending; it is copied. In a transaction the report may be left out: a record that could
  /// not be stored fails the commit.
  /// - Throws: when the record was not taken; its report is then never called.
  public func send(
    _ record: OutgoingRecord, whenFull: WhenFull = .fail, report: DeliveryReport? = nil
  ) throws(KafkaError) {
    guard !closed.load(ordering: .acquiring) else { throw .closed("producer") }
    let topic = try client.topic(record.topic)
    var headers: OpaquePointer?
    if !record.headers.isEmpty {
      headers = rd_kafka_headers_new(record.headers.count)
      for header in record.headers {
        header.value.lend { bytes, count in
          _ = rd_kafka_header_add(headers, header.name, -1, bytes, count)
        }
      }
    }
    let opaque = report.map { Unmanaged.passRetained(Ticket($0)) }
    let flags = purchases_kafka_flag_copy() | (whenFull == .wait ? purchases_kafka_flag_block() : 0)
    let partition = record.partition ?? purchases_kafka_any_partition()
    unreported.count.add(1, ordering: .relaxed)
    let outcome = record.key.lend { key, keySize in
      record.value.lend { value, valueSize in
        purchases_kafka_produce(
          client.pointer, topic.pointer, partition, flags, record.timestamp ?? 0, key, keySize, value, valueSize,
          headers,
          opaque?.toOpaque())
      }
    }
    guard outcome != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    unreported.count.subtract(1, ordering: .relaxed)
    opaque?.release()
    if let headers { rd_kafka_headers_destroy(headers) }
    if let fatal = fatalError { throw fatal }
    let size = (record.value?.count ?? 0) + (record.key?.count ?? 0)
    throw .code(outcome, "sending a record of \(size) bytes to \(record.topic)")
  }

  /// The first record that could not be stored since the last call: why a transaction has to be aborted.
  public func takeFirstFailure() -> KafkaError? {
    firstFailure.error.withLock { error in
      defer { error = nil }
      return error
    }
  }

  /// Runs something on the producer's own thread, where delivery reports are called too. False, and nothing is run, when
  /// the producer is closed.
  public func onReportThread(_ work: @escaping @Sendable () -> Void) -> Bool { thread.run(work) }

  /// Records that were handed over and are not reported yet.
  public var outstanding: Int { unreported.count.load(ordering: .relaxed) }

  /// Waits until every record has been reported. Blocks the calling thread.
  public func flush(milliseconds: Int32) throws(KafkaError) {
    let outcome = rd_kafka_flush(client.pointer, milliseconds)
    if outcome != RD_KAFKA_RESP_ERR_NO_ERROR {
      throw client.explained(.code(outcome, "waiting for \(outstanding) records to be stored"))
    }
  }

  /// Gives up all records that are not stored yet; each is reported as a failure. Whether one in flight was stored
  /// stays unknown.
  public func purge() {
    rd_kafka_purge(client.pointer, purchases_kafka_purge_all())
  }

  /// The error that made this producer unusable, where there is one.
  public var fatalError: KafkaError? { client.fatalError }

  /// The broker's refusal to let us in (password, certificate), where there was one.
  public var refusal: KafkaError? { client.refused }

  /// Waits for the records handed over, then ends the producer; records that are still not stored are given up, and
  /// reported so. Blocks the calling thread.
  /// - Returns: how many were given up.
  @discardableResult
  public func close(milliseconds: Int32) -> Int {
    guard !closed.exchange(true, ordering: .acquiringAndReleasing) else { return 0 }
    if milliseconds > 0 { rd_kafka_flush(client.pointer, milliseconds) }
    let open = outstanding
    rd_kafka_purge(client.pointer, purchases_kafka_purge_all())
    // The purge reports what it gave up; wait for these reports so that no caller waits for ever. When a report drops
    // the last reference to its producer, we are on the thread that hands the reports on, and waiting would be for ourselves.
    if !thread.isCurrent { rd_kafka_flush(client.pointer, KafkaProducer.purgeMilliseconds) }
    thread.stop()
    return open
  }

  private static let purgeMilliseconds: Int32 = 5000

  /// The partition that Kafka's Java client chooses for a key among so many. Keyless records all go to one partition.
  public static func partition(ofKey key: [UInt8]?, among count: Int32) -> Int32 {
    precondition(count > 0, "a topic has at least one partition")
    return (key ?? []).lendAlways { bytes, size in
      rd_kafka_msg_partitioner_murmur2(nil, bytes, size, count, nil, nil)
    }
  }
}

extension [UInt8]? {
  /// Lends the bytes to C. Null and empty stay apart: an empty array has an address too.
  func lend<T>(_ body: (UnsafeRawPointer?, Int) -> T) -> T {
    guard let self else { return body(nil, 0) }
    return self.lendAlways(body)
  }
}

extension [UInt8] {
  func lendAlways<T>(_ body: (UnsafeRawPointer?, Int) -> T) -> T {
    if isEmpty { return [UInt8(0)].withUnsafeBytes { body($0.baseAddress, 0) } }
    return withUnsafeBytes { body($0.baseAddress, $0.count) }
  }
}
