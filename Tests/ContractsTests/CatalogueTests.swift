import Foundation
import PurchasesContracts
import PurchasesCore
import Testing

struct CatalogueTests {
  @Test func theExampleForDeploymentsIsRead() throws {
    let file = SchemaFolder.root.deletingLastPathComponent().appendingPathComponent("Deploy/catalogue.json")
    let catalogue = try Catalogue(parsing: Array(Data(contentsOf: file)))
    #expect(catalogue.all.count == 6)
    #expect(try Catalogue(parsing: catalogue.json) == catalogue)
    let coins = try #require(ProductID("com.example.coins.100"))
    #expect(catalogue.product(coins, as: .consumable) != nil)
    #expect(catalogue.product(coins, as: .nonConsumable) == nil)
  }

  func failure(_ text: String) -> CatalogueFailure? {
    do throws(CatalogueFailure) {
      _ = try Catalogue(parsing: Array(text.utf8))
      return nil
    } catch { return error }
  }

  func failure(product: String) -> CatalogueFailure? { failure(#"{"version":"1","products":[\#(product)]}"#) }

  @Test func whatIsWrongIsNamedWithItsProduct() {
    #expect(failure("{")?.description.hasPrefix("line 1: is not JSON (byte") == true)
    #expect(failure("[]")?.description == "line 1: must be a JSON object")
    #expect(failure(product: "7")?.description == "line 1: product number 1: must be a JSON object")
    #expect(failure(#"{"products":[]}"#)?.field == "version")
    #expect(failure(#"{"version":"1"}"#)?.field == "products")
    #expect(failure(#"{"version":"1","products":[],"produkte":[]}"#)?.field == "produkte")
    #expect(failure(#"{"version":"1","version":"2","products":[]}"#)?.field == "version")
    let wrong: [(String, String)] = [
      (#"{"type":"consumable"}"#, "id"), (#"{"id":"p"}"#, "type"), (#"{"id":"p","type":"gift"}"#, "type"),
      (#"{"id":"p","type":"consumable"}"#, "credits"),
      (#"{"id":"p","type":"consumable","credits":{"unit":"coins"}}"#, "credits.amount"),
      (#"{"id":"p","type":"consumable","credits":{"unit":"coins","amount":0}}"#, "credits.amount"),
      (#"{"id":"p","type":"consumable","credits":{"unit":"two words","amount":1}}"#, "credits.unit"),
      (#"{"id":"p","type":"non-consumable","entitlements":["a"],"credits":{}}"#, "credits"),
      (#"{"id":"p","type":"auto-renewable","entitlements":["a"],"group":"g"}"#, "level"),
      (#"{"id":"p","type":"auto-renewable","entitlements":["a"],"level":1}"#, "group"),
      (#"{"id":"p","type":"non-renewing","entitlements":["a"],"duration":"30 days"}"#, "duration"),
    ]
    for (product, field) in wrong {
      let failure = failure(product: product)
      #expect(failure?.field == field, "\(product): \(failure?.description ?? "was taken")")
      if field != "id" { #expect(failure?.product == "p") }
    }
    let twice = #"{"id":"p","type":"non-consumable","entitlements":["a"]}"#
    #expect(failure(product: "\(twice),\(twice)")?.description == "line 1: product p: id: stands twice")
  }

  /// The line of what is wrong, or of what something is missing in.
  @Test func theLineIsNamed() throws {
    let file = [
      #"{"version": "\"},{[ \\","#,
      #" "from": "2026-11-30T00:00:00Z","#,
      #" "products": ["#,
      #"  {"id": "coins","#,
      #"   "type": "consumable","#,
      #"   "credits": {"#,
      #"     "unit": "coins","#,
      #"     "amount": 100}},"#,
      #"  {"id": "game", "type": "non-renewing", "entitlements": ["a"],"#,
      #"   "duration": "P30D", "sellable": {"#,
      #"     "until": "2026-12-01T00:00:00Z"}}]}"#,
    ]
    #expect(failure(file.joined(separator: "\n")) == nil)
    let wrong: [(line: Int, String, String, reason: String)] = [
      (2, #""2026-11-30T00:00:00Z""#, #""soon""#, "line 2: from: must be a time"),
      (2, "from", "form", "line 2: form: is not a member of a catalogue"),
      (4, "coins", "two words", "line 4: product two words: id: must be 1 to"),
      (5, "consumable", "gift", "line 5: product coins: type: must be"),
      (6, "credits", "credit", "line 4: product coins: credits: is missing"),
      (8, "100", "0", "line 8: product coins: credits.amount: must be 1 to"),
      (8, "amount", "mount", "line 6: product coins: credits.amount: is missing"),
      (8, "}},", "}", "line 9: is not JSON"),
      (8, "amount", "unit", "line 8: unit: stands twice in one object"),
      (9, "game", "coins", "line 9: product coins: id: stands twice"),
      (10, "P30D", "30 days", "line 10: product game: duration: must be"),
      (10, #""sellable": {"#, #""sellable": 7, "group": {"#, "line 10: product game: group: is not a member of"),
      (11, "12-01", "13-01", "line 11: product game: sellable.until: must be a time"),
      (11, "until", "til", "line 11: product game: sellable.til: is not a member of it"),
      (
        11, #""until": "2026-12-01T00:00:00Z""#, #""environments": ["Moon"]"#,
        "line 11: product game: sellable.environments: must be names"
      ),
      (
        11, #""until": "#, #""from": "2027-01-01T00:00:00Z", "until": "#,
        "line 11: product game: sellable.until: must be later than from"
      ),
    ]
    for (line, from, to, reason) in wrong {
      var lines = file
      lines[line - 1] = file[line - 1].replacingOccurrences(of: from, with: to)
      let found = failure(lines.joined(separator: "\n"))?.description
      #expect(found?.hasPrefix(reason) == true, "\(reason): \(found ?? "was taken")")
    }
  }

  @Test func whatCanBeBoughtIsToldWithWhatIsInTheWay() throws {
    let product = { (sellable: String) in
      #"{"version":"1","products":[{"id":"p","type":"non-consumable","entitlements":["a"]\#(sellable)}]}"#
    }
    func obstacles(_ sellable: String, _ environment: Environment, _ time: String) throws -> [String] {
      let catalogue = try Catalogue(parsing: Array(product(sellable).utf8))
      #expect(try Catalogue(parsing: catalogue.json) == catalogue)
      let instant = try #require(Instant(rfc3339: time))
      return catalogue.all[0].obstacles(in: environment, at: instant).map(\.rawValue)
    }
    let window =
      #","sellable":{"from":"2026-12-01T00:00:00Z","until":"2027-01-01T00:00:00Z","environments":["Production"]}"#
    #expect(try obstacles("", .sandbox, "2026-11-30T00:00:00Z") == [])
    #expect(try obstacles(#","sellable":true"#, .sandbox, "2026-11-30T00:00:00Z") == [])
    #expect(try obstacles(#","sellable":false"#, .production, "2026-11-30T00:00:00Z") == ["withdrawn"])
    #expect(try obstacles(window, .production, "2026-11-30T23:59:59Z") == ["not-yet"])
    #expect(try obstacles(window, .production, "2026-12-01T00:00:00Z") == [])
    #expect(try obstacles(window, .production, "2027-01-01T00:00:00Z") == ["no-longer"])
    #expect(try obstacles(window, .sandbox, "2026-11-01T00:00:00Z") == ["not-yet", "other-environment"])
  }
}
