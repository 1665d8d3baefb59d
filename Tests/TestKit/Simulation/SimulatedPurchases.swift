import PurchasesContracts
import PurchasesCore

/// Some accounts' purchases, as verification would write them, for the stages of live deployments.
enum SimulatedPurchases {
  static let catalogue: Catalogue = {
    let text = #"""
      {"version": "1", "products": [
        {"id": "coins", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
        {"id": "pro", "type": "non-consumable", "entitlements": ["pro"]},
        {"id": "gold", "type": "auto-renewable", "group": "membership", "level": 1, "entitlements": ["gold"]}]}
      """#
    do { return try Catalogue(parsing: Array(text.utf8)) } catch { preconditionFailure("\(error)") }
  }()

  /// Records of the topic `verified` with the instants at which they come, in order: each purchase reported, told by Apple
  /// or both, some of it twice, refunded now and then, and subscriptions that end while all this goes on.
  static func records(
    _ random: inout SeededRandom, within length: Int64, topics: TopicSettings
  ) -> [(at: Int64, record: ProducedRecord)] {
    var items: [(at: Int64, key: String, event: VerifiedEvent)] = []
    for number in 1...Int.random(in: 3...10, using: &random) {
      let sample = sample(number, &random)
      let account = account(Int.random(in: 1...4, using: &random))
      var statements = [sample]
      if Int.random(in: 0..<4, using: &random) == 0 {
        var refund = sample
        refund.signed += 10
        refund.revoked = refund.signed
        statements.append(refund)
      }
      for (place, statement) in statements.enumerated() {
        for copy in 0...Int.random(in: 0...1, using: &random) {
          let event =
            Bool.random(using: &random)
            ? statement.reported(by: account) : statement.notified("n\(number)-\(place)-\(copy)", "ANY")
          items.append(
            (Int64.random(in: 0...length, using: &random), "Production/\(statement.original)", event))
        }
      }
    }
    items.sort { ($0.at, $0.key) < ($1.at, $1.key) }
    return items.map { ($0.at, $0.event.record(key: $0.key, at: SimulatedWorld.epoch + $0.at, topics: topics)) }
  }

  private static func account(_ number: Int) -> String { "aaaaaaaa-0000-4000-8000-00000000000\(number)" }

  private static func sample(_ number: Int, _ random: inout SeededRandom) -> SampleTransaction {
    let start = SimulatedWorld.epoch + Int64.random(in: 0...500, using: &random)
    let token = Bool.random(using: &random) ? account(Int.random(in: 1...4, using: &random)) : nil
    switch Int.random(in: 0..<3, using: &random) {
    case 0:
      return SampleTransaction("\(number)0", "coins", .consumable, signed: start, purchased: start, token: token)
    case 1:
      return SampleTransaction("\(number)0", "pro", .nonConsumable, signed: start, purchased: start, token: token)
    default:
      return SampleTransaction(
        "\(number)0", "gold", .autoRenewable, signed: start, purchased: start,
        expires: start + Int64.random(in: 100...3_000, using: &random), token: token)
    }
  }
}
