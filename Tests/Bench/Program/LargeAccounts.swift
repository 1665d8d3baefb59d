import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesLocalAppStore

/// Accounts with ten purchases each, and what comes to such a deployment next: all of it made up from numbers, so that
/// who fills the store and who fills the topics speak of the same ones. Records of `owned` as the stage before writes them.
struct LargeAccounts: Sendable {
  /// Those that the store holds. Higher numbers are accounts that it has not seen.
  let count: Int

  /// What an account has bought so far: six months of a subscription, three times credits, one thing for ever.
  static let purchases = 10
  private static let day: Int64 = 86_400_000
  private static let month = 30 * day
  private static let minute: Int64 = 60_000

  /// Why a record of a purchase comes.
  enum Occasion: String, Sendable {
    /// The client reports it and waits for a permit.
    case report
    /// Apple tells of the same transaction, signed anew.
    case notification
  }

  // MARK: Names

  /// A UUID that looks like any other. Those of the store rise with their numbers, so that it can be filled in the order of
  /// the keys; which ones come next has nothing to do with that order.
  func account(_ index: Int) -> Account {
    let stratum = (UInt64(1) << 32) / UInt64(count)
    var high = Self.mixed(UInt64(index) &* 2)
    if index < count { high = UInt64(index) * stratum + high % stratum } else { high &= 0xffff_ffff }
    let low = Self.mixed(UInt64(index) &* 2 &+ 1)
    let text =
      "\(Self.hex(high, 8))-\(Self.hex(low >> 48, 4))-4\(Self.hex(low >> 36, 3))-8\(Self.hex(low >> 24, 3))"
      + "-\(Self.hex(low, 6))\(Self.hex(Self.mixed(low), 6))"
    guard let account = Account(text) else { preconditionFailure("\(text) is a UUID") }
    return account
  }

