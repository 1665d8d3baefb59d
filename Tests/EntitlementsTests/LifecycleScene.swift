import PurchasesContracts
import PurchasesCore
import PurchasesTestKit

/// A purchase in one state of the lifecycle: how it came there, and what Apple says next.
struct LifecycleScene {
  let state: Lifecycle.State
  let account: String
  /// When the next notification comes.
  let now: Int64
  /// What was said so far, in order; the clock has come to `now` after it.
  private(set) var past: [(at: Int64, transaction: SampleTransaction, renewal: SampleRenewal?)] = []
  /// What the notification speaks of, as it stands; nil where nothing is known.
  private var transaction: SampleTransaction?
  private var renewal: SampleRenewal?
  private let number: Int

  /// A higher level of one group gives its own entitlement, and all give `member`.
  static let catalogue = Samples.catalogue(
    #"""
    {"version": "1", "products": [
      {"id": "coins", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
      {"id": "pro", "type": "non-consumable", "entitlements": ["pro"]},
      {"id": "gold", "type": "auto-renewable", "group": "club", "level": 1, "entitlements": ["gold", "member"]},
      {"id": "silver", "type": "auto-renewable", "group": "club", "level": 2, "entitlements": ["silver", "member"]},
      {"id": "bronze", "type": "auto-renewable", "group": "club", "level": 3, "entitlements": ["bronze", "member"]}]}
    """#)

  private static let period: Int64 = 10_000
  /// In the first period, and after it, while a grace would run.
  private static let (early, late): (Int64, Int64) = (5_000, 13_000)
  private static let graceLength: Int64 = 4_000

  /// - Parameter number: tells the accounts and purchases of one world apart.
  init(_ state: Lifecycle.State, number: Int) {
    self.state = state
    self.number = number
    let digits = String(100_000 + number)
    account = "aaaaaaaa-0000-4000-8000-000000\(digits)"
    switch state {
    case .grace, .retry, .expired: now = Self.late
    default: now = Self.early
    }
    var on = SampleRenewal(chain, "silver", signed: 1000)
    let silver = self.silver
    switch state {
    case .unknown: return
    case .running: tell(1000, silver, on)
    case .ending:
      tell(1000, silver, on)
      on.autoRenews = false
      tell(3000, silver, on)
    case .changing:
      tell(1000, silver, on)
      on.next = "bronze"
      tell(3000, silver, on)
    case .grace, .retry:
      tell(1000, silver, on)
      on.isInRetry = true
      on.grace = state == .grace ? 11_000 + Self.graceLength : nil
      tell(11_000, silver, on)
    case .expired:
      tell(1000, silver, on)
      on.autoRenews = false
      tell(11_000, silver, on)
    case .refunded:
      tell(1000, silver, on)
      var refunded = silver
      refunded.revoked = 3000
      tell(3000, refunded, on)
    case .upgraded:
      let bronze = subscription("bronze", 1, from: 1000)
      tell(1000, bronze, SampleRenewal(chain, "bronze", signed: 1000))
      tell(3000, subscription("silver", 2, from: 3000), on)
      transaction = bronze
    case .lifetime, .lifetimeRefunded, .credited, .creditsRefunded:
      var bought = once(1, at: 1000)
      tell(1000, bought, nil)
      guard state == .lifetimeRefunded || state == .creditsRefunded else { return }
      bought.revoked = 3000
      tell(3000, bought, nil)
    }
  }

  private mutating func tell(_ at: Int64, _ transaction: SampleTransaction, _ renewal: SampleRenewal?) {
    var (transaction, renewal) = (transaction, renewal)
    transaction.signed = at
    renewal?.signed = at
    past.append((at, transaction, renewal))
    (self.transaction, self.renewal) = (transaction, renewal)
  }

  // MARK: Purchases

  private var chain: String { "1\(number)" }
  var original: OriginalTransactionID { OriginalTransactionID(chain)! }
  var product: String { "silver" }

  private var silver: SampleTransaction { subscription("silver", 1, from: 1000) }

  private func subscription(_ product: String, _ turn: Int, from begin: Int64) -> SampleTransaction {
    SampleTransaction(
      turn == 1 ? chain : "\(chain)00\(turn)", original: chain, product, .autoRenewable, signed: begin,
      purchased: begin, expires: begin + Self.period, lineItem: "\(chain)99\(turn)", token: account)
  }

  /// A purchase of what doesn't renew: credits where the state is about credits.
  private func once(_ turn: Int, at: Int64) -> SampleTransaction {
    switch state {
    case .credited, .creditsRefunded:
      SampleTransaction("2\(number)00\(turn)", "coins", .consumable, signed: at, purchased: at, token: account)
    default: SampleTransaction("2\(number)00\(turn)", "pro", .nonConsumable, signed: at, purchased: at, token: account)
    }
  }

  // MARK: What Apple says next

  /// The proofs that Apple sends with such a statement; nil for none.
  func proofs(_ statement: Lifecycle.Statement) -> (transaction: SampleTransaction, renewal: SampleRenewal?)? {
    if statement == .nothing { return nil }
    if statement == .charged { return (once(7, at: now), nil) }
    var isAboutOneTimePurchase = false
    if case .asItStands = statement { isAboutOneTimePurchase = true }
    if case .revoked = statement { isAboutOneTimePurchase = true }
    if case .notRevoked = statement { isAboutOneTimePurchase = true }
    guard state.hasSubscription || isAboutOneTimePurchase && state != .unknown else { return first(statement) }
    guard var told = transaction else { return nil }
    var renewal = renewal
    told.signed = now
    renewal?.signed = now
    change(&told, &renewal, statement)
    return (told, renewal)
  }

  /// The first that is heard of a subscription. One that failed or ended is over, and the others run.
  private func first(_ statement: Lifecycle.Statement) -> (SampleTransaction, SampleRenewal?) {
    var told = silver
    var renewal: SampleRenewal? = statement == .revoked ? nil : SampleRenewal(chain, "silver", signed: now)
    if [.grace, .retries, .over].contains(statement) { told.expires = now - 1000 }
    told.signed = now
    change(&told, &renewal, statement)
    return (told, renewal)
  }

  private func change(
    _ told: inout SampleTransaction, _ renewal: inout SampleRenewal?, _ statement: Lifecycle.Statement
  ) {
    switch statement {
    case .nothing, .asItStands, .charged: break
    case .period:
      let isRunning = [.running, .ending, .changing].contains(state)
      let begin = isRunning ? 11_000 : state == .upgraded ? 13_000 : now
      let product = renewal?.next ?? self.product
      told = subscription(product, 5, from: begin)
      told.signed = now
      renewal = SampleRenewal(chain, product, signed: now)
    case .upgrade:
      told = subscription("gold", 6, from: now)
      renewal = SampleRenewal(chain, "gold", signed: now)
    case .changes: renewal?.next = "bronze"
    case .keepsProduct: renewal?.next = nil
    case .stops: renewal?.autoRenews = false
    case .renews: renewal?.autoRenews = true
    case .grace:
      renewal?.isInRetry = true
      let end = max(now, told.expires ?? now, 11_000)
      if renewal?.grace == nil { renewal?.grace = end + Self.graceLength }
    case .retries:
      renewal?.isInRetry = true
      renewal?.grace = nil
    case .over:
      renewal?.autoRenews = false
      renewal?.isInRetry = false
      renewal?.grace = nil
    case .revoked: told.revoked = now
    case .notRevoked: told.revoked = nil
    case .extended: told.expires = told.expires.map { $0 + 5000 }
    }
  }
}
