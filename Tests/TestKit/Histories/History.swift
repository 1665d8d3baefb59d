import PurchasesContracts
import PurchasesCore

extension SeededRandom {
  public mutating func roll(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }
  public mutating func chance(_ oneIn: Int64) -> Bool { roll(1...oneIn) == 1 }
}

/// Random purchases of one account, and of the accounts that it passes purchases to: what Apple says about them, who
/// reports it, and how often.
public struct History {
  public struct Item {
    public var key: String
    public var event: VerifiedEvent
  }

  public var items: [Item] = []

  /// Instants on a coarse grid, so that dates meet: equal ones are where orders go wrong.
  public static let grid: Int64 = 250
  public static let horizon: Int64 = 10_000

  public init(number: Int, _ dice: inout SeededRandom) {
    let owner = Self.account(number, 0)
    for chain in 0...(dice.chance(4) ? 1 : 0) {
      let id = "\(number * 10 + chain)0"
      let token: String? = dice.chance(2) ? owner : nil
      switch dice.roll(1...5) {
      case 1: consumables(id, owner, token, &dice)
      case 2: oneTime(id, "pro.lifetime", .nonConsumable, owner, token, &dice)
      case 3: oneTime(id, "season", .nonRenewing, owner, token, &dice)
      default: subscription(id, owner, token, number, &dice)
      }
    }
  }

  public static func account(_ number: Int, _ which: Int) -> String {
    let digits = String(number)
    return "aaaaaaaa-0000-4000-800\(which)-" + String(repeating: "0", count: 12 - digits.count) + digits
  }

  private static func instant(_ dice: inout SeededRandom) -> Int64 { dice.roll(1...horizon / grid) * grid }

  private mutating func add(
    _ sample: SampleTransaction, _ owner: String, renewal: SampleRenewal? = nil, _ dice: inout SeededRandom
  ) {
    let key = "\(sample.environment.rawValue)/\(sample.original)"
    if dice.chance(2) || renewal != nil {
      let uuid = "n-\(sample.original)-\(items.count)"
      items.append(Item(key: key, event: sample.notified(uuid, "ANY", renewal: renewal)))
    }
    if dice.chance(2) {
      items.append(
        Item(key: key, event: sample.reported(by: owner, as: dice.chance(3) ? .paymentRestored : .paymentPurchased)))
    }
    // The same as a receipt lists it, without a type: now and then all that there is.
    if sample.type != .autoRenewable, dice.chance(3) {
      var listed = sample
      listed.type = .untold
      listed.percentage = nil
      listed.signed = min(sample.signed + dice.roll(0...1) * Self.grid, Self.horizon)
      items.append(Item(key: key, event: listed.reported(by: owner)))
    }
  }

  private mutating func consumables(_ id: String, _ owner: String, _ token: String?, _ dice: inout SeededRandom) {
    var sample = SampleTransaction(
      id, dice.chance(3) ? "gems.7" : "coins.100", .consumable, signed: Self.instant(&dice),
      purchased: Self.instant(&dice), quantity: dice.roll(1...3), token: token)
    for _ in 0...dice.roll(0...1) {
      add(sample, owner, &dice)
      revise(&sample, &dice)
    }
  }

  /// The next statement about the same purchase: refunded, in part, or not any more, at a date that may be the same.
  private func revise(_ sample: inout SampleTransaction, _ dice: inout SeededRandom) {
    sample.signed = min(sample.signed + dice.roll(0...2) * Self.grid, Self.horizon)
    if sample.revoked == nil {
      sample.revoked = min(sample.signed, Self.instant(&dice))
      sample.percentage = dice.chance(2) ? dice.roll(0...100_000) : nil
    } else {
      sample.revoked = nil
      sample.percentage = nil
    }
  }

  private mutating func oneTime(
    _ id: String, _ product: String, _ type: ProductType, _ owner: String, _ token: String?, _ dice: inout SeededRandom
  ) {
    let start = Self.instant(&dice)
    var sample = SampleTransaction(
      id, product, type, signed: start, purchased: start, quantity: dice.chance(3) ? 2 : nil, token: token)
    for copy in 0...dice.roll(0...2) {
      add(sample, owner, &dice)
      if dice.chance(2) {
        // A restore mints a new transaction id and keeps the original date.
        sample.transaction = "\(id)\(copy)"
        sample.originallyPurchased = start
        sample.signed = min(sample.signed + Self.grid, Self.horizon)
      } else {
        revise(&sample, &dice)
      }
    }
  }

  private mutating func subscription(
    _ id: String, _ owner: String, _ token: String?, _ number: Int, _ dice: inout SeededRandom
  ) {
    var start = Self.instant(&dice)
    var token = token
    // Now and then for several people, and now and then as items of a generic product.
    let isForSeveral = dice.chance(4)
    let hasItems = dice.chance(4)
    for period in 0...dice.roll(0...2) where start <= Self.horizon {
      let length = dice.roll(1...6) * Self.grid
      var sample = SampleTransaction(
        period == 0 ? id : "\(id)\(period)", original: id, dice.chance(2) ? "gold.monthly" : "silver.monthly",
        .autoRenewable,
        signed: start, purchased: start, expires: start + length, lineItem: dice.chance(4) ? nil : "7\(id)\(period)",
        token: token)
      if isForSeveral { sample.revokedSeats = dice.roll(0...1) }
      if hasItems {
        sample.items = ["gold.monthly", "silver.monthly", "pro.plus"].filter { _ in dice.chance(2) }.map {
          SampleItem($0, revoked: dice.chance(5) ? start + Self.grid : nil)
        }
      }
      let renewal: SampleRenewal? =
        dice.chance(2)
        ? SampleRenewal(
          id, sample.product, signed: min(start + dice.roll(0...4) * Self.grid, Self.horizon),
          grace: dice.chance(2) ? start + length + dice.roll(0...4) * Self.grid : nil, autoRenews: dice.chance(2)) : nil
      add(sample, owner, renewal: renewal, &dice)
      if dice.chance(3) {
        revise(&sample, &dice)
        sample.isUpgraded = dice.chance(4)
        add(sample, owner, &dice)
      }
      if isForSeveral, dice.chance(2) {
        // Seats that are added within the period, refunded now and then; a receipt knows of neither.
        var addition = sample
        addition.transaction = "\(id)\(period)9"
        addition.lineItem = dice.chance(2) ? sample.lineItem : "8\(id)\(period)"
        addition.purchased = min(start + Self.grid, Self.horizon)
        addition.signed = max(addition.signed, addition.purchased)
        addition.addsSeats = true
        add(addition, owner, &dice)
        revise(&addition, &dice)
        add(addition, owner, &dice)
      }
      if isForSeveral || hasItems, dice.chance(2) {
        var listed = sample
        listed.revokedSeats = nil
        listed.items = []
        listed.signed = min(sample.signed + dice.roll(0...1) * Self.grid, Self.horizon)
        listed.revoked = dice.chance(4) ? listed.signed : nil
        items.append(
          Item(key: "\(listed.environment.rawValue)/\(id)", event: listed.reported(by: owner)))
      }
      // Now and then a newer statement names another account: the chain goes over to it.
      if token != nil, dice.chance(5) { token = Self.account(number, 1) }
      start += dice.roll(1...8) * Self.grid
    }
  }
}
