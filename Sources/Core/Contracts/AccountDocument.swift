import PurchasesCore
import PurchasesJSON

/// The column `document` of the table `account`: an account's state as JSON. Compact, since each record reads and writes
/// one: members that hold their usual value are left out.
public enum AccountDocument {
  public static func encode(_ state: AccountState) -> [UInt8] {
    var writer = JSONWriter(reserving: 256 + 288 * state.facts.purchases.count)
    writer.object { json in
      if state.clock != .distantPast { json.field("clock", milliseconds: state.clock) }
      json.field("purchases", array: { json in for purchase in state.facts.purchases { write(purchase, &json) } })
      if !state.facts.renewals.isEmpty {
        json.field("renewals", array: { json in for renewal in state.facts.renewals { write(renewal, &json) } })
      }
      if !state.facts.orders.isEmpty {
        json.field("orders", array: { json in for order in state.facts.orders { write(order, &json) } })
      }
      if !state.mergeIDs.isEmpty {
        json.field("mergeIds", array: { json in for id in state.mergeIDs { json.element(id) } })
      }
      if let merge = state.merge {
        json.field(
          "merged",
          object: { json in
            json.field("into", merge.into.text)
            json.field("orderId", merge.orderID)
            json.field("operator", merge.operatorName)
            json.field("reason", merge.reason)
          })
      }
      if !state.published.isEmpty {
        json.field("published", array: { json in for entry in state.published { write(entry, &json) } })
      }
      if !state.balances.isEmpty {
        json.field("balances", array: { json in for balance in state.balances { write(balance, &json) } })
      }
      if !state.openPermits.isEmpty {
        json.field("open", array: { json in for open in state.openPermits { write(open, &json) } })
      }
    }
    return writer.bytes
  }

  /// - Throws: where the document is not one that this program or an older one wrote.
  public static func decode(_ bytes: [UInt8], dueAt: Instant?) throws(FieldFailure) -> AccountState {
    let fields = try Fields(parsing: bytes)
    let purchases = try list(fields, "purchases", purchase)
    let renewals = try list(fields, "renewals", renewal)
    let orders = try list(fields, "orders", order)
    var mergeIDs: [String] = []
    for element in fields.member("mergeIds")?.elements ?? [] {
      guard let id = element.string else { throw fields.failure("mergeIds", "must be strings") }
      mergeIDs.append(id)
    }
    return AccountState(
      facts: AccountFacts(purchases: purchases, renewals: renewals, orders: orders),
      published: try list(fields, "published", published), balances: try list(fields, "balances", balance),
      openPermits: try list(fields, "open", openPermit), mergeIDs: mergeIDs, merge: try merge(fields),
      clock: try fields.milliseconds("clock") ?? .distantPast, dueAt: dueAt)
  }

  private static func list<T>(
    _ fields: Fields, _ name: StaticString, _ read: (Fields) throws(FieldFailure) -> T
  ) throws(FieldFailure) -> [T] {
    guard let value = fields.member(name) else { return [] }
    guard value.kind == .array else { throw fields.failure(name, "must be an array") }
    var items: [T] = []
    let elements = value.elements
    items.reserveCapacity(elements.count + 1)
    for element in elements { items.append(try read(Fields(element))) }
    return items
  }

  // MARK: Facts

  private static func write(_ rank: RevisionRank, _ json: inout JSONWriter) {
    json.field("signed", milliseconds: rank.signedDate)
    if rank.source != .client { json.field("source", rank.source.rawValue) }
    json.field("digest", rank.digest)
  }

  private static func rank(_ fields: Fields, isRevoked: Bool) throws(FieldFailure) -> RevisionRank {
    let source = try fields.integer("source").map { RevisionSource(rawValue: Int(truncatingIfNeeded: $0)) } ?? .client
    guard let source else { throw fields.failure("source", "is not a known source") }
    return RevisionRank(
      signedDate: try fields.requiredMilliseconds("signed"), isRevoked: isRevoked, source: source,
      digest: try fields.requiredText("digest"))
  }

