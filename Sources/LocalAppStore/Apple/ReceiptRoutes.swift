import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import PurchasesJSON

/// `verifyReceipt` of one side.
struct ReceiptRoutes: Sendable {
  let books: AppleBooks
  let environment: Environment
  /// The app's shared secret; a request with another one is refused.
  let secret: String?
  let clock: any Clock

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    guard request.method == "POST" else { return status(21_000) }
    guard let body = try? JSON(parsing: request.body), body.object != nil,
      let receipt = body["receipt-data"]?.string, !receipt.isEmpty
    else { return status(21_002) }
    if let secret, let given = body["password"]?.string, given != secret { return status(21_004) }
    let other: Environment = environment == .production ? .sandbox : .production
    if let found = books.read(environment, { $0.answers[receipt] }) {
      return HTTPResponse(status: 200, contentType: "application/json", body: found)
    }
    if books.read(other, { $0.answers[receipt] != nil }) { return elsewhere }
    guard let legacy = LegacyReceipt(encoded: receipt, authority: books.authority) else {
      return status(Base64.decode(receipt) == nil ? 21_002 : 21_003)
    }
    guard legacy.isSandbox == (environment == .sandbox) else { return elsewhere }
    return answer(legacy)
  }

  private var elsewhere: HTTPResponse { status(environment == .production ? 21_007 : 21_008) }

  private func status(_ status: Int64) -> HTTPResponse { AppleAnswer.json(200) { $0.field("status", status) } }

  /// As the oldest receipts are answered: the receipt is the transaction, and every value is a string.
  private func answer(_ receipt: LegacyReceipt) -> HTTPResponse {
    let names = [
      ("transaction-id", "transaction_id"), ("original-transaction-id", "original_transaction_id"),
      ("product-id", "product_id"), ("quantity", "quantity"), ("bid", "bid"), ("bvrs", "bvrs"),
      ("purchase-date-ms", "purchase_date_ms"), ("original-purchase-date-ms", "original_purchase_date_ms"),
      ("web-order-line-item-id", "web_order_line_item_id"), ("expires-date", "expires_date"),
    ]
    let expires = receipt["expires-date"].flatMap { Int64($0) }
    let isOver = expires.map { $0 <= clock.now().milliseconds } ?? false
    return AppleAnswer.json(200) { json in
      json.field("status", isOver ? 21_006 : 0 as Int64)
      json.field(
        "receipt",
        object: { json in
          for (plain, name) in names {
            if let value = receipt[plain] { json.fieldNamed(name, .string(value)) }
          }
        })
    }
  }
}