  /// SplitMix64's last step: neighbours come out far apart.
  static func mixed(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  private static func hex(_ value: UInt64, _ digits: Int) -> String {
    let text = String(value & ((UInt64(1) << (4 * digits)) - 1), radix: 16)
    return String(repeating: "0", count: digits - text.utf8.count) + text
  }

  /// Accounts of the store repeat the story of one of these, under names of their own.
  static let templates = 1_000

  private func story(_ index: Int) -> Int { index < count ? index % Self.templates : index }

  /// Nine digits that stand in all ids of an account and nowhere else.
  func tag(_ index: Int) -> String { String(100_000_000 + (index &* 0x1E37_79B1) & 0x1FFF_FFFF) }

  /// Apple's ids rise with time, which is the turn in which accounts buy.
  private func id(_ index: Int, _ turn: Int) -> String { String(600_000 + turn) + tag(index) }

  /// Of the same purchase of the same story it is the same.
  private func digest(_ index: Int, _ turn: Int, _ occasion: Occasion) -> String {
    let told = turn < Self.purchases ? story(index) : index
    return SHA256.digest("\(told)/\(index < count)/\(turn)/\(occasion.rawValue)").hex
  }

  // MARK: Purchases

  private enum Bought {
    /// The month of the subscription, from 0.
    case month(Int)
    case credits, lasting
  }

  private func bought(_ turn: Int) -> Bought {
    switch turn {
    case 0, 2, 4, 6, 8: .month(turn / 2)
    case 5: .lasting
    case 9: .month(5)
    case Self.purchases: .month(6)
    default: .credits
    }
  }

  /// The sixth month of each account of the store ends within the first minute of the day on which the measured records
  /// come, and the stage's clock stands still just before: they renew on that day, and nothing is due meanwhile.
  private func instant(_ index: Int, _ turn: Int) -> Instant {
    let ends = 1 + Int64(Self.mixed(UInt64(story(index)) &+ 77) % UInt64(Self.minute - 1))
    let first = index < count ? Day.begin.advanced(byMilliseconds: -6 * Self.month + ends) : Day.begin
    switch bought(turn) {
    case .month(let month): return first.advanced(byMilliseconds: Int64(month) * Self.month)
    case .credits where turn > Self.purchases: return Day.begin.advanced(byMilliseconds: Self.minute)
    case .credits, .lasting: return first.advanced(byMilliseconds: Int64(turn / 2) * Self.month + 10 * Self.day)
    }
  }

  /// A record of `owned` about an account's purchase.
  /// - Parameter logged: when it came into the log, if not when the purchase was made. Within a topic these times must go on
  ///   with the records, as they do in a deployment: a broker begins a file for each week of them.
  func record(_ index: Int, turn: Int, _ occasion: Occasion, logged: Instant? = nil) -> Record {
    let account = account(index)
    let payload = transaction(index, turn, account, occasion)
    let at = instant(index, turn)
    let original: Int =
      switch bought(turn) {
      case .month: 0
      case .credits, .lasting: turn
      }
    guard let chain = OriginalTransactionID(id(index, original)) else { preconditionFailure("an id of digits") }
    let digest = digest(index, turn, occasion)
    let isReport = occasion == .report
    let part = SignedPart(
      kind: .transaction, digest: digest, source: isReport ? .client : .notification, payload: payload)
    let notice = NotificationFacts(
      uuid: account.text, type: turn == 0 ? "SUBSCRIBED" : "DID_RENEW", subtype: nil, version: "2.0", signedDate: at)
    let event = OwnedEvent.owned(
      PurchaseOwned(
        environment: .production, account: account, basis: .token, originalTransaction: chain,
        // A notification's own digest is another one than that of the transaction in it.
        proof: isReport ? digest : SHA256.digest(digest).hex, signedDate: at, notification: isReport ? nil : notice,
        report: isReport
          ? PurchasesContracts.Report(
            type: .paymentPurchased, account: account, transaction: TransactionID(id(index, turn))) : nil,
        parts: [part]))
    let origin = Envelope.Origin(
      coordinates: Coordinates(
        topic: StageRun.topics.name(.verified), partition: 0, offset: Int64(index * 100 + turn)), index: 0, count: 1)
    let envelope = Envelope(
      id: SHA256.digest("owned/\(digest)").hex, source: "/bench", type: event.type, time: at, origin: origin)
    return Record(key: Array(event.key.utf8), value: event.data, headers: envelope.headers, timestamp: logged ?? at)
  }

  /// The payload as Apple writes it.
  private func transaction(_ index: Int, _ turn: Int, _ account: Account, _ occasion: Occasion) -> [UInt8] {
    let at = instant(index, turn)
    var purchase = SyntheticTransaction(id: id(index, turn), account: account.text, at: at)
    switch bought(turn) {
    case .month:
      purchase.original = id(index, 0)
      purchase.originalAt = instant(index, 0)
      purchase.product = DemoCatalogue.bundleID + ".silver"
      purchase.expires = at.advanced(byMilliseconds: Self.month)
    case .credits: purchase.product = DemoCatalogue.bundleID + ".coins.100"
    case .lasting:
      purchase.product = DemoCatalogue.bundleID + ".skins"
      purchase.type = "Non-Consumable"
    }
    if occasion == .notification { purchase.signed = at.advanced(byMilliseconds: 400) }
    return purchase.payload
  }
}

/// The payload of a transaction as Apple writes it, unsigned.
struct SyntheticTransaction {
  var id: String
  var original: String
  var account: String
  var product = DemoCatalogue.bundleID + ".coins.100"
  var type = "Consumable"
  var at: Instant
  var originalAt: Instant
  var signed: Instant
  /// Of a subscription, the end of the period.
  var expires: Instant? { didSet { type = "Auto-Renewable Subscription" } }

  init(id: String, account: String, at instant: Instant) {
    self.id = id
    original = id
    self.account = account
    at = instant
    originalAt = instant
    signed = instant
  }

  var payload: [UInt8] {
    var writer = JSONWriter(reserving: 900)
    writer.object { json in
      json.field("transactionId", id)
      json.field("originalTransactionId", original)
      json.field("webOrderLineItemId", expires == nil ? nil : "9" + id)
      json.field("bundleId", DemoCatalogue.bundleID)
      json.field("productId", product)
      json.field("subscriptionGroupIdentifier", expires == nil ? nil : "21000001")
      json.field("purchaseDate", at.milliseconds)
      json.field("originalPurchaseDate", originalAt.milliseconds)
      json.field("expiresDate", expires?.milliseconds)
      json.field("quantity", 1 as Int64)
      json.field("type", type)
      json.field("appAccountToken", account)
      json.field("inAppOwnershipType", "PURCHASED")
      json.field("signedDate", signed.milliseconds)
      json.field("environment", Environment.production.rawValue)
      json.field("transactionReason", "PURCHASE")
      json.field("storefront", "USA")
      json.field("storefrontId", "143441")
      json.field("price", 990 as Int64)
      json.field("currency", "USD")
    }
    return writer.bytes
  }
}