  private static func write(_ purchase: Purchase, _ json: inout JSONWriter) {
    json.object { json in
      json.field("chain", purchase.key.originalTransaction.text)
      json.field("part", purchase.key.part)
      if purchase.transaction.text != purchase.key.originalTransaction.text {
        json.field("transaction", purchase.transaction.text)
      }
      json.field("product", purchase.product.text)
      json.field("type", purchase.type.apple)
      json.field("begins", milliseconds: purchase.begins)
      json.field("expires", milliseconds: purchase.expires)
      if purchase.quantity != 1 { json.field("quantity", purchase.quantity) }
      json.field("revoked", milliseconds: purchase.revocationDate)
      if purchase.rank.isRevoked, purchase.revocationDate == nil { json.field("revokedItem", true) }
      json.field("share", purchase.revocationPercentage)
      write(purchase.rank, &json)
      write(purchase.booking, &json)
      if let seats = purchase.seats {
        json.field("revokedSeats", seats.revoked)
        if seats.isAddition { json.field("addsSeats", true) }
      }
      if !purchase.items.isEmpty {
        json.field(
          "items",
          array: { json in
            for item in purchase.items {
              json.object { json in
                json.field("sku", item.sku.text)
                json.field("revoked", milliseconds: item.revocationDate)
                write(item.booking, &json)
              }
            }
          })
      }
    }
  }

  private static func write(_ booking: Booking?, _ json: inout JSONWriter) {
    guard let booking else { return }
    json.field("unit", booking.unit.text)
    json.field("worth", booking.worth)
    json.field("booked", booking.booked)
  }

  private static func booking(_ fields: Fields) throws(FieldFailure) -> Booking? {
    guard let unit: CreditUnit = try fields.identifier("unit") else { return nil }
    return Booking(unit: unit, worth: try fields.integer("worth") ?? 0, booked: try fields.integer("booked") ?? 0)
  }

  private static func item(_ fields: Fields) throws(FieldFailure) -> PurchasedItem {
    PurchasedItem(
      sku: try fields.required("sku"), revocationDate: try fields.milliseconds("revoked"), booking: try booking(fields))
  }

  private static func purchase(_ fields: Fields) throws(FieldFailure) -> Purchase {
    let chain: OriginalTransactionID = try fields.required("chain")
    let revoked = try fields.milliseconds("revoked")
    let transaction: TransactionID? = try fields.identifier("transaction") ?? TransactionID(chain.text)
    guard let transaction else { throw fields.failure("transaction", "is missing") }
    let items = try list(fields, "items", item)
    let hasRevokedItem = try fields.flag("revokedItem") ?? false
    let seats = try fields.integer("revokedSeats").map { revoked throws(FieldFailure) in
      Seats(revoked: revoked, isAddition: try fields.flag("addsSeats") ?? false)
    }
    return Purchase(
      key: BusinessKey(originalTransaction: chain, part: try fields.requiredText("part")),
      rank: try rank(fields, isRevoked: revoked != nil || hasRevokedItem),
      transaction: transaction,
      product: try fields.required("product"), type: ProductType(apple: try fields.requiredText("type")),
      begins: try fields.requiredMilliseconds("begins"), expires: try fields.milliseconds("expires"),
      quantity: try fields.integer("quantity") ?? 1, revocationDate: revoked,
      revocationPercentage: try fields.integer("share"), booking: try booking(fields), seats: seats, items: items)
  }

  private static func write(_ renewal: Renewal, _ json: inout JSONWriter) {
    json.object { json in
      json.field("chain", renewal.originalTransaction.text)
      json.field("grace", milliseconds: renewal.graceEnds)
      json.field("autoRenews", renewal.autoRenews)
      if renewal.isInBillingRetry { json.field("retrying", true) }
      json.field("next", renewal.nextProduct?.text)
      write(renewal.rank, &json)
    }
  }

  private static func renewal(_ fields: Fields) throws(FieldFailure) -> Renewal {
    Renewal(
      originalTransaction: try fields.required("chain"), rank: try rank(fields, isRevoked: false),
      graceEnds: try fields.milliseconds("grace"), autoRenews: try fields.flag("autoRenews"),
      isInBillingRetry: try fields.flag("retrying") ?? false, nextProduct: try fields.identifier("next"))
  }

  private static func write(_ order: ManualOrder, _ json: inout JSONWriter) {
    json.object { json in
      json.field("entitlement", order.entitlement.text)
      switch order.kind {
      case .grant(let until): json.field("until", milliseconds: until)
      case .revoke(let until):
        json.field("revoke", true)
        json.field("until", milliseconds: until)
      }
      json.field("at", milliseconds: order.at)
      json.field("orderId", order.orderID)
      json.field("origin", order.origin?.text)
      json.field("ended", milliseconds: order.ended)
    }
  }

  private static func order(_ fields: Fields) throws(FieldFailure) -> ManualOrder {
    let until = try fields.milliseconds("until")
    return ManualOrder(
      entitlement: try fields.required("entitlement"),
      kind: try fields.flag("revoke") == true ? .revoke(until: until) : .grant(until: until),
      at: try fields.requiredMilliseconds("at"), orderID: try fields.requiredText("orderId"),
      origin: try fields.identifier("origin"), ended: try fields.milliseconds("ended"))
  }

