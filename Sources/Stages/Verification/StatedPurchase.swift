import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// What a report says of its purchase, as far as it is held against the proof. It stands in the evidence where it decided.
public struct StatedPurchase: Sendable, Hashable {
  public var environment: Environment?
  public var transaction: TransactionID?
  public var originalTransaction: OriginalTransactionID?
  public var product: ProductID?

  static let name = "stated"

  public init(
    environment: Environment? = nil, transaction: TransactionID? = nil,
    originalTransaction: OriginalTransactionID? = nil, product: ProductID? = nil
  ) {
    self.environment = environment
    self.transaction = transaction
    self.originalTransaction = originalTransaction
    self.product = product
  }

  init(_ payment: PaymentReported) {
    self.init(
      environment: payment.environment, transaction: payment.transaction,
      originalTransaction: payment.originalTransaction, product: payment.product)
  }

  /// Reads it from an evidence; nil where the report did not decide.
  public init?(evidence: JSONView) throws(FieldFailure) {
    guard let fields = try Fields(evidence, path: "evidence").object("stated") else { return nil }
    self.init(
      environment: try fields.environment(), transaction: try fields.identifier("transactionId"),
      originalTransaction: try fields.identifier("originalTransactionId"), product: try fields.identifier("productId"))
  }

  var json: JSON {
    let members = [
      ("environment", environment?.rawValue), ("transactionId", transaction?.text),
      ("originalTransactionId", originalTransaction?.text), ("productId", product?.text),
    ]
    return .object(JSONObject(members.compactMap { name, value in value.map { (name, .string($0)) } }))
  }

  /// What the sender says of a purchase must be what Apple says: a report that contradicts its own proof is of no use to
  /// whoever acts on it.
  public func mismatch(_ verified: VerifiedProof) -> ClaimFailure? {
    if let environment, environment != verified.environment { return .environmentMismatch }
    if let transaction, transaction != verified.transaction?.transaction { return .transactionMismatch }
    if let originalTransaction, originalTransaction != verified.originalTransaction {
      return .originalTransactionMismatch
    }
    if let product, product != verified.transaction?.product { return .productMismatch }
    return nil
  }

  /// The purchase of a receipt that the report is about. A restored one has a new transaction id on the device, so that
  /// there its first transaction or its product will do.
  public func match(_ type: EventType, _ purchases: [TransactionRevision]) -> Int? {
    let possible = purchases.indices.filter { index in
      (product ?? purchases[index].product) == purchases[index].product
        && (originalTransaction ?? purchases[index].originalTransaction) == purchases[index].originalTransaction
    }
    if let found = possible.first(where: { purchases[$0].transaction == transaction }) { return found }
    guard type == .paymentRestored, product != nil || originalTransaction != nil else { return nil }
    return possible.max { purchases[$0].purchaseDate < purchases[$1].purchaseDate }
  }
}
