import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// What a person orders about an account: an event on the log, and an answer in the store once it was worked off.
public struct OperatorOrder: Sendable {
  public let request: AskedRequest
  private let received: ReceivedRecord

  /// What follows from an order is named by its id and a chain's, and must be readable too.
  private static let maximumIDBytes = 256

  /// - Throws: for an order that the log's readers would refuse.
  public init(_ order: AccessOrdered) throws(FieldFailure) {
    guard order.orderID.utf8.count <= Self.maximumIDBytes else {
      throw FieldFailure("orderId", "is longer than \(Self.maximumIDBytes) bytes")
    }
    let event = ReceivedEvent.ordered(order)
    // By the way that it will be read, so that nothing stands in the log that nobody can take.
    received = try ReceivedRecord(type: .accessOrdered, data: event.data)
    guard let request = received.request else { preconditionFailure("an order is answered") }
    self.request = request
  }

  /// Returns once the order is durable. The same order again has no second effect.
  public func publish(on log: any EventLog, _ topics: TopicSettings, clock: any Clock) throws {
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let record = received.produced(to: topics, source: "/purchases/tool", at: clock.now())
    for result in producer.publishAndWait([record]) { _ = try result.get() }
  }

  public static func newID() -> String { UUID().uuidString.lowercased() }

  /// Soon enough for a person, rarely enough for the store.
  private static let pauseMilliseconds: Int64 = 50

  /// Waits for the answer; nil where there is none in time.
  public func answer(
    from reader: any StoreReader, withinMilliseconds limit: Int64, unless stop: StopSignal
  ) throws -> AnswerRow? {
    let watch = Stopwatch()
    while true {
      if let answer = try reader.answer(request.environment, request.account, request.name) { return answer }
      guard watch.seconds * 1000 < Double(limit), !stop.wait(milliseconds: Self.pauseMilliseconds) else { return nil }
    }
  }
}
