import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// The longer end of a subscription's period, as Apple granted it.
public struct RenewalExtension: Sendable, Hashable {
  public let originalTransaction: String
  public let webOrderLineItem: String?
  public let effectiveDate: Instant?
}

/// Why a period is made longer.
public enum ExtensionReason: Int64, Sendable, Hashable, CaseIterable {
  case undeclared = 0
  case customerSatisfaction = 1
  case other = 2
  case serviceOutage = 3
}

/// Calls that change something at Apple's. What they send must be on the log before it is sent: the callers see to it, and a
/// replay has no client to send with.
extension ServerAPI {
  /// Tells Apple what became of a purchase that a refund is asked for. `PUT /v2/transactions/consumption/{id}`.
  ///
  /// Apple waits twelve hours for it after its CONSUMPTION_REQUEST.
  public func sendConsumption(
    _ information: ConsumptionInformation, of id: TransactionID
  ) throws(ServerAPIFailure) {
    if let fault = information.fault { throw .notSendable(fault) }
    var request = Request("PUT", ["v2", "transactions", "consumption", id.text], .consumption)
    request.body = information.body
    _ = try send(request)
  }

  /// Says whose a purchase is. `PUT /v1/transactions/{originalTransactionId}/appAccountToken`.
  ///
  /// - Parameter token: a UUID.
  public func setAccountToken(_ token: String, of original: OriginalTransactionID) throws(ServerAPIFailure) {
    guard Account.isUUID(token) else { throw .notSendable("an app account token is a UUID") }
    var request = Request("PUT", ["v1", "transactions", original.text, "appAccountToken"], .setAccountToken)
    var writer = JSONWriter()
    writer.object { $0.field("appAccountToken", token.lowercased()) }
    request.body = writer.bytes
    _ = try send(request)
  }

  /// The most days that one extension adds.
  public static let maximumExtensionDays: Int64 = 90
  /// Apple's bound on the caller's own id of an extension.
  static let maximumRequestIDBytes = 128

  /// Makes a subscription's period longer, twice a year at most. `PUT /v1/subscriptions/extend/{originalTransactionId}`.
  ///
  /// - Parameter requestID: the caller's own, by which Apple's notifications name it. It is sent once only: where no
  ///   answer came, look at the subscription before asking again.
  public func extendRenewal(
    of original: OriginalTransactionID, byDays days: Int64, reason: ExtensionReason, requestID: String
  ) throws(ServerAPIFailure) -> RenewalExtension {
    guard (1...Self.maximumExtensionDays).contains(days) else {
      throw .notSendable("an extension is of 1 to \(Self.maximumExtensionDays) days")
    }
    guard (1...Self.maximumRequestIDBytes).contains(requestID.utf8.count) else {
      throw .notSendable("a request id has 1 to \(Self.maximumRequestIDBytes) characters")
    }
    var request = Request("PUT", ["v1", "subscriptions", "extend", original.text], .extendRenewal)
    request.isRepeatable = false
    var writer = JSONWriter()
    writer.object { json in
      json.field("extendByDays", days)
      json.field("extendReasonCode", reason.rawValue)
      json.field("requestIdentifier", requestID)
    }
    request.body = writer.bytes
    return try answer(request) { root in
      guard root["success"]?.bool == true, let original = root["originalTransactionId"]?.string else { return nil }
      return RenewalExtension(
        originalTransaction: original, webOrderLineItem: root["webOrderLineItemId"]?.string,
        effectiveDate: root["effectiveDate"]?.milliseconds.map { Instant(milliseconds: $0) })
    }
  }

  /// Tells Apple that the content is delivered. `POST /v1/transactions/{id}/finish`, since version 1.20 of the API.
  ///
  /// - Parameter permit: that the pipeline allowed it; there is no finishing without one.
  public func finish(_ permit: FinishPermit) throws(ServerAPIFailure) {
    _ = try send(Request("POST", ["v1", "transactions", permit.transaction.text, "finish"], .finish))
  }
}

/// Whoever holds a permit of the pipeline (`payment.finishable`) for a transaction.
public struct FinishPermit: Sendable, Hashable {
  public let transaction: TransactionID
  /// The id of the event that permits it.
  public let event: String

  public init(transaction: TransactionID, permittedBy event: String) {
    self.transaction = transaction
    self.event = event
  }
}
