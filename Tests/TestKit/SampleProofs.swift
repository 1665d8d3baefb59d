import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// A transaction as Apple would sign it, and the verdicts and reports about it, for tests of what comes after verification.
public struct SampleTransaction: Sendable, Hashable {
  public var environment: Environment
  public var transaction: String
  public var original: String
  public var product: String
  public var type: ProductType
  public var signed: Int64
  public var purchased: Int64
  public var originallyPurchased: Int64?
  public var expires: Int64?
  public var quantity: Int64?
  public var lineItem: String?
  public var revoked: Int64?
  public var percentage: Int64?
  public var token: String?
  public var isUpgraded = false
  /// Apple's `inAppOwnershipType`.
  public var ownershipType: String?
  /// Of a subscription for several people: the seats that refunds took back.
  public var revokedSeats: Int64?
  public var addsSeats = false
  public var items: [SampleItem] = []

  public init(
    _ transaction: String, original: String? = nil, _ product: String, _ type: ProductType, signed: Int64,
    purchased: Int64, expires: Int64? = nil, quantity: Int64? = nil, lineItem: String? = nil, revoked: Int64? = nil,
    percentage: Int64? = nil, token: String? = nil, environment: Environment = .production
  ) {
    self.environment = environment
    self.transaction = transaction
    self.original = original ?? transaction
    self.product = product
    self.type = type
    self.signed = signed
    self.purchased = purchased
    self.expires = expires
    self.quantity = quantity
    self.lineItem = lineItem
    self.revoked = revoked
    self.percentage = percentage
    self.token = token
  }

  public var payload: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("transactionId", transaction)
      json.field("originalTransactionId", original)
      json.field("bundleId", "com.example.app")
      json.field("productId", product)
      json.field("type", type.apple)
      json.field("environment", environment.rawValue)
      json.field("signedDate", signed)
      json.field("purchaseDate", purchased)
      json.field("originalPurchaseDate", originallyPurchased)
      json.field("expiresDate", expires)
      json.field("quantity", quantity)
      json.field("webOrderLineItemId", lineItem)
      json.field("revocationDate", revoked)
      json.field("revocationReason", revoked == nil ? nil : 0 as Int64)
      json.field("revocationPercentage", percentage)
      json.field("appAccountToken", token)
      if isUpgraded { json.field("isUpgraded", true) }
      json.field("inAppOwnershipType", ownershipType)
      if let revokedSeats {
        json.field(
          "multiSeatInfo", object: { json in if revokedSeats > 0 { json.field("revokedSeatQuantity", revokedSeats) } })
      }
      if addsSeats { json.field("additionalTransactionReason", "SEAT_ADDITION") }
      if !items.isEmpty {
        json.field(
          "advancedCommerceInfo",
          object: { json in
            json.field("items", array: { json in for item in items { item.write(&json) } })
          })
      }
    }
    return writer.bytes
  }

  public func part(_ source: RevisionSource = .client) -> SignedPart {
    let payload = payload
    return SignedPart(kind: .transaction, digest: SHA256.digest(payload).hex, source: source, payload: payload)
  }

  public var revision: TransactionRevision { revision(.client) }

  public func revision(_ source: RevisionSource) -> TransactionRevision {
    do { return try part(source).transactionRevision() } catch { preconditionFailure("\(error)") }
  }

  /// What verification says of it when a client sent it.
  public func reported(
    by account: String?, as type: EventType = .paymentPurchased, attempt: String? = nil
  ) -> VerifiedEvent {
    let part = part()
    return .verified(
      PurchaseVerified(
        environment: environment, kind: .transaction, proof: part.digest, signedDate: Instant(milliseconds: signed),
        parts: [part], notification: nil,
        report: Report(
          type: type, account: account.flatMap { Account($0) }, attempt: attempt, product: ProductID(product),
          transaction: TransactionID(transaction)),
        evidence: .null))
  }

  /// What verification says of it when it came in a notification.
  public func notified(
    _ uuid: String, _ type: String, subtype: String? = nil, renewal: SampleRenewal? = nil
  ) -> VerifiedEvent {
    var parts = [part(.notification)]
    if let renewal { parts.append(renewal.part(.notification)) }
    return .verified(
      PurchaseVerified(
        environment: environment, kind: .notification,
        proof: SHA256.digest(parts.flatMap(\.payload) + Array(uuid.utf8)).hex,
        signedDate: Instant(milliseconds: signed), parts: parts,
        notification: NotificationFacts(
          uuid: uuid, type: type, subtype: subtype, version: "2.0", signedDate: Instant(milliseconds: signed)),
        report: Report(type: .storeNotified), evidence: .null))
  }
}

