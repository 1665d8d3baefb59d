import PurchasesContracts
import PurchasesCore
import Testing

extension GoldenExamples {
  func received() throws -> [String: ReceivedEvent] {
    var examples: [String: ReceivedEvent] = try payments()
    func restore(_ type: EventType, _ attempt: String, at time: String, _ failure: PaymentFailure? = nil) throws {
      var event = RestoreReported(type: type, environment: environment, account: bob, attempt: attempt)
      event.occurredAt = try instant(time)
      event.failure = failure
      examples[type.wireName] = .restore(event)
    }
    try restore(.restoreStarted, "restore-18", at: "2025-11-30T02:30:00Z")
    try restore(.restoreCompleted, "restore-18", at: "2025-11-30T02:30:04Z")
    try restore(
      .restoreFailed, "restore-17", at: "2025-11-30T02:28:30Z",
      PaymentFailure(domain: "SKErrorDomain", code: 2, userCancelled: false))
    examples["store.notified.v1"] = .notified(StoreNotified(signedPayload: renewal.jws))
    examples["store.notified.v1.backfill"] = .notified(StoreNotified(signedPayload: renewal.jws, isBackfill: true))
    examples["purchase.claimed.v1"] = .claimed(
      PurchaseClaimed(
        environment: environment, account: bob, originalTransaction: try id("9123456789012345678"), attempt: "claim-5"))
    examples["credit.spend.requested.v1"] = .spendRequested(try spend())
    func order(_ name: String, _ number: Int, _ order: AccessOrdered.Order) {
      examples[name] = .ordered(
        AccessOrdered(
          environment: environment, account: ann, order: order, orderID: "order-\(number)",
          operatorName: "kim@example.com", reason: "support case 4711"))
    }
    order("access.ordered.v1", 31, .grant(try id("pro"), until: try instant("2025-12-31T00:00:00Z")))
    order("access.ordered.v1.revoke", 32, .revoke(try id("pro"), until: nil))
    order("access.ordered.v1.transfer", 33, .transfer(try id("9123456789012345678"), to: bob))
    order("access.ordered.v1.merge", 34, .merge(into: bob))
    order(
      "access.ordered.v1.revoke-until", 35, .revoke(try id("pro"), until: try instant("2025-12-24T00:00:00Z")))
    order("access.ordered.v1.reverse", 36, .reverse(orderID: "order-35"))
    order("access.ordered.v1.adjust", 37, .adjust(try id("coins"), amount: -20))
    examples["operator.acted.v1"] = .operatorActed(
      OperatorActed(
        actID: "act-2025-11-30-1", operatorName: "kim@example.com", reason: "catalogue 2025-11 had left out gold",
        action: "replay entitlements", arguments: ["--from", "2025-11-29T00:00:00Z"]))
    return examples
  }

  func spend() throws -> SpendRequested {
    SpendRequested(
      environment: environment, account: ann, unit: try id("coins"), amount: 80, idempotencyKey: "game-9-turn-14")
  }

  private func payments() throws -> [String: ReceivedEvent] {
    var examples: [String: ReceivedEvent] = [:]
    func payment(
      _ type: EventType, _ account: Account, _ attempt: String, at time: String?,
      _ more: (inout PaymentReported) throws -> Void
    ) throws {
      var event = PaymentReported(type: type, environment: environment, account: account, attempt: attempt)
      event.occurredAt = try time.map { try instant($0) }
      try more(&event)
      examples[type.wireName] = .payment(event)
    }
    try payment(.paymentAdded, ann, "pay-7731", at: "2025-11-30T02:29:40Z") { event in
      event.product = try id("com.example.coins.100")
      event.quantity = 3
    }
    try payment(.paymentDeferred, bob, "pay-7732", at: "2025-11-30T02:29:41Z") { event in
      event.product = try id("com.example.pro.lifetime")
    }
    try payment(.paymentPurchased, ann, "pay-7731", at: "2025-11-30T02:29:45.25Z") { event in
      event.product = try id("com.example.coins.100")
      event.quantity = 3
      event.transaction = try id("2000000912345671")
      event.originalTransaction = try id("2000000912345671")
      event.signedTransaction = coins.jws
    }
    // The same type in its other form: the original StoreKit has a receipt to show.
    var receipt = PaymentReported(type: .paymentPurchased, environment: environment, account: ann, attempt: "pay-7735")
    receipt.occurredAt = try instant("2025-11-30T02:35:09Z")
    receipt.product = try id("com.example.coins.100")
    receipt.transaction = try id("2000000912345699")
    receipt.appReceipt = coinsReceipt
    receipt.device = try #require(DeviceIdentifier("6E1E6D7B-3C1F-4C57-9B0A-2D5B8F1E9A04"))
    examples["payment.purchased.v1.receipt"] = .payment(receipt)
    try payment(.paymentFailed, ann, "pay-7733", at: "2025-11-30T02:31:07Z") { event in
      event.product = try id("com.example.gold.monthly")
      event.failure = PaymentFailure(domain: "SKErrorDomain", code: 2, userCancelled: true)
    }
    try payment(.paymentRestored, bob, "pay-7734", at: nil) { event in
      event.product = try id("com.example.pro.lifetime")
      event.transaction = try id("9123456789012345678")
      event.signedTransaction = pro.jws
    }
    try payment(.paymentFinished, ann, "fin-7731", at: "2025-11-30T02:29:47.010Z") { event in
      event.transaction = try id("2000000912345671")
    }
    return examples
  }
}
