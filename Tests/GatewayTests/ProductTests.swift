import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ProductTests {
  private func keep(_ version: String, from: Int64, _ products: String, in gateway: GatewayFixture) {
    let document = #"{"version":"\#(version)","products":[\#(products)]}"#
    gateway.store.put(
      Row(
        RowKey(.catalogue, [.text(version)]),
        [.integer(from), .bytes(Array(document.utf8)), .integer(from)]))
  }

  private let pro = #"{"id":"pro","type":"non-consumable","entitlements":["pro"]}"#
  private let coins = #"{"id":"coins","type":"consumable","credits":{"unit":"coins","amount":100}}"#

  @Test func knownProductsAndInvalidIdentifiers() throws {
    let gateway = try GatewayFixture()
    let now = FixedClock.instant.milliseconds
    let gone = #"{"id":"gone","type":"non-consumable","entitlements":["pro"],"sellable":false}"#
    let later =
      #"{"id":"later","type":"non-consumable","entitlements":["pro"],"sellable":{"from":"2199-01-01T00:00:00Z","environments":["Sandbox"]}}"#
    keep("1", from: 0, #"{"id":"old","type":"non-consumable","entitlements":["pro"]}"#, in: gateway)
    keep("2", from: now, [pro, coins, gone, later].joined(separator: ","), in: gateway)
    // Kept, and not in force yet.
    keep("3", from: now + 1, "", in: gateway)
    let answer = try gateway.send("GET", "/v1/products?id=coins&id=old&id=pro&id=gone&id=coins&id=later&id=a%20b")
    #expect(answer.status == 200)
    #expect(answer.json?["environment"] == "Production" && answer.json?["catalogueVersion"] == "2")
    #expect(answer.json?["at"]?.string == FixedClock.instant.rfc3339)
    let credits: JSON = ["unit": "coins", "amount": .integer(100)]
    let coins: JSON = ["id": "coins", "type": "consumable", "credits": credits]
    let pro: JSON = ["id": "pro", "type": "non-consumable", "entitlements": .array(["pro"])]
    #expect(answer.json?["products"] == .array([coins, pro]))
    #expect(answer.json?["invalidProductIdentifiers"] == .array(["old", "gone", "later", "a b"]))
    let reasons = answer.json?["notSellable"]?.array?.map { invalid in
      "\(invalid["id"]?.string ?? ""): "
        + (invalid["reasons"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
    }
    #expect(reasons == ["old: unknown", "gone: withdrawn", "later: not-yet, other-environment", "a b: unknown"])
    let all = try gateway.send("GET", "/v1/products?environment=Sandbox").json
    #expect(all?["products"]?.array?.compactMap { $0["id"]?.string } == ["coins", "pro"])
    #expect(all?["notSellable"]?.array?.compactMap { $0["reasons"]?.array?.first?.string } == ["withdrawn", "not-yet"])
  }

  @Test func whatCantBeAnsweredSaysSo() throws {
    let gateway = try GatewayFixture()
    #expect(try gateway.send("GET", "/v1/products").status == 503)
    #expect(try gateway.send("GET", "/v1/products?environment=Moon").json?["field"] == "environment")
    #expect(try gateway.send("POST", "/v1/products", "{}").status == 405)
    #expect(try gateway.send("GET", "/v1/products", token: nil).status == 401)
    #expect(try GatewayFixture(hasStore: false).send("GET", "/v1/products").status == 501)
  }
}
