import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// A few random purchases of three accounts as Apple would sign them, with what clients, callers and operators add, in the
/// order in which all of it arrives: the input of the model (`Tests/Judges/model.py`) and of the stages that it judges.
///
/// The chances below have no meaning of their own: they make each rule of docs/access.md come up in some of a thousand
/// histories, alone and with others.
public struct RandomHistory {
  public struct Arrival: Sendable {
    public var key: String
    public var event: VerifiedEvent
    /// Log time: epoch milliseconds, never going back.
    public var at: Int64
    /// Whether the clock is let go as far right after it.
    public var isTicked = false
  }

  public let policy: RestorePolicy
  public internal(set) var arrivals: [Arrival] = []
  /// Instants worth a question: those at which something may begin or end, and the millisecond before. Rising.
  public internal(set) var instants: [Int64] = []

  /// 2026-01-01T00:00:00Z.
  static let start: Int64 = 1_767_225_600_000
  static let hour: Int64 = 3_600_000
  static let day = 24 * hour
  /// Nothing is signed later than this.
  public static let horizon = start + 60 * day
  static let questions = 8

  /// The first one buys, the second one now and then, and the third one can't be named by a token.
  public let accounts: [String]

  public static let catalogue = Samples.catalogue(
    #"""
    {"version": "1", "products": [
      {"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
      {"id": "coins.33", "type": "consumable", "credits": {"unit": "coins", "amount": 33}},
      {"id": "gems.7", "type": "consumable", "credits": {"unit": "gems", "amount": 7}},
      {"id": "pro.lifetime", "type": "non-consumable", "entitlements": ["pro"]},
      {"id": "gold.monthly", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold", "member"]},
      {"id": "gold.weekly", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold", "member"]},
      {"id": "silver.weekly", "type": "auto-renewable", "group": "membership", "level": 2, "entitlements": ["silver", "member"]},
      {"id": "season.month", "type": "non-renewing", "duration": "P30D", "entitlements": ["season"]},
      {"id": "season.week", "type": "non-renewing", "duration": "P7D", "entitlements": ["season", "pro"]}]}
    """#)

  private let number: Int
  var dice: SeededRandom
  /// What will arrive, with the instant before which it can't, in no order.
  var statements: [(key: String, event: VerifiedEvent, signed: Int64)] = []
  var chains: [(environment: Environment, original: String)] = []

  /// - Parameters:
  ///   - number: tells the accounts and purchases of one history from those of others in the same log.
  ///   - policy: nil for a random one.
  public init(seed: UInt64, number: Int = 0, policy: RestorePolicy? = nil) {
    dice = SeededRandom(seed: seed)
    let rolled: RestorePolicy = dice.chance(4) ? .share : dice.chance(3) ? .transfer : .keep
    self.policy = policy ?? rolled
    self.number = number
    let digits = "\(1_000_000 + number)"
    accounts = [
      "aaaaaaaa-0000-4000-8000-00000" + digits, "bbbbbbbb-0000-4000-8000-00000" + digits, "user-\(number)",
    ]
    for chain in 0...dice.roll(0...2) { purchase("\(2_000_000 + number * 10 + Int(chain))") }
    if dice.chance(3) { spends() }
    if dice.chance(3) { claims() }
    if dice.chance(4) { orders() }
    deliver()
    ask()
  }

  init(policy: RestorePolicy, arrivals: [Arrival], instants: [Int64]) {
    dice = SeededRandom(seed: 0)
    self.policy = policy
    number = 0
    accounts = []
    self.arrivals = arrivals
    self.instants = instants
  }

  // MARK: Chances

  mutating func pick<T>(_ list: [T]) -> T { list[Int(dice.roll(0...Int64(list.count - 1)))] }

  /// Dates lie on a coarse grid, so that they meet: equal ones are where orders go wrong.
  mutating func instant(_ range: ClosedRange<Int64>) -> Int64 { Self.start + dice.roll(range) * 12 * Self.hour }

  func later(_ milliseconds: Int64) -> Int64 { min(milliseconds, Self.horizon) }

  mutating func token() -> String? {
    switch dice.roll(1...10) {
    case 1...4: nil
    case 5...7: accounts[0]
    case 8: accounts[0].uppercased()
    case 9: accounts[1]
    default: dice.chance(2) ? "user-3" : "00000000-0000-0000-0000-000000000000"
    }
  }

  // MARK: Telling

  /// Apple tells the server, a client reports it, or both, once or more; sometimes nobody does.
  mutating func tell(
    _ sale: AppleTransaction, _ type: String, _ subtype: String? = nil, renewal: AppleRenewal? = nil,
    surely: Bool = false
  ) {
    if surely || dice.chance(2) || renewal != nil {
      var parts = [sale.part(.notification)]
      if let renewal { parts.append(renewal.part(.notification)) }
      let uuid = "00000000-0000-4000-9000-\(100_000_000_000 + number * 1000 + statements.count)"
      let notification = NotificationFacts(
        uuid: uuid, type: type, subtype: subtype, version: "2.0", signedDate: Instant(milliseconds: sale.signed))
      statements.append(
        (
          sale.key,
          .verified(
            PurchaseVerified(
              environment: sale.environment, kind: .notification,
              proof: SHA256.digest(parts.flatMap(\.payload) + Array(uuid.utf8)).hex,
              signedDate: Instant(milliseconds: sale.signed), parts: parts, notification: notification,
              report: Report(type: .storeNotified), evidence: .null)), sale.signed
        ))
    }
    if dice.chance(2) { report(sale) }
  }

  mutating func report(_ sale: AppleTransaction) {
    let part = sale.part(.client)
    let account: String? = dice.chance(8) ? nil : dice.chance(5) ? pick(accounts) : accounts[0]
    statements.append(
      (
        sale.key,
        .verified(
          PurchaseVerified(
            environment: sale.environment, kind: .transaction, proof: part.digest,
            signedDate: Instant(milliseconds: sale.signed), parts: [part], notification: nil,
            report: Report(
              type: dice.chance(3) ? .paymentRestored : .paymentPurchased, account: account.flatMap { Account($0) },
              product: ProductID(sale.product), transaction: TransactionID(sale.transaction)), evidence: .null)),
        sale.signed
      ))
  }

  // MARK: Arriving

  /// Half of the histories arrive as they happen, with delays; the others in any order, in a log whose time has little to do
  /// with Apple's dates. Everything may come twice.
  private mutating func deliver() {
    var waiting: [(key: String, event: VerifiedEvent, at: Int64)] = []
    let isLive = dice.chance(2)
    let from = instant(0...120)
    for statement in statements {
      for _ in 0...(dice.chance(4) ? 1 : 0) {
        let delay = dice.chance(3) ? dice.roll(0...20) * Self.day : dice.roll(1...60_000)
        waiting.append((statement.key, statement.event, isLive ? statement.signed + delay : dice.roll(0...1_000_000)))
      }
    }
    waiting.shuffle(using: &dice)
    waiting.sort { $0.at < $1.at }
    for (index, item) in waiting.enumerated() {
      let at = isLive ? item.at : from + Int64(index) * 1000
      arrivals.append(
        Arrival(key: item.key, event: item.event, at: max(at, arrivals.last?.at ?? 0), isTicked: dice.chance(4)))
    }
  }

  // MARK: Asking

  private mutating func ask() {
    var candidates: Set<Int64> = [Self.horizon]
    for instant in instants { candidates.formUnion([instant - 1, instant, instant + 1]) }
    var list = candidates.sorted()
    while list.count > Self.questions { list.remove(at: Int(dice.roll(0...Int64(list.count - 1)))) }
    // The end of everything that ends.
    list.append(max(arrivals.last?.at ?? 0, Self.horizon) + 400 * Self.day)
    instants = list
  }
}
