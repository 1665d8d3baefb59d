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
    #expect(failure("{")?.description.hasPrefix("is not JSON (byte") == true)
    #expect(failure("[]")?.description == "must be a JSON object")
    #expect(failure(product: "7")?.description == "product number 1: must be a JSON object")
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
    #expect(
      failure(product: "\(twice),\(twice)") == CatalogueFailure(product: "p", field: "id", reason: "stands twice"))
  }
}
