import PurchasesContracts

/// One event for the pipeline, made by the function that is named like it. Identifiers are strings as the App Store gives
/// them; whether they can be ones is checked when the event is published, and an error names the field.
///
/// `account` is your own id of the user; where it is a UUID, its case doesn't matter. `attemptId` is your own id of the
/// attempt, unique for the account: a retry sends the same one and takes no second effect.
public struct PurchaseEvent: Sendable {
  public enum Environment: String, Sendable, Hashable, CaseIterable {
    case production = "Production"
    case sandbox = "Sandbox"
    case xcode = "Xcode"
    case localTesting = "LocalTesting"
  }

  /// Why a payment or a restore failed, as StoreKit says it.
  public struct Failure: Sendable, Hashable {
    /// Such as `SKErrorDomain`.
    public var domain: String
    public var code: Int
    public var userCancelled: Bool

    public init(domain: String, code: Int, userCancelled: Bool) {
      self.domain = domain
      self.code = code
      self.userCancelled = userCancelled
    }
  }

  let type: EventType
  let data: [UInt8]

  func received() throws(FieldFailure) -> ReceivedRecord {
    try ReceivedRecord(type: type, data: data)
  }

  private init(_ type: EventType, _ body: (inout EventWriter) -> Void) {
    var writer = EventWriter()
    writer.object(body)
    self.type = type
    data = writer.bytes
  }

  // MARK: Payments