/// A product of the Advanced Commerce API in a transaction.
public struct SampleItem: Sendable, Hashable {
  public var sku: String
  public var revoked: Int64?
  /// Milliunits that were refunded.
  public var refunded: Int64?
  public var refundType: String

  public init(_ sku: String, revoked: Int64? = nil, refunded: Int64? = nil, refundType: String = "FULL") {
    self.sku = sku
    self.revoked = revoked
    self.refunded = refunded
    self.refundType = refundType
  }

  func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("SKU", sku)
      json.field("price", 990 as Int64)
      if let refunded {
        json.field(
          "refunds",
          array: { json in
            json.object { json in
              json.field("refundAmount", refunded)
              json.field("refundType", refundType)
              json.field("refundReason", "MODIFY_ITEMS_REFUND")
            }
          })
      }
      json.field("revocationDate", revoked)
    }
  }
}

public struct SampleRenewal: Sendable, Hashable {
  public var environment: Environment
  public var original: String
  public var product: String
  public var signed: Int64
  public var grace: Int64?
  public var autoRenews: Bool
  public var isInRetry: Bool
  /// The product of the next period, where it is another one.
  public var next: String?
  public var renews: Int64?

  public init(
    _ original: String, _ product: String, signed: Int64, grace: Int64? = nil, autoRenews: Bool = true,
    isInRetry: Bool = false, next: String? = nil, renews: Int64? = nil, environment: Environment = .production
  ) {
    self.environment = environment
    self.original = original
    self.product = product
    self.signed = signed
    self.grace = grace
    self.autoRenews = autoRenews
    self.isInRetry = isInRetry
    self.next = next
    self.renews = renews
  }

  public func part(_ source: RevisionSource = .notification) -> SignedPart {
    var writer = JSONWriter()
    writer.object { json in
      json.field("originalTransactionId", original)
      json.field("productId", product)
      json.field("autoRenewProductId", next ?? product)
      json.field("autoRenewStatus", autoRenews ? 1 as Int64 : 0)
      json.field("environment", environment.rawValue)
      json.field("signedDate", signed)
      json.field("gracePeriodExpiresDate", grace)
      if isInRetry { json.field("isInBillingRetryPeriod", true) }
      json.field("renewalDate", renews)
    }
    return SignedPart(
      kind: .renewalInfo, digest: SHA256.digest(writer.bytes).hex, source: source, payload: writer.bytes)
  }

  public var revision: RenewalRevision {
    do { return try part().renewalRevision() } catch { preconditionFailure("\(error)") }
  }
}

extension VerifiedEvent {
  /// As a record of the topic `verified`. The id is made of the content: the same event again has the same one.
  public func record(key: String, at milliseconds: Int64, topics: TopicSettings = TopicSettings()) -> ProducedRecord {
    let data = data
    let envelope = Envelope(
      id: SHA256.digest(data).hex, source: "/test", type: type, time: Instant(milliseconds: milliseconds))
    return ProducedRecord(
      topic: topics.name(.verified),
      record: Record(
        key: Array(key.utf8), value: data, headers: envelope.headers, timestamp: Instant(milliseconds: milliseconds)))
  }

  /// A received fact, passed on as it was.
  public init(fact event: ReceivedEvent) { self = .noted(FactNoted(type: event.type, data: event.data)) }
}
