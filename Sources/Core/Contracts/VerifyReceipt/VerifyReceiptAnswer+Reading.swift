import PurchasesCore
import PurchasesJSON

extension VerifyReceiptAnswer {
  /// Reads the body of an answer, whatever its status.
  ///
  /// - Parameter environment: of the server that gave it.
  /// - Throws: where the body is no JSON object with something in it. Everything else may be absent.
  public init(parsing body: [UInt8], from environment: Environment) throws(FieldFailure) {
    let document: JSONDocument
    do { document = try JSONDocument(parsing: body) } catch {
      throw FieldFailure("answer", "is not JSON (byte \(error.offset): \(error.reason))")
    }
    let root = document.root
    guard root.kind == .object, root.count > 0 else {
      throw FieldFailure("answer", "is no JSON object with an answer in it")
    }
    let status = VerifyReceiptStatus(
      root["status"]?.int64, isRetryable: flag(root, "is_retryable") ?? flag(root, "is-retryable"))
    self.init(status: status, environment: environment, body: body)
    read(root)
  }

  /// Reads what there is, in every shape that Apple has sent.
  private mutating func read(_ root: JSONView) {
    statedEnvironment = text(root, "environment")
    requestDate = date(root["receipt"], "request_date") ?? date(root, "request_date")
    latestReceipt = root["latest_receipt"]?.string
    if let receipt = root["receipt"], receipt.kind == .object {
      bundleID = text(receipt, "bundle_id") ?? text(receipt, "bid")
      appAppleID = text(receipt, "adam_id") ?? text(receipt, "app_item_id")
      applicationVersion = text(receipt, "application_version") ?? text(receipt, "bvrs")
      originalApplicationVersion = text(receipt, "original_application_version")
      receiptType = text(receipt, "receipt_type")
      receiptCreationDate = date(receipt, "receipt_creation_date")
      if let inApp = receipt["in_app"], !inApp.isNull {
        listsPurchases = true
        purchases = entries(inApp).map(VerifyReceiptTransaction.init(reading:))
      } else if receipt["transaction_id"] != nil {
        // The oldest receipts: the receipt is one transaction.
        purchases = [VerifyReceiptTransaction(reading: receipt)]
      }
    }
    latest = ["latest_receipt_info", "latest_expired_receipt_info"].flatMap { name in
      root[name].map { entries($0).map(VerifyReceiptTransaction.init(reading:)) } ?? []
    }
    renewals = root["pending_renewal_info"].map { entries($0).map(VerifyReceiptRenewal.init(reading:)) } ?? []
  }

  /// An array's objects, an object by itself, nothing for null. An empty object is no entry.
  private mutating func entries(_ view: JSONView) -> [JSONView] {
    let all: [JSONView]
    switch view.kind {
    case .array: all = view.elements
    case .null: all = []
    default: all = [view]
    }
    unreadable += all.count { $0.kind != .object }
    return all.filter { $0.kind == .object && $0.count > 0 }
  }
}

extension VerifyReceiptTransaction {
  init(reading view: JSONView) {
    product = text(view, "product_id")
    transaction = text(view, "transaction_id")
    originalTransaction = text(view, "original_transaction_id")
    webOrderLineItem = text(view, "web_order_line_item_id")
    quantity = integer(view, "quantity")
    purchaseDate = date(view, "purchase_date")
    originalPurchaseDate = date(view, "original_purchase_date")
    expiresDate = date(view, "expires_date")
    cancellationDate = date(view, "cancellation_date")
    cancellationReason = integer(view, "cancellation_reason")
    isTrialPeriod = flag(view, "is_trial_period")
    isInIntroOfferPeriod = flag(view, "is_in_intro_offer_period")
    isUpgraded = flag(view, "is_upgraded")
    ownershipType = text(view, "in_app_ownership_type")
    subscriptionGroup = text(view, "subscription_group_identifier")
    accountToken = text(view, "app_account_token")
    offerCodeReference = text(view, "offer_code_ref_name")
    promotionalOffer = text(view, "promotional_offer_id")
    raw = view.json
  }
}

extension VerifyReceiptRenewal {
  init(reading view: JSONView) {
    product = text(view, "product_id")
    autoRenewProduct = text(view, "auto_renew_product_id")
    originalTransaction = text(view, "original_transaction_id")
    autoRenewStatus = integer(view, "auto_renew_status")
    expirationIntent = integer(view, "expiration_intent")
    isInBillingRetry = flag(view, "is_in_billing_retry_period")
    gracePeriodExpiresDate = date(view, "grace_period_expires_date")
    priceConsentStatus = integer(view, "price_consent_status")
    accountToken = text(view, "app_account_token")
    raw = view.json
  }
}

/// Text, or a number as it was written: Apple has sent ids both ways.
private func text(_ view: JSONView?, _ name: String) -> String? {
  guard let value = view?[name], let text = value.string ?? value.numberText, !text.isEmpty else { return nil }
  return text
}

private func integer(_ view: JSONView, _ name: String) -> Int64? { text(view, name).flatMap { Int64($0) } }

/// A Boolean, or the text or number that stands for one.
private func flag(_ view: JSONView, _ name: String) -> Bool? {
  if let value = view[name]?.bool { return value }
  switch text(view, name)?.lowercased() {
  case "true", "1": return true
  case "false", "0": return false
  default: return nil
  }
}

/// `NAME_ms` where it is there; else `NAME`, which holds milliseconds in the oldest answers and `2013-08-01 07:00:00
/// Etc/GMT` in the others. The forms in Apple's own time zone are never needed: one of these always stands beside them.
private func date(_ view: JSONView?, _ name: String) -> Instant? {
  if let milliseconds = milliseconds(view?[name + "_ms"]) { return milliseconds }
  guard let plain = view?[name] else { return nil }
  if let milliseconds = milliseconds(plain) { return milliseconds }
  guard let text = plain.string else { return nil }
  let parts = text.split(separator: " ")
  guard parts.count == 3, parts[2] == "Etc/GMT" else { return nil }
  return Instant(rfc3339: "\(parts[0])T\(parts[1])Z")
}

private func milliseconds(_ view: JSONView?) -> Instant? {
  guard let view, let number = view.milliseconds ?? view.string.flatMap({ Int64($0) }) else { return nil }
  return Instant(milliseconds: number)
}
