import Dispatch
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog

/// Publishes payment-queue events and App Store notifications to the pipeline's log, from a Swift back end.
///
///     let producer = try PurchasesProducer(log: "kafka://broker-1:9092,broker-2:9092")
///     let receipt = try await producer.publish(
///       .purchased(
///         environment: .production, account: user.id, transactionId: transaction.id, productId: transaction.productID,
///         signedTransaction: transaction.jws))
///     await producer.close()
///
/// `publish` returns when the event is durable (Kafka: idempotent producer, acknowledged by all in-sync replicas;
/// embedded log: on the disk), and throws otherwise. To publish the same event again is always safe.
///
/// Make one per process and share it: it may be used by any number of tasks. What blocks runs on threads of its own.
/// The events of one account keep their order when each is published after the one before has returned.
public final class PurchasesProducer: Sendable {
  public struct Settings: Sendable {
    /// The deployment's topic prefix.
    public var topicPrefix: String
    /// What the events name as their source: a URI reference of your service.
    public var source: String
    /// librdkafka settings for a log on Kafka (`security.protocol`, `sasl.username`, `ssl.ca.location`, …).
    public var kafka: [String: String]
    /// The time that records are stamped with, in milliseconds since 1970; the system's by default.
    public var now: @Sendable () -> WireTime

    public init(
      topicPrefix: String = TopicSettings().prefix, source: String = "/purchases/producer",
      kafka: [String: String] = [:], now: (@Sendable () -> WireTime)? = nil
    ) {
      self.topicPrefix = topicPrefix
      self.source = source
      self.kafka = kafka
      self.now = now ?? { WireTime(milliseconds: EmbeddedLog.WallClock().now().milliseconds) }
    }
  }

  private let settings: Settings
  private let topics: TopicSettings
  private let connection: LogConnection

  /// Checks the address; the log itself is opened by the first `publish` or by `connect`.
  /// - Parameter log: `kafka://HOST:PORT,HOST:PORT` or `sqlite:PATH`.
  /// - Throws: `ProducerError.address`.
  public init(log: String, settings: Settings = Settings()) throws(ProducerError) {
    self.settings = settings
    topics = TopicSettings(prefix: settings.topicPrefix)
    connection = LogConnection(try LogAddress(log), settings.kafka)
  }

  /// Opens the log now, to learn at start-up whether it can be reached.
  public func connect() async throws(ProducerError) {
    let result: Result<Void, ProducerError> = await withCheckedContinuation { continuation in
      connection.withProducer { producer in continuation.resume(returning: producer.map { _ in }) }
    }
    try result.get()
  }

  /// Publishes one event; returns when it is durable.
  /// Cancelling the task doesn't take the event back: it may be durable already.
  @discardableResult
  public func publish(_ event: PurchaseEvent) async throws(ProducerError) -> Receipt {
    let results = await publish([event])
    return try results[0].get()
  }

  /// Publishes many at once, each with its own result, in the given order. Much faster than one by one.
  public func publish(_ events: [PurchaseEvent]) async -> [Result<Receipt, ProducerError>] {
    var results: [Result<Receipt, ProducerError>?] = Array(repeating: nil, count: events.count)
    var good: [(index: Int, received: ReceivedRecord)] = []
    for (index, event) in events.enumerated() {
      do {
        good.append((index, try event.received()))
      } catch {
        results[index] = .failure(ProducerError(error))
      }
    }
    if !good.isEmpty {
      let now = settings.now().instant
      let outcomes = await deliver(good.map { $0.received.produced(to: topics, source: settings.source, at: now) })
      for (position, one) in good.enumerated() {
        results[one.index] = outcomes[position].map { Receipt(one.received, $0) }
      }
    }
    return results.map { $0 ?? .failure(.unavailable(reason: "the log gave no report")) }
  }

  /// Waits for what is under way, for at most `seconds`, and closes the log. Answers how many events were given up; their
  /// `publish` throws. Nothing can be published afterwards.
  @discardableResult
  public func close(within seconds: Double = 30) async -> Int {
    await withCheckedContinuation { continuation in
      connection.close(within: seconds) { continuation.resume(returning: $0) }
    }
  }

  private func deliver(_ records: [ProducedRecord]) async -> [Result<Coordinates, ProducerError>] {
    await withCheckedContinuation { continuation in
      connection.withProducer { producer in
        switch producer {
        case .failure(let error): continuation.resume(returning: records.map { _ in .failure(error) })
        case .success(let producer):
          producer.publish(records) { results in
            continuation.resume(returning: results.map { $0.mapError { ProducerError($0) } })
          }
        }
      }
    }
  }
}
