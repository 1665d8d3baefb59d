import PurchasesContracts
import PurchasesCore
import Testing

@Suite struct CatalogueHistoryTests {
  private func catalogue(_ version: String, _ amount: Int64?) throws -> Catalogue {
    let product = amount.map { #"{"id":"c","type":"consumable","credits":{"unit":"coins","amount":\#($0)}}"# } ?? ""
    return try Catalogue(parsing: Array(#"{"version":"\#(version)","products":[\#(product)]}"#.utf8))
  }

  private func instant(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  @Test func theVersionOfTheTimeIsInForce() throws {
    let history = CatalogueHistory(
      first: try catalogue("1", 1),
      later: [(try catalogue("3", 3), instant(300)), (try catalogue("2", 2), instant(200))])
    #expect(history.versions.map(\.catalogue.version) == ["1", "2", "3"])
    let inForce = [-5, 199, 200, 299, 300, 9_000].map { history.inForce(at: instant($0)).version }
    #expect(inForce == ["1", "1", "2", "2", "3", "3"])
    #expect(history.newest.version == "3" && history["2"]?.from == instant(200) && history["4"] == nil)
    #expect(history.inForce(at: instant(100), notBefore: "2").version == "2")
    #expect(history.inForce(at: instant(300), notBefore: "2").version == "3")
    #expect(history.inForce(at: instant(100), notBefore: "unheard of").version == "1")
    #expect(history.inForce(at: instant(300), notAfter: "2").version == "2")
    #expect(history.inForce(at: instant(100), notAfter: "2").version == "1")
    #expect(history.outdated(at: instant(299)) == ["1"] && history.outdated(at: instant(300)) == ["2", "1"])
  }

  @Test func creditsAreThoseOfTheDay() throws {
    let amounts: [Int64?] = [10, nil, 30, nil]
    var later: [(catalogue: Catalogue, from: Instant)] = []
    for (index, amount) in amounts.enumerated() {
      later.append((try catalogue("\(index + 2)", amount), instant(Int64(index + 1) * 100)))
    }
    let history = CatalogueHistory(first: try catalogue("1", nil), later: later)
    let c = try #require(ProductID("c"))
    func worths(_ version: String) throws -> [Int64?] {
      let catalogue = try #require(history[version]?.catalogue)
      return [50, 150, 250, 350, 450].map { catalogue.credits(c, boughtAt: instant($0))?.amount }
    }
    #expect(try worths("1") == [nil, nil, nil, nil, nil])
    #expect(try worths("2") == [10, 10, 10, 10, 10])
    #expect(try worths("3") == [10, 10, nil, nil, nil])
    #expect(try worths("4") == [10, 10, 30, 30, 30])
    #expect(try worths("5") == [10, 10, 30, 30, nil])
    #expect(history.newest.credits(try #require(ProductID("d")), boughtAt: instant(1)) == nil)
  }
}
