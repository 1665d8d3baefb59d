import PurchasesCore
import PurchasesJSON

/// What the topic `received` holds: what somebody told us, unverified. The raw data travels on untouched; these are the
/// members that stages read.
public enum ReceivedEvent: Sendable, Hashable {
  case payment(PaymentReported)
  case restore(RestoreReported)
  case notified(StoreNotified)
  case claimed(PurchaseClaimed)
  case spendRequested(SpendRequested)
  case ordered(AccessOrdered)
  case operatorActed(OperatorActed)
}

public struct PaymentFailure: Sendable, Hashable {
  /// Such as `SKErrorDomain` or `StoreKitError`.
  public var domain: String
  public var code: Int64
  public var userCancelled: Bool

  public init(domain: String, code: Int64, userCancelled: Bool) {
    self.domain = domain
    self.code = code
    self.userCancelled = userCancelled
  }
}

/// One step of a payment queue: added, deferred, purchased, failed, restored or finished.
public struct PaymentReported: Sendable, Hashable {
  public var type: EventType
  /// Where the report says that it was made; the proof, where there is one, decides.
  public var environment: Environment?
  /// The account whose back end or session sent this: authenticated by the sender, not by Apple.
  public var account: Account?
  /// The sender's own id of this attempt.
  public var attempt: String?
  public var occurredAt: Instant?
  public var product: ProductID?
  public var quantity: Int64?
  public var transaction: TransactionID?
  public var originalTransaction: OriginalTransactionID?
  /// A StoreKit 2 signed transaction.
  public var signedTransaction: String?
  /// An app receipt in base64, beside the signed transaction or instead of it.
  public var appReceipt: String?
  /// The identifier of the device that the receipt was made for, where the sender wants that checked.
  public var device: DeviceIdentifier?
  public var failure: PaymentFailure?

  public init(type: EventType, environment: Environment? = nil, account: Account? = nil, attempt: String? = nil) {
    self.type = type
    self.environment = environment
    self.account = account
    self.attempt = attempt
  }
}

public struct RestoreReported: Sendable, Hashable {
  public var type: EventType
  public var environment: Environment
  public var account: Account
  public var attempt: String
  public var occurredAt: Instant?
  public var failure: PaymentFailure?

  public init(type: EventType, environment: Environment, account: Account, attempt: String) {
    self.type = type
    self.environment = environment
    self.account = account
    self.attempt = attempt
  }
}

/// An App Store Server Notification V2 as it came in.
public struct StoreNotified: Sendable, Hashable {
  public var signedPayload: String
  /// Fetched from Apple's history rather than sent by it.
  public var isBackfill: Bool

  public init(signedPayload: String, isBackfill: Bool = false) {
    self.signedPayload = signedPayload
    self.isBackfill = isBackfill
  }
}

/// An authenticated caller says that a purchase is an account's.
public struct PurchaseClaimed: Sendable, Hashable {
  public var environment: Environment
  public var account: Account
  public var originalTransaction: OriginalTransactionID
  public var attempt: String

  public init(environment: Environment, account: Account, originalTransaction: OriginalTransactionID, attempt: String) {
    self.environment = environment
    self.account = account
    self.originalTransaction = originalTransaction
    self.attempt = attempt
  }
}

public struct SpendRequested: Sendable, Hashable {
  public var environment: Environment
  public var account: Account
  public var unit: CreditUnit
  public var amount: Int64
  public var idempotencyKey: String

  public init(
    environment: Environment, account: Account, unit: CreditUnit, amount: Int64, idempotencyKey: String
  ) {
    self.environment = environment
    self.account = account
    self.unit = unit
    self.amount = amount
    self.idempotencyKey = idempotencyKey
  }
}

/// An operator's order about somebody's access, through the same log as everything else.
public struct AccessOrdered: Sendable, Hashable {
  public enum Order: Sendable, Hashable {
    case grant(EntitlementID, until: Instant?)
    case revoke(EntitlementID, until: Instant?)
    /// Takes an earlier grant or revocation back, from now on.
    case reverse(orderID: String)
    /// Adds credits by hand, or below zero takes them away.
    case adjust(CreditUnit, amount: Int64)
    case transfer(OriginalTransactionID, to: Account)
    case merge(into: Account)
  }

  public var environment: Environment
  public var account: Account
  public var order: Order
  public var orderID: String
  public var operatorName: String
  public var reason: String

  public init(
    environment: Environment, account: Account, order: Order, orderID: String, operatorName: String, reason: String
  ) {
    self.environment = environment
    self.account = account
    self.order = order
    self.orderID = orderID
    self.operatorName = operatorName
    self.reason = reason
  }
}

/// A person used the tool (replay, redrive, …): no entry, no action.
public struct OperatorActed: Sendable, Hashable {
  public var actID: String
  public var operatorName: String
  public var reason: String
  public var action: String
  public var arguments: [String]

  public init(actID: String, operatorName: String, reason: String, action: String, arguments: [String]) {
    self.actID = actID
    self.operatorName = operatorName
    self.reason = reason
    self.action = action
    self.arguments = arguments
  }
}
