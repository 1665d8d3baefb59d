/// What the scenario's app sells: all four product types. The demo hands it to the stages; the scenario buys from it.
public enum DemoCatalogue {
  public static let bundleID = "com.example.harbour"
  public static let appAppleID: Int64 = 1_600_000_001

  public static let json = Array(
    #"""
    {"version": "demo-1", "products": [
      {"id": "com.example.harbour.coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
      {"id": "com.example.harbour.coins.550", "type": "consumable", "credits": {"unit": "coins", "amount": 550}},
      {"id": "com.example.harbour.lifetime", "type": "non-consumable", "entitlements": ["premium"]},
      {"id": "com.example.harbour.skins", "type": "non-consumable", "entitlements": ["skins"]},
      {"id": "com.example.harbour.gold", "type": "auto-renewable", "group": "membership", "level": 1,
       "entitlements": ["premium", "gold"]},
      {"id": "com.example.harbour.silver", "type": "auto-renewable", "group": "membership", "level": 2,
       "entitlements": ["premium"]},
      {"id": "com.example.harbour.season", "type": "non-renewing", "duration": "PT12H", "entitlements": ["season"]}
    ]}
    """#.utf8)

  struct Product: Sendable {
    let id: String
    let type: String
    /// Milliunits of USD.
    let price: Int64
    let coins: Int64

    init(_ name: String, _ type: String, price: Int64, coins: Int64 = 0) {
      id = "com.example.harbour." + name
      self.type = type
      self.price = price
      self.coins = coins
    }
  }

  static let coins100 = Product("coins.100", "Consumable", price: 990, coins: 100)
  static let coins550 = Product("coins.550", "Consumable", price: 4990, coins: 550)
  static let lifetime = Product("lifetime", "Non-Consumable", price: 49_990)
  static let skins = Product("skins", "Non-Consumable", price: 2990)
  static let gold = Product("gold", "Auto-Renewable Subscription", price: 9990)
  static let silver = Product("silver", "Auto-Renewable Subscription", price: 4990)
  static let season = Product("season", "Non-Renewing Subscription", price: 6990)
  /// Sold in the store before the catalogue has heard of it.
  static let unlisted = Product("beta", "Non-Consumable", price: 990)

  static let group = "21000001"
}