  /// A payment was put into the queue.
  public static func added(
    environment: Environment, account: String, attemptId: String, productId: String, quantity: Int? = nil,
    occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.paymentAdded, environment, account, attemptId, occurredAt) { json in
      json.field("productId", productId)
      json.field("quantity", quantity)
    }
  }

  /// A payment waits for somebody's approval (Ask to Buy). It has no transaction id yet and grants nothing.
  public static func deferred(
    environment: Environment, account: String, attemptId: String, productId: String, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.paymentDeferred, environment, account, attemptId, occurredAt) { $0.field("productId", productId) }
  }

  /// A payment went through. `signedTransaction` is the JWS that StoreKit 2 gives (`jwsRepresentation`).
  /// Its permit (`payment.finishable`) says when the client may finish it.
  public static func purchased(
    environment: Environment, account: String, transactionId: String, productId: String, signedTransaction: String,
    quantity: Int? = nil, attemptId: String? = nil, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    proven(
      .paymentPurchased, environment, account, transactionId, productId, signedTransaction, nil, quantity, attemptId,
      occurredAt)
  }

  /// A purchase came back with a restore.
  public static func restored(
    environment: Environment, account: String, transactionId: String, productId: String, signedTransaction: String,
    originalTransactionId: String? = nil, attemptId: String? = nil, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    proven(
      .paymentRestored, environment, account, transactionId, productId, signedTransaction, originalTransactionId, nil,
      attemptId, occurredAt)
  }

  /// A payment went through, and the client has an app receipt to show for it (the original StoreKit). `appReceipt` is the
  /// receipt in base64; with `deviceId` (the UUID of `identifierForVendor`) it is also held against that device.
  /// The receipt speaks of every purchase that the device knows: each counts, and this one is answered.
  public static func purchased(
    environment: Environment, account: String, transactionId: String, productId: String, appReceipt: String,
    deviceId: String? = nil, quantity: Int? = nil, attemptId: String? = nil, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    proven(
      .paymentPurchased, environment, account, transactionId, productId, nil, nil, quantity, attemptId, occurredAt,
      appReceipt: appReceipt, deviceId: deviceId)
  }

  /// A purchase came back with a restore, and an app receipt shows it. Every purchase in the receipt is claimed.
  public static func restored(
    environment: Environment, account: String, transactionId: String, productId: String, appReceipt: String,
    deviceId: String? = nil, originalTransactionId: String? = nil, attemptId: String? = nil,
    occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    proven(
      .paymentRestored, environment, account, transactionId, productId, nil, originalTransactionId, nil, attemptId,
      occurredAt, appReceipt: appReceipt, deviceId: deviceId)
  }

  /// A payment failed or was cancelled; it may be finished at once.
  public static func failed(
    environment: Environment, account: String, attemptId: String, productId: String, failure: Failure,
    occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.paymentFailed, environment, account, attemptId, occurredAt) { json in
      json.field("productId", productId)
      write(failure, &json)
    }
  }

  /// The client has finished a transaction; without an id where a failed payment was finished.
  public static func finished(
    environment: Environment, account: String, attemptId: String, transactionId: String?, productId: String? = nil,
    occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.paymentFinished, environment, account, attemptId, occurredAt) { json in
      json.field("transactionId", transactionId)
      json.field("productId", productId)
    }
  }

  // MARK: Restores

  public static func restoreStarted(
    environment: Environment, account: String, attemptId: String, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.restoreStarted, environment, account, attemptId, occurredAt) { _ in }
  }

  public static func restoreCompleted(
    environment: Environment, account: String, attemptId: String, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.restoreCompleted, environment, account, attemptId, occurredAt) { _ in }
  }

  public static func restoreFailed(
    environment: Environment, account: String, attemptId: String, failure: Failure, occurredAt: WireTime? = nil
  ) -> PurchaseEvent {
    attempt(.restoreFailed, environment, account, attemptId, occurredAt) { write(failure, &$0) }
  }

  // MARK: What else a back end tells

  /// An App Store Server Notification V2: the string `signedPayload` of the body that Apple posted.
  public static func notification(signedPayload: String) -> PurchaseEvent {
    PurchaseEvent(.storeNotified) { $0.field("signedPayload", signedPayload) }
  }

  /// The account, which you have authenticated, says that a purchase without an account token is its own.
  public static func claimed(
    environment: Environment, account: String, originalTransactionId: String, attemptId: String
  ) -> PurchaseEvent {
    PurchaseEvent(.purchaseClaimed) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account)
      json.field("originalTransactionId", originalTransactionId)
      json.field("attemptId", attemptId)
    }
  }

  /// Credits are to be spent. The same `idempotencyKey` spends once.
  public static func spendRequested(
    environment: Environment, account: String, unit: String, amount: Int, idempotencyKey: String
  ) -> PurchaseEvent {
    PurchaseEvent(.creditSpendRequested) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account)
      json.field("unit", unit)
      json.field("amount", amount)
      json.field("idempotencyKey", idempotencyKey)
    }
  }

  // MARK: Pieces

  private static func attempt(
    _ type: EventType, _ environment: Environment, _ account: String, _ attemptId: String, _ occurredAt: WireTime?,
    _ more: (inout EventWriter) -> Void
  ) -> PurchaseEvent {
    PurchaseEvent(type) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account)
      json.field("attemptId", attemptId)
      json.field("occurredAt", rfc3339: occurredAt?.instant)
      more(&json)
    }
  }

  private static func proven(
    _ type: EventType, _ environment: Environment, _ account: String, _ transactionId: String, _ productId: String,
    _ signedTransaction: String?, _ originalTransactionId: String?, _ quantity: Int?, _ attemptId: String?,
    _ occurredAt: WireTime?, appReceipt: String? = nil, deviceId: String? = nil
  ) -> PurchaseEvent {
    PurchaseEvent(type) { json in
      json.field("environment", environment.rawValue)
      json.field("account", account)
      json.field("attemptId", attemptId)
      json.field("occurredAt", rfc3339: occurredAt?.instant)
      json.field("productId", productId)
      json.field("quantity", quantity)
      json.field("transactionId", transactionId)
      json.field("originalTransactionId", originalTransactionId)
      json.field("signedTransaction", signedTransaction)
      json.field("appReceipt", appReceipt)
      json.field("deviceId", deviceId)
    }
  }

  private static func write(_ failure: Failure, _ json: inout EventWriter) {
    json.field(
      "failure",
      object: { json in
        json.field("domain", failure.domain)
        json.field("code", failure.code)
        json.field("userCancelled", failure.userCancelled)
      })
  }
}
