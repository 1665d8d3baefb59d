import PurchasesCore
import PurchasesJSON

/// What another catalogue would change: of products, and of what accounts may use.
public struct CatalogueDiff: Sendable {
  public struct Product: Sendable, Hashable {
    public let id: ProductID
    /// nil: it is new.
    public let before: CatalogueProduct?
    /// nil: it is gone.
    public let after: CatalogueProduct?
  }

  /// What one account would gain and lose.
  public struct Change: Sendable, Hashable {
    public enum Step: String, Sendable, Hashable, CaseIterable {
      case gains, loses
      /// Still active, and ends at another time.
      case ends
    }

    public let entitlement: EntitlementID
    public let step: Step
    /// Not active: nil.
    public let before: EntitlementState?
    public let after: EntitlementState?

    /// The product that gives it, or gave it; nil for an operator's grant.
    public var product: ProductID? { (after ?? before)?.product }
  }

  public struct Account: Sendable {
    public let environment: Environment
    public let account: PurchasesCore.Account
    /// In order of entitlement.
    public let changes: [Change]
    /// Credits of purchases that wait and that the other catalogue knows, in order of unit.
    public let credits: [(unit: CreditUnit, amount: Int64)]
    /// Products that purchases would begin to wait for, and would wait for no longer, in order.
    public let waitsFor: [ProductID]
    public let waitsNoLonger: [ProductID]

    public var isEmpty: Bool { changes.isEmpty && credits.isEmpty && waitsFor.isEmpty && waitsNoLonger.isEmpty }
  }

  /// In order of their ids.
  public let products: [Product]
  private let before: Catalogue
  private let after: Catalogue
  private let at: Instant

  /// - Parameters:
  ///   - history: what is in force at the instant is what stands.
  ///   - next: would come into force then.
  public init(_ history: CatalogueHistory, next: Catalogue, at instant: Instant) {
    let before = history.inForce(at: instant)
    self.before = before
    after = history.followed(by: next, from: instant).newest
    at = instant
    let ids = Set(before.all.map(\.id)).union(next.all.map(\.id)).sorted()
    products = ids.compactMap { id in
      before[id] == next[id] ? nil : Product(id: id, before: before[id], after: next[id])
    }
  }

  public func account(_ row: AccountRow) -> Account {
    let facts = row.state.facts
    var states: [EntitlementID: (before: EntitlementState?, after: EntitlementState?)] = [:]
    for (entitlement, state) in Access.active(facts, before, at: at) { states[entitlement] = (state, nil) }
    for (entitlement, state) in Access.active(facts, after, at: at) {
      states[entitlement] = (states[entitlement]?.before, state)
    }
    let changes = states.sorted { $0.key < $1.key }.compactMap { entitlement, states -> Change? in
      let step: Change.Step
      switch states {
      case (nil, _): step = .gains
      case (_, nil): step = .loses
      case (let before?, let after?):
        guard before.endsAt != after.endsAt else { return nil }
        step = .ends
      }
      return Change(entitlement: entitlement, step: step, before: states.before, after: states.after)
    }
    var credits: [CreditUnit: Int64] = [:]
    for purchase in facts.purchases(after) where before.isMissing(purchase) && purchase.type == .consumable {
      guard let worth = after.credits(purchase.product, boughtAt: purchase.begins) else { continue }
      let whole = worth.amount * purchase.quantity
      let refunded = purchase.isRevoked ? Booking.refund(of: whole, percentage: purchase.revocationPercentage) : 0
      credits[worth.unit, default: 0] += whole - refunded
    }
    let (waited, waits) = (facts.missing(before), facts.missing(after))
    return Account(
      environment: row.environment, account: row.account, changes: changes,
      credits: credits.sorted { $0.key < $1.key }.map { (unit: $0.key, amount: $0.value) },
      waitsFor: waits.subtracting(waited).sorted(), waitsNoLonger: waited.subtracting(waits).sorted())
  }
}

extension CatalogueDiff.Product {
  public func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("id", id.text)
      json.field("change", before == nil ? "added" : after == nil ? "removed" : "changed")
      json.field("before", raw: before.map(Self.bytes))
      json.field("after", raw: after.map(Self.bytes))
    }
  }

  private static func bytes(_ product: CatalogueProduct) -> [UInt8] {
    var writer = JSONWriter()
    product.write(&writer)
    return writer.bytes
  }
}

extension CatalogueDiff.Account {
  public func write(_ json: inout JSONWriter) {
    json.object { json in
      json.field("environment", environment.rawValue)
      json.field("account", account.text)
      json.field(
        "changes",
        array: { json in
          for change in changes {
            json.object { json in
              json.field("entitlement", change.entitlement.text)
              json.field("change", change.step.rawValue)
              json.field("productId", change.product?.text)
              if let before = change.before { json.field("before", object: { before.write(&$0) }) }
              if let after = change.after { json.field("after", object: { after.write(&$0) }) }
            }
          }
        })
      json.field(
        "credits",
        array: { json in
          for (unit, amount) in credits {
            json.object { json in
              json.field("unit", unit.text)
              json.field("amount", amount)
            }
          }
        })
      json.field("waitsFor", array: { json in for product in waitsFor { json.element(product.text) } })
      json.field("waitsNoLonger", array: { json in for product in waitsNoLonger { json.element(product.text) } })
    }
  }
}
