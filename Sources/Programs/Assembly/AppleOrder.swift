import Foundation
import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// Something that a person tells Apple. It is an event on the log before it is sent, and what came of it is another one. A
/// replay reads both and sends nothing: sending is no part of any stage.
public struct AppleOrder: Sendable {
  public let operatorName: String
  public let reason: String
  /// Such as `appstore.finish`.
  public let action: String
  /// What is told, as `name=value`, in an order of its own.
  public let arguments: [String]

  public init(operatorName: String, reason: String, action: String, arguments: [String]) {
    self.operatorName = operatorName
    self.reason = reason
    self.action = action
    self.arguments = arguments
  }

  /// Writes the order, does it, and writes what came of it.
  ///
  /// - Parameter send: tells Apple; answers what to add to the outcome, as `name=value`.
  /// - Throws: without an order on the log nothing is sent; what Apple says otherwise is on the log and thrown.
  public func carryOut(
    on log: any EventLog, _ topics: TopicSettings, clock: any Clock, send: () throws(ServerAPIFailure) -> [String]
  ) throws {
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let id = UUID().uuidString.lowercased()
    func write(_ id: String, _ action: String, _ arguments: [String]) throws {
      let event = ReceivedEvent.operatorActed(
        OperatorActed(actID: id, operatorName: operatorName, reason: reason, action: action, arguments: arguments))
      let record = ReceivedRecord(event).produced(to: topics, source: "/purchases/apple", at: clock.now())
      for result in producer.publishAndWait([record]) { _ = try result.get() }
    }
    try write(id, action, arguments)
    do throws(ServerAPIFailure) {
      let answer = try send()
      try? write(id + ".outcome", action + ".accepted", ["order=\(id)"] + answer)
    } catch {
      // The order stands on the log without an outcome where this can't be written: the outcome is then not known.
      try? write(id + ".outcome", action + ".failed", ["order=\(id)", "failure=\(error.description)"])
      throw error
    }
  }
}

extension StoreReader {
  /// More than any device signs of one transaction.
  private static var maximumProofsOfATransaction: Int { 1000 }

  /// The pipeline's permit to finish a transaction, if it has given one.
  public func finishPermit(_ environment: Environment, _ transaction: TransactionID) throws -> FinishPermit? {
    let rows = try rows(
      .permit, where: "transaction", is: .text(transaction.text), limit: Self.maximumProofsOfATransaction)
    let row = rows.first { $0.key.values.first?.text == environment.rawValue && $0["status"].text == "finishable" }
    return row.flatMap { $0["event"].text }.map { FinishPermit(transaction: transaction, permittedBy: $0) }
  }
}