  private static func merge(_ fields: Fields) throws(FieldFailure) -> Merge? {
    guard let merge = try fields.object("merged") else { return nil }
    return Merge(
      into: try merge.required("into"), orderID: try merge.requiredText("orderId"),
      operatorName: try merge.requiredText("operator"), reason: try merge.requiredText("reason", maximumBytes: 4096))
  }

  // MARK: What was decided

  private static func write(_ entry: PublishedEntitlement, _ json: inout JSONWriter) {
    json.object { json in
      json.field("entitlement", entry.entitlement.text)
      json.field("ends", milliseconds: entry.state.endsAt)
      json.field("product", entry.state.product?.text)
      json.field("chain", entry.state.originalTransaction?.text)
    }
  }

  private static func published(_ fields: Fields) throws(FieldFailure) -> PublishedEntitlement {
    PublishedEntitlement(
      entitlement: try fields.required("entitlement"),
      state: EntitlementState(
        isActive: true, endsAt: try fields.milliseconds("ends"), product: try fields.identifier("product"),
        originalTransaction: try fields.identifier("chain")))
  }

  private static func write(_ balance: Balance, _ json: inout JSONWriter) {
    json.object { json in
      json.field("unit", balance.unit.text)
      json.field("amount", balance.amount)
    }
  }

  private static func balance(_ fields: Fields) throws(FieldFailure) -> Balance {
    guard let amount = try fields.integer("amount") else { throw fields.failure("amount", "is missing") }
    return Balance(unit: try fields.required("unit"), amount: amount)
  }

  private static func write(_ open: OpenPermit, _ json: inout JSONWriter) {
    json.object { json in
      json.field("proof", open.proof)
      json.field("chain", open.key.originalTransaction.text)
      json.field("part", open.key.part)
      json.field("transaction", open.transaction.text)
      json.field("product", open.product.text)
    }
  }

  private static func openPermit(_ fields: Fields) throws(FieldFailure) -> OpenPermit {
    OpenPermit(
      proof: try fields.requiredText("proof"),
      key: BusinessKey(originalTransaction: try fields.required("chain"), part: try fields.requiredText("part")),
      transaction: try fields.required("transaction"), product: try fields.required("product"))
  }
}

extension Fields {
  func requiredMilliseconds(_ field: StaticString) throws(FieldFailure) -> Instant {
    guard let instant = try milliseconds(field) else { throw failure(field, "is missing") }
    return instant
  }
}

/// A row of the table `account`.
public struct AccountRow: Sendable, Hashable {
  public var environment: Environment
  public var account: Account
  /// The partition of `owned` that the account's events come through.
  public var partition: Int32
  /// Of the account's last event; 0 before the first.
  public var version: Int64
  public var catalogueVersion: String
  public var isWaiting: Bool
  public var state: AccountState

  public init(
    environment: Environment, account: Account, partition: Int32, version: Int64, catalogueVersion: String,
    isWaiting: Bool, state: AccountState
  ) {
    self.environment = environment
    self.account = account
    self.partition = partition
    self.version = version
    self.catalogueVersion = catalogueVersion
    self.isWaiting = isWaiting
    self.state = state
  }

  public static func key(_ environment: Environment, _ account: Account) -> RowKey {
    RowKey(.account, [.text(environment.rawValue), .text(account.text)])
  }

  /// - Throws: for a row that neither this program nor an older one wrote.
  public init(_ row: Row) throws(FieldFailure) {
    guard case .text(let name) = row.key.values[0], let environment = Environment(rawValue: name),
      case .text(let text) = row.key.values[1], let account = Account(text),
      case .integer(let partition) = row.values[0], case .integer(let version) = row.values[1],
      case .integer(let waiting) = row.values[3], case .text(let catalogueVersion) = row.values[4],
      case .bytes(let document) = row.values[5]
    else { throw FieldFailure("account", "has a column that is not what it must be") }
    self.init(
      environment: environment, account: account, partition: Int32(truncatingIfNeeded: partition), version: version,
      catalogueVersion: catalogueVersion, isWaiting: waiting != 0,
      state: try AccountDocument.decode(
        document, dueAt: row.values[2].integer.map { Instant(milliseconds: $0) }))
  }

  public var row: Row {
    Row(
      Self.key(environment, account),
      [
        .integer(Int64(partition)), .integer(version), Value(state.dueAt), .integer(isWaiting ? 1 : 0),
        .text(catalogueVersion), .bytes(AccountDocument.encode(state)),
      ])
  }
}
